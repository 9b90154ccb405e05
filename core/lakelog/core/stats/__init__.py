"""Statistics of data files: collected, written, read, and used to skip files.

Source: PROTOCOL.md, "Per-file Statistics".
"""
