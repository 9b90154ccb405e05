"""Reading and writing data files: Parquet, layouts, statistics as they are written.

Knows a table by its `FileLayout` for writing and by its `Snapshot`'s plain values for reading.
"""
