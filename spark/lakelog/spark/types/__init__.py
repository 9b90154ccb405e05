"""Spark's types and paths, from and to those of the log."""
