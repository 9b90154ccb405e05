"""Numbers of rows, and masks of them, without a loop in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc


def numbers(count: int) -> Any:
    """0, 1, … as 64-bit integers."""
    return pc.indices_nonzero(pa.repeat(scalar_of(True, pa.bool_()), count)).cast(pa.int64())


def mask_of(positions: Any, count: int) -> Any:
    """A mask of `count` rows, True at some positions, which ascend."""
    if not len(positions):
        return pa.repeat(scalar_of(False, pa.bool_()), count)
    # The runs of neighbours are few or short; either way there are no more than positions.
    gap = pc.not_equal(positions[1:], pc.add_checked(positions[:-1], 1))
    one = array_of([True], pa.bool_())
    starts = positions.filter(pa.concat_arrays([one, gap]))
    ends = pc.add_checked(positions.filter(pa.concat_arrays([gap, one])), 1)
    bounds = pa.concat_arrays([starts, ends])
    bounds = bounds.take(pc.sort_indices(bounds))
    begins_marked = starts[0].as_py() == 0
    if begins_marked:
        bounds = bounds[1:]
    if bounds[-1].as_py() != count:
        bounds = pa.concat_arrays([bounds, array_of([count], pa.int64())])
    odd = pc.equal(pc.bit_wise_and(numbers(len(bounds)), 1), 0 if begins_marked else 1)
    # Not by `RunEndEncodedArray.from_arrays`, which imports pandas.
    kind = pa.run_end_encoded(bounds.type, odd.type)
    return pc.run_end_decode(pa.Array.from_buffers(kind, count, [None], 0, children=[bounds, odd]))


class Positions(Sequence[int]):
    """Positions as a sequence of ints, for a binary search."""

    def __init__(self, positions: pa.Array[Any]) -> None:
        """Look at an array, without a copy."""
        self._positions = positions

    def __len__(self) -> int:
        """How many there are."""
        return len(self._positions)

    def __getitem__(self, index: Any) -> Any:
        """One of them."""
        return self._positions[index].as_py()
