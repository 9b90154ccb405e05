"""`lakelog schema`: the columns of a table, as a tree, as SQL and as JSON."""
