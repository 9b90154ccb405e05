"""Condensing the log: checkpoints, cleanup of what expired, symlink manifests.

`log` reads, `commit` adds, `maintenance` condenses.
"""
