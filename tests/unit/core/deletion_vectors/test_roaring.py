from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.deletion_vectors.roaring import rows_marked
from support.deletion_vectors import bitmap, native_bitmap

ROWS = 300_000
SINGLE = st.sets(st.integers(0, ROWS - 1), max_size=50)
RUN = st.tuples(st.integers(0, ROWS - 1), st.integers(0, 70_000)).map(
    lambda run: set(range(run[0], min(sum(run), ROWS)))
)
EVERY_OTHER = st.tuples(st.integers(0, ROWS - 1), st.integers(2, 9)).map(
    lambda grid: set(range(grid[0], ROWS, grid[1]))
)
SETS = st.lists(SINGLE | RUN | EVERY_OTHER, max_size=3).map(lambda parts: set().union(*parts))


def marked(data, rows=ROWS):
    marks, count = rows_marked(data, rows)
    assert len(marks) == rows
    found = {row for row, mark in enumerate(marks.to_pylist()) if mark}
    assert count == len(found)
    return found


@given(SETS, st.booleans())
def test_what_another_library_wrote_is_read(rows, optimized):
    assert marked(bitmap(rows, optimized=optimized)) == rows


@given(SETS)
def test_the_older_form_is_read(rows):
    assert marked(native_bitmap(rows)) == rows


@pytest.mark.parametrize("first", range(17))
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 15, 16, 17, 64])
def test_a_run_begins_and_ends_at_any_bit(first, length):
    rows = set(range(first, first + length))
    assert marked(bitmap(rows, optimized=True), rows=first + length) == rows


def test_rows_beyond_the_first_four_thousand_million_have_a_bitmap_of_their_own():
    with pytest.raises(ValueError, match=f"it has row {1 << 32}, but the file has 10 rows"):
        rows_marked(bitmap({3, 1 << 32}), 10)


@pytest.mark.parametrize(
    "rows", [{10}, {9, 10}, set(range(11)), set(range(0, 65_536, 3)), {70_000}], ids=sum
)
def test_a_row_that_the_file_does_not_have_is_an_error(rows):
    for optimized in (False, True):
        with pytest.raises(ValueError, match="but the file has 10 rows"):
            rows_marked(bitmap(rows, optimized=optimized), 10)


def test_a_file_without_rows_has_an_empty_bitmap():
    assert marked(bitmap(set()), rows=0) == set()


GOOD = bitmap({1, 5, *range(70_000, 80_000)}, optimized=True)


@pytest.mark.parametrize("length", range(len(GOOD)))
def test_a_bitmap_that_was_cut_off_is_an_error(length):
    with pytest.raises(ValueError, match="it ends after"):
        rows_marked(GOOD[:length], ROWS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<i", 7) + GOOD[4:], "begins with 7"),
        (struct.pack(">i", 1681511376) + GOOD[4:], "which is neither"),
        (GOOD + b"\0", "1 bytes too many"),
        (struct.pack("<iq", 1681511377, -1), "-1 can't be a count"),
        (struct.pack("<iqi", 1681511377, 1, -1) + GOOD[16:], "-1 can't be a count"),
        (struct.pack("<iqiI", 1681511377, 1, 0, 99), "99 is not the cookie"),
        (struct.pack("<iqiII", 1681511377, 1, 0, 12346, 70_000), "70000 containers"),
        (struct.pack("<iii", 1681511376, 1, 5) + native_bitmap({1})[12:], "not as long"),
    ],
)
def test_what_is_no_such_bitmap_is_an_error_that_says_why(data, message):
    with pytest.raises(ValueError, match=message):
        rows_marked(data, ROWS)


@given(st.binary(max_size=200), st.integers(0, len(GOOD)))
def test_damage_is_an_error_or_some_set_and_nothing_else(noise, at):
    data = GOOD[:at] + noise + GOOD[at + len(noise) :]
    try:
        marks, count = rows_marked(data, ROWS)
    except ValueError:
        return
    assert marks.true_count == count
