from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap64

from lakelog.core.deletion_vectors.roaring import (
    Container,
    bitmap_of,
    joined_containers,
    rows_marked,
)

MAGIC = 4


def marks_of(rows: set[int], count: int) -> pa.BooleanArray:
    bits = bytearray((count + 7) // 8)
    for row in rows:
        bits[row >> 3] |= 1 << (row & 7)
    return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bytes(bits))])


def read_by_pyroaring(data: bytes) -> set[int]:
    return set(BitMap64.deserialize(data[MAGIC:]))


@st.composite
def sets_of_rows(draw):
    """Rows alone, in runs, and in dense stretches: each of Roaring's three kinds of containers."""
    count = draw(st.integers(1, 200_000))
    rows: set[int] = set(draw(st.sets(st.integers(0, count - 1), max_size=40)))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, count - 1))
        end = draw(st.integers(start, min(count, start + 70_000)))
        rows.update(range(start, end, draw(st.sampled_from([1, 1, 2, 3, 17]))))
    return rows, count


@given(sets_of_rows())
@example((set(range(65_536)), 65_536))
@example((set(range(0, 65_537, 2)), 65_537))
@example((set(), 1))
def test_what_is_written_is_read_by_us_and_by_another_library(case):
    rows, count = case

    data = bitmap_of(marks_of(rows, count))

    marks, found = rows_marked(data, count)
    assert found == len(rows)
    assert marks.equals(marks_of(rows, count))
    assert read_by_pyroaring(data) == rows


@given(sets_of_rows(), st.integers(0, 70))
def test_a_slice_is_written_as_the_rows_that_it_shows(case, cut):
    rows, count = case
    cut = min(cut, count - 1)

    data = bitmap_of(marks_of(rows, count).slice(cut))

    assert read_by_pyroaring(data) == {row - cut for row in rows if row >= cut}


def test_each_container_has_the_form_that_takes_the_fewest_bytes():
    rows = 65_536
    few = bitmap_of(marks_of({1, 5, 9}, rows))
    dense = bitmap_of(marks_of(set(range(0, rows, 2)), rows))
    run = bitmap_of(marks_of(set(range(10, 60_000)), rows))

    assert len(few) < 50
    assert 8192 <= len(dense) < 8250
    assert len(run) < 50


@pytest.mark.parametrize("count", [1, 3, 4, 9])
@pytest.mark.parametrize("is_run", [False, True])
def test_bitmaps_of_few_and_of_many_containers_are_readable(count, is_run):
    rows = {
        (i << 16) + k for i in range(count) for k in (range(100) if is_run and i % 2 == 0 else [7])
    }

    assert read_by_pyroaring(bitmap_of(marks_of(rows, count << 16))) == rows


def test_rows_above_32_bits_get_a_bitmap_of_their_own():
    low = Container(3, 1, b"\x05\x00", is_run=False)
    high = Container((2 << 16) + 1, 1, b"\x06\x00", is_run=False)

    data = joined_containers([low, high])

    assert read_by_pyroaring(data) == {(3 << 16) + 5, (2 << 32) + (1 << 16) + 6}
