"""Small files come in few batches, large ones as they are, and no row is lost or moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelog.spark.reading import joined
from lakelog.spark.reading.joined import joined_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


def _tables(sizes: list[int]) -> Iterator[pa.Table]:
    at = 0
    for size in sizes:
        yield pa.table({"id": np.arange(at, at + size)})
        at += size


def test_a_thousand_files_of_a_row_come_in_a_few_batches() -> None:
    counts = [each.num_rows for each in joined_batches(_tables([1] * 1000))]
    assert counts == [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 488]


def test_the_first_rows_come_with_the_first_file() -> None:
    read = []

    def tables() -> Iterator[pa.Table]:
        for each in _tables([1] * 1000):
            read.append(each)
            yield each

    next(joined_batches(tables()))
    assert len(read) == 1


@given(st.lists(st.sampled_from([0, 1, 2, 7, 100, 70_000, 600_000])))
def test_all_rows_come_in_their_order(sizes: list[int]) -> None:
    found = list(joined_batches(_tables(sizes)))
    ids = pa.chunked_array([each.column(0) for each in found], pa.int64())
    assert ids.equals(pa.chunked_array([np.arange(sum(sizes))], pa.int64()))
    assert all(each.num_rows <= 1 << 16 for each in found)


def test_large_tables_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "_JOINED_BYTES", 800)
    tables = list(_tables([1, 1, 1, 100, 1]))
    found = list(joined_batches(tables))
    assert [each.num_rows for each in found] == [1, 1, 1, 100, 1]
    large = found[3].column(0).buffers()[1]
    assert large is not None
    assert large.address == tables[3]["id"].chunk(0).buffers()[1].address


def test_tables_without_columns_keep_their_rows() -> None:
    empty = [each.select([]) for each in _tables([2, 3])]
    expected = [batch.num_rows for each in empty for batch in each.to_batches()]
    assert [each.num_rows for each in joined_batches(empty)] == expected
