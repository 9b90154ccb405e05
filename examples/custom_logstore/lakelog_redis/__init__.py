"""A table's log, and if you like its data, in Redis."""
