"""`pyarrow.compute`, loaded at its first use.

It is a fifth of what importing the core would cost, and a blind append needs none of it. Its
functions are made while it is imported, where no type checker sees them: hence `Any`. What a
short column is asked needs none of it.
"""

from __future__ import annotations

import importlib
from itertools import groupby
from typing import Any

import pyarrow as pa

__all__ = ["pc", "total", "without_nulls"]

# The import takes as long as some thousand values in a loop.
_WORTH_THE_IMPORT = 1000


class _Late:
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module("pyarrow.compute"), name)
        setattr(self, name, value)
        return value


pc: Any = _Late()


def total(column: Any) -> int:
    """The sum of a column of whole numbers, without its nulls."""
    if len(column) > _WORTH_THE_IMPORT:
        return int(pc.sum(column).as_py() or 0)
    return sum(value for value in column.to_pylist() if value is not None)


def without_nulls(column: Any) -> Any:
    """What `pyarrow.Array.drop_null` gives."""
    if not column.null_count:
        return column
    if len(column) > _WORTH_THE_IMPORT:
        return column.drop_null()
    rows = [number for number, value in enumerate(column) if value.is_valid]
    # In a run of neighbours the numbers grow as their places do.
    runs = [
        [row for _, row in run]
        for _, run in groupby(enumerate(rows), lambda each: each[1] - each[0])
    ]
    parts = [column.slice(run[0], len(run)) for run in runs]
    return pa.concat_arrays(parts) if parts else column.slice(0, 0)
