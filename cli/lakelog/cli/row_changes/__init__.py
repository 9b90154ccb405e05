"""`lakelog delete` and `lakelog update`."""
