"""Finding the source rows with the same keys as a row of the target, by hash tables of Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc

if TYPE_CHECKING:
    from collections.abc import Sequence


def comparable(values: Any) -> pa.Array[Any]:
    """Keys in a form in which equal ones are the same: NaN is NaN, and -0.0 is 0.0."""
    data = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(data, pa.ChunkedArray):  # too much text for one array
        data = data.cast(pa.large_string() if pa.types.is_string(data.type) else pa.large_binary())
        data = data.combine_chunks()
    if not pa.types.is_floating(data.type):
        return data
    bits = pa.int32() if pa.types.is_float32(data.type) else pa.int64()
    data = pc.add_checked(data, scalar_of(0.0, data.type))
    nan = scalar_of(float("nan"), data.type)
    return pc.if_else(pc.is_nan(data), nan, data).view(bits)


class SourceIndex:
    """The rows of the source by their keys.

    Each key column is numbered by its distinct values, and pairs of numbers are numbered again, so
    that any number of columns ends as one number: the group of rows that have these keys.
    """

    def __init__(self, keys: Sequence[pa.Array[Any]], null_safe: Sequence[bool]) -> None:
        """Number the rows.

        Args:
            keys: one array for each key column, from `comparable`.
            null_safe: for each, whether null equals null; else a row with a null matches nothing.
        """
        self._null_safe = tuple(null_safe)
        self._values: list[pa.Array[Any]] = []
        self._pairs: list[pa.Array[Any] | None] = []
        codes: Any = None
        for data, safe in zip(keys, null_safe, strict=True):
            distinct = pc.unique(data)
            if not safe:
                distinct = distinct.drop_null()
            self._values.append(distinct)
            mine = pc.index_in(data, value_set=distinct, skip_nulls=not safe).cast(pa.int64())
            if codes is None:
                codes = mine
                self._pairs.append(None)
                continue
            joined = self._joined(codes, mine, len(distinct))
            known = pc.unique(joined).drop_null()
            self._pairs.append(known)
            codes = pc.index_in(joined, value_set=known, skip_nulls=True).cast(pa.int64())
        self._arrange(codes)

    def _arrange(self, codes: Any) -> None:
        order = pc.sort_indices(codes).cast(pa.int64())
        self._rows = order.slice(0, len(codes) - codes.null_count)
        counted = pc.value_counts(codes.drop_null())
        counts = counted.field("counts").take(pc.sort_indices(counted.field("values")))
        self.is_unique: bool = len(counts) == len(self._rows)
        self._groups = None
        if not self.is_unique:
            ends = pc.cumulative_sum(counts).cast(pa.int32())
            offsets = pa.concat_arrays([array_of([0], pa.int32()), ends])
            self._groups = pa.ListArray.from_arrays(offsets, self._rows)

    @staticmethod
    def _joined(left: Any, right: Any, count: int) -> Any:
        # Numbers of groups are below the number of rows, so that the product fits 64 bits.
        return pc.add_checked(pc.multiply_checked(left, scalar_of(count, pa.int64())), right)

    def pairs(self, keys: Sequence[pa.Array[Any]]) -> tuple[pa.Array[Any], pa.Array[Any]]:
        """For rows with these keys, each of them with each source row that has the same.

        Args:
            keys: as for the index itself, of the target's rows.

        Returns:
            Which of the rows, in ascending order, and which source rows.
        """
        codes: Any = None
        steps = zip(keys, self._null_safe, self._values, self._pairs, strict=True)
        for given, safe, distinct, known in steps:
            data = given if given.type == distinct.type else given.cast(distinct.type)
            mine = pc.index_in(data, value_set=distinct, skip_nulls=not safe).cast(pa.int64())
            if known is None:
                codes = mine
                continue
            joined = self._joined(codes, mine, len(distinct))
            codes = pc.index_in(joined, value_set=known, skip_nulls=True).cast(pa.int64())
        places = pc.indices_nonzero(codes.is_valid()).cast(pa.int64())
        codes = codes.drop_null()
        if self._groups is None:
            return places, self._rows.take(codes)
        groups = self._groups.take(codes)
        return places.take(pc.list_parent_indices(groups)), groups.flatten()
