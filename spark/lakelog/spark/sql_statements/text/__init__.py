"""A text and what is found in it by reading alone: tokens, tables, places; Spark is never asked."""
