"""Conditions on rows: the tree, and how its names are bound to a schema.

A tree decides what is read, and so what conflicts. Whatever it can't understand is kept opaque,
and never narrows a read.
"""
