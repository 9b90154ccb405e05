"""Deletion vectors: their bitmaps, their files, and what must hold of them.

Source: PROTOCOL.md, "Deletion Vectors" and "Deletion Vector Format".
"""
