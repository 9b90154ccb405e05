"""`lakelog sample`: some rows of a table."""
