"""Reading the files of `_delta_log`: their names, segments, commits, checkpoints.

`log` reads, `commit` adds, `maintenance` condenses.
"""
