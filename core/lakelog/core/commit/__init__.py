"""How one commit gets into the log: checked, drafted, written, and settled when replies are lost.

Knows the table's metadata and protocol, the conflict rules and the store. It doesn't know
`DeltaLog`, nor who asked for the commit.
"""
