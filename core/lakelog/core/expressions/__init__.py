"""Expressions of Spark's SQL: conditions on rows, and values.

`parse` makes a tree of text, `filter` binds a condition in any form to a schema. What a tree means
is said by its targets: `values` computes Arrow arrays, `arrow` filters rows, `prune` chooses files.
A tree decides what is read, and so what conflicts: whatever it can't understand is kept opaque, and
never narrows a read.
"""
