"""The statistics of a file that gets a deletion vector.

Bounds and null counts stay those of all rows that the file holds, so that from now on they only
bound the rows that are left: `tightBounds` is false (PROTOCOL.md, "Per-file Statistics"). The
number of rows is required then, as readers take the vector's cardinality from it.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

__all__ = ["with_wide_bounds"]


def with_wide_bounds(stats: str | None, rows: int) -> str:
    """The text of `add.stats` with `numRecords`, and `tightBounds` false.

    Args:
        stats: as the file had it; statistics that can't be read are dropped.
        rows: how many the file holds, deleted ones included.
    """
    # Numbers stay as they are spelled: as a float, the bound of a decimal would move.
    raw: Any = orjson.Fragment
    try:
        found = json.loads(stats or "{}", parse_int=raw, parse_float=raw, parse_constant=_refuse)
    except ValueError:
        found = {}
    if not isinstance(found, dict):
        found = {}
    return orjson.dumps({**found, "numRecords": rows, "tightBounds": False}).decode()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
