"""A table as the source of a stream: offsets, and the files between two of them. No engine."""
