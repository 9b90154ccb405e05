"""Short columns are asked without `pyarrow.compute`, and say the same as by it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelog.core.compute import total, without_nulls

NESTED = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])


def _rows(pattern: str) -> pa.Array:
    rows = [{"a": n, "b": [str(n)]} if mark == "x" else None for n, mark in enumerate(pattern)]
    return pa.array(rows, NESTED)


@pytest.mark.parametrize(
    "pattern", ["", "x", ".", "xx", "..", ".xx.", "x..x.xx...x", "x." * 600, "." * 2000]
)
@pytest.mark.parametrize("offset", [0, 1])
def test_nulls_are_left_out_as_arrow_does_it(pattern: str, offset: int) -> None:
    column = _rows(pattern).slice(min(offset, len(pattern)))
    found = without_nulls(column)
    assert found.type == NESTED
    assert found.to_pylist() == column.drop_null().to_pylist()


@pytest.mark.parametrize("values", [[], [None], [1, None, 2], [7] * 1001, [None] * 1001])
def test_a_total_counts_what_is_there(values: list[int | None]) -> None:
    column = pa.chunked_array([values], pa.int64())
    assert total(column) == sum(value or 0 for value in values)
