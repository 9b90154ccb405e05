"""Reading what changed between versions: the rows, and the files that hold them.

Builds on the reading half of `DeltaLog` and on `data`. It writes nothing.
"""
