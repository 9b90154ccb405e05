"""The leaves of a table's columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

from lakelog.core.portable.leaves import leaf_columns, leaves

pc: Any = pyarrow.compute

INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])
OUTER = pa.struct([("i", INNER), ("z", pa.float64()), ("l", pa.list_(pa.int64()))])
ROWS = [
    {"i": {"x": 1, "y": "a"}, "z": 0.5, "l": [1]},
    None,
    {"i": None, "z": None, "l": None},
    {"i": {"x": None, "y": "b"}, "z": 1.5, "l": []},
]


@pytest.mark.parametrize("start", [0, 1, 3])
def test_the_leaves_are_null_where_a_struct_above_them_is(start: int) -> None:
    table = pa.table({"s": pa.chunked_array([ROWS, ROWS[::-1]], OUTER), "n": range(8)})
    table = table.slice(start)
    plain = [each.path for each in leaves(table.schema) if each.plain]
    assert plain == [("s", "i", "x"), ("s", "i", "y"), ("s", "z"), ("n",)]
    found = leaf_columns(table, plain)
    assert list(found) == plain
    for path, column in found.items():
        first, *inner = path
        wanted = pc.struct_field(table[first], inner) if inner else table[first]
        assert column.to_pylist() == wanted.to_pylist()
        assert column.null_count == wanted.null_count
