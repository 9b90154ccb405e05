"""`lakelog diff`: what differs between two versions of a table."""
