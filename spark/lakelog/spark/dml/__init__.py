"""Commands that change rows of a table by Spark: DELETE, UPDATE and MERGE."""
