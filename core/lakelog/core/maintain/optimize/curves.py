"""Places of rows on a curve through several columns, on which near rows have near values.

Each value becomes the number of the range that it is in, of some thousand ranges with about as
many rows each; the numbers of a row become one by Z-order, which interleaves their bits, or by
Hilbert's curve (J. Skilling, "Programming the Hilbert curve", AIP 707, 2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc

if TYPE_CHECKING:
    from collections.abc import Sequence

_RANGES = 1000
_MOST_BITS = 10
_KEY_BITS = 62


@dataclass(frozen=True, slots=True)
class Ranges:
    """Where the ranges of a column end."""

    bounds: pa.Array[Any]
    """Ascending, without nulls."""

    @classmethod
    def sampled(cls, values: pa.ChunkedArray[Any], bits: int) -> Ranges:
        """Ranges with about as many of some sampled values each, numbered by so many bits."""
        kept = pc.drop_null(_plain(values))
        order = kept.take(pc.sort_indices(kept))
        count = min(_RANGES, (1 << bits) - 1)
        places = sorted({len(kept) * i // count for i in range(1, count)})
        bounds = order.take(array_of(places[: max(0, len(kept))], pa.int64())) if places else order
        if isinstance(bounds, pa.ChunkedArray):
            bounds = bounds.combine_chunks()
        return cls(pc.unique(bounds))

    def numbers(self, values: pa.ChunkedArray[Any]) -> pa.Array[Any]:
        """The range of each value: how many bounds are below it. Null is in the first."""
        plain = _plain(values).combine_chunks()
        if not len(self.bounds):
            return _zeros(len(plain))
        return pc.if_else(pc.is_valid(plain), pc.fill_null(counted_below(self.bounds, plain), 0), 0)


class Curve:
    """A curve of one table, or of those of its partitions that are ordered together."""

    def __init__(self, kind: str, samples: Sequence[pa.ChunkedArray[Any]]) -> None:
        """Lay it through a sample of rows.

        Args:
            kind: `zorder` or `hilbert`.
            samples: the values of each column.
        """
        self._bits = max(1, min(_MOST_BITS, _KEY_BITS // len(samples)))
        self._ranges = [Ranges.sampled(each, self._bits) for each in samples]
        self._key = hilbert if kind == "hilbert" and len(samples) > 1 else interleaved

    def places(self, columns: Sequence[pa.ChunkedArray[Any]]) -> pa.Array[Any]:
        """Where each row is on the curve: 64-bit numbers, not negative."""
        pairs = zip(self._ranges, columns, strict=True)
        return self._key([ranges.numbers(values) for ranges, values in pairs], self._bits)


def interleaved(numbers: Sequence[pa.Array[Any]], bits: int) -> pa.Array[Any]:
    """The numbers' bits in turn, the highest of the first number first."""
    key = _zeros(len(numbers[0]))
    for bit in reversed(range(bits)):
        for each in numbers:
            one = pc.bit_wise_and(pc.shift_right(each, bit), 1)
            key = pc.bit_wise_or(pc.shift_left(key, 1), one)
    return key


def hilbert(numbers: Sequence[pa.Array[Any]], bits: int) -> pa.Array[Any]:
    """The places on Hilbert's curve of points with these coordinates."""
    axes: list[Any] = list(numbers)
    for bit in reversed(range(1, bits)):
        low = (1 << bit) - 1
        for at, axis in enumerate(axes):
            is_set = pc.not_equal(pc.bit_wise_and(axis, 1 << bit), 0)
            swap = pc.bit_wise_and(pc.bit_wise_xor(axes[0], axis), low)
            inverted = pc.bit_wise_xor(axes[0], low)
            swapped = pc.bit_wise_xor(axis, swap)
            axes[0] = pc.if_else(is_set, inverted, pc.bit_wise_xor(axes[0], swap))
            if at:
                axes[at] = pc.if_else(is_set, axis, swapped)
    for at in range(1, len(axes)):
        axes[at] = pc.bit_wise_xor(axes[at], axes[at - 1])
    turned = _zeros(len(axes[0]))
    for bit in reversed(range(1, bits)):
        is_set = pc.not_equal(pc.bit_wise_and(axes[-1], 1 << bit), 0)
        turned = pc.if_else(is_set, pc.bit_wise_xor(turned, (1 << bit) - 1), turned)
    return interleaved([pc.bit_wise_xor(axis, turned) for axis in axes], bits)


def counted_below(
    bounds: pa.Array[Any], values: pa.Array[Any], *, equal: bool = False
) -> pa.Array[Any]:
    """How many ascending bounds are below each value; null, or anything, for null.

    Args:
        bounds: without nulls.
        values: of the same type.
        equal: also count those that are equal to it.
    """
    try:
        found = pc.search_sorted(bounds, values, side="right" if equal else "left")
    except (AttributeError, pa.ArrowNotImplementedError):
        # An older Arrow, or a type that it can't search: the ranks that the bounds add.
        rank = "max" if equal else "min"
        both = pa.concat_arrays([bounds, values])
        among = pc.rank(both, "ascending", tiebreaker=rank).slice(len(bounds))
        alone = pc.rank(values, "ascending", tiebreaker=rank)
        found = pc.subtract_checked(pc.cast(among, pa.int64()), pc.cast(alone, pa.int64()))
    return pc.cast(found, pa.int64())


def _zeros(count: int) -> Any:
    return pa.repeat(scalar_of(0, pa.int64()), count)


def _plain(values: pa.ChunkedArray[Any]) -> Any:
    """Values of a type that can be ranked."""
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
