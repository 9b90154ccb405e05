"""Streaming queries that are killed and started again, and what they must have written."""
