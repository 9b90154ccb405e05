"""Streams out of tables, as delta-spark answered them."""
