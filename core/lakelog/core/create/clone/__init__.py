"""CLONE: a new table with the rows of another."""

__all__: list[str] = []
