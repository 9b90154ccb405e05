"""Structured Streaming: queries that write Delta tables, and what makes a batch count once."""
