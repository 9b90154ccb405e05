"""Arrow's encodings of columns: dictionaries, runs, views and 64-bit offsets, made plain.

A column may say in a few bytes what takes gigabytes as Delta's types have it: hence the size of
rows is that of the decoded ones, and a plain array of text holds less than 2 GiB.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import is_list, is_list_view
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_BYTES: Final = 1 << 30
"""Of a piece of a column; 32-bit offsets would allow twice as much."""


def is_encoded(kind: pa.DataType) -> bool:
    """Whether an array of the type says which of some values each row has."""
    return bool(pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind))


def decoded(array: Any, convert: Callable[[Any], Any]) -> Any:
    """An array without its encoding.

    Args:
        array: of a type for which `is_encoded` is true.
        convert: makes plain arrays of its values, which may be encoded again.

    Raises:
        Exception: what `convert` raises for a value that some row has.
    """
    values, places = _values_and_places(array)
    try:
        plain = convert(values)
    except (DeltaError, ValueError):
        # What no row has needn't fit.
        used = pc.drop_null(pc.unique(places))
        if len(used) == len(values):
            raise
        kept = [values.slice(at, 1) for at in used.to_pylist()]
        plain = convert(pa.concat_arrays(kept) if kept else values.slice(0, 0))
        places = pc.index_in(places, used)
    return plain.take(places)


def without_views(array: Any) -> Any:
    """Text or bytes as a plain array, if they are views; anything else as it is."""
    if not _is_view(array.type):
        return array
    kind = pa.string() if pa.types.is_string_view(array.type) else pa.binary()
    try:
        return array.cast(kind)
    except pa.ArrowNotImplementedError:  # before pyarrow 18
        plain = array_of(array.to_pylist(), kind)
        return pa.chunked_array([plain]) if isinstance(array, pa.ChunkedArray) else plain


def bounded(array: Any) -> list[Any]:
    """The rows of an array, in slices that fit into one plain array each."""
    if not _grows(array.type) or len(array) < 2 or decoded_bytes(array) <= _MOST_BYTES:
        return [array]
    half = len(array) // 2
    return [*bounded(array.slice(0, half)), *bounded(array.slice(half))]


def row_pieces(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    """Rows in slices of limited size.

    Args:
        rows: the rows.
        most: bytes of a slice when it is decoded; one of a single row may have more.
    """
    if rows.num_rows < 2 or table_bytes(rows) <= most:
        yield rows
        return
    half = rows.num_rows // 2
    yield from row_pieces(rows.slice(0, half), most)
    yield from row_pieces(rows.slice(half), most)


def taken(rows: pa.Table, places: pa.Array[Any]) -> pa.Table:
    """`rows.take(places)`, where Arrow's own would join more text than one array holds.

    Args:
        rows: plain ones; their columns may have many chunks.
        places: the numbers of the rows that are wanted, in any order.
    """
    if all(each.num_chunks < 2 for each in rows.columns) or table_bytes(rows) <= _MOST_BYTES:
        try:
            return rows.take(places)
        except pa.ArrowInvalid:  # a row that is wanted very often
            if len(places) < 2:
                raise
    else:
        order = pc.sort_indices(places)
        found = _taken_in_order(rows, places.take(order))
        if len(places) < 2:
            return found
        if table_bytes(found) <= _MOST_BYTES:
            return found.combine_chunks().take(pc.sort_indices(order))
    half = len(places) // 2
    return pa.concat_tables([taken(rows, places[:half]), taken(rows, places[half:])])


def _taken_in_order(rows: pa.Table, ascending: pa.Array[Any]) -> pa.Table:
    parts, start, at = [], 0, 0
    for batch in rows.to_batches():
        end = bisect_left(ascending, start + batch.num_rows, lo=at, key=_python)
        if end > at:
            inside = pc.subtract(ascending[at:end], start)
            parts.append(taken(pa.Table.from_batches([batch]), inside))
        start, at = start + batch.num_rows, end
    return pa.concat_tables(parts) if parts else rows.slice(0, 0)


def _python(value: pa.Scalar[Any]) -> Any:
    return value.as_py()


def table_bytes(rows: pa.Table) -> int:
    """`decoded_bytes` of all columns."""
    return sum(decoded_bytes(chunk) for each in rows.columns for chunk in each.chunks)


def held_bytes(rows: pa.Table) -> int:
    """About how many bytes the columns take as they are."""
    try:
        return int(rows.nbytes)
    except pa.ArrowTypeError:  # of views, before pyarrow 24
        chunks = (chunk for each in rows.columns for chunk in each.chunks)
        return sum(buffer.size for each in chunks for buffer in each.buffers() if buffer)


def decoded_bytes(array: Any) -> int:
    """About how many bytes an array takes once it is plain."""
    kind = array.type
    if not _grows(kind):
        return int(array.nbytes)
    if is_encoded(kind):
        values, places = _values_and_places(array)
        return int(pc.sum(_sizes(values).take(places)).as_py() or 0)
    if _is_view(kind):
        return int(pc.sum(_sizes(array)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(decoded_bytes(array.field(at)) for at in range(array.type.num_fields))
    if pa.types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        parts = (array.keys, array.items)
        return sum(decoded_bytes(each.slice(first, last - first)) for each in parts)
    if is_list(kind):
        return decoded_bytes(_elements(array)) + 4 * len(array)
    return int(array.nbytes)


def _elements(array: Any) -> Any:
    try:
        return array.flatten()
    except pa.ArrowNotImplementedError:  # of views of lists
        return array.values


@lru_cache(maxsize=1024)
def _grows(kind: pa.DataType) -> bool:
    """Whether an array of the type may be too large for a plain one."""
    types = pa.types
    large = types.is_large_string(kind) or types.is_large_binary(kind)
    if is_encoded(kind) or _is_view(kind) or large or types.is_large_list(kind):
        return True
    if is_list_view(kind):  # rows may share their elements
        return True
    if types.is_struct(kind):
        return any(_grows(each.type) for each in kind)
    if types.is_map(kind):
        return _grows(kind.key_type) or _grows(kind.item_type)
    return is_list(kind) and _grows(kind.value_type)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _values_and_places(array: Any) -> tuple[Any, Any]:
    """The values of an encoded array, and which of them each row has."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary, array.indices
    values = array.values
    numbers = pa.nulls(0, pa.int64())
    if len(array):
        numbers = pc.run_end_decode(
            pa.Array.from_buffers(
                pa.run_end_encoded(array.type.run_end_type, pa.int64()),
                len(array),
                [None],
                0,
                array.offset,
                children=[array.run_ends, _multiples(len(values), 1)],
            )
        )
    return values, numbers


def _sizes(values: Any) -> Any:
    """The bytes of each value, at least; of nested ones what all of them take."""
    kind, count = values.type, len(values)
    if is_encoded(kind):
        inner, places = _values_and_places(values)
        return _sizes(inner).take(places)
    if _is_view(kind):
        # Sixteen bytes are a value, the first four of which are its length.
        parts = pa.Array.from_buffers(
            pa.int32(), 4 * count, [None, values.buffers()[1]], 0, 4 * values.offset
        )
        sizes = parts.take(_multiples(count, 4)).cast(pa.int64())
    elif (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    ):
        sizes = pc.binary_length(values).cast(pa.int64())
    else:
        whole = decoded_bytes(values)
        each = whole if pa.types.is_nested(kind) else -(-whole // max(count, 1))
        return pa.repeat(scalar_of(each, pa.int64()), count)
    return pc.if_else(values.is_valid(), pc.add(sizes, 4), 4)


def _multiples(count: int, step: int) -> Any:
    """0, `step`, 2 * `step` and so on."""
    if not count:
        return pa.nulls(0, pa.int64())
    return pc.subtract(pc.cumulative_sum(pa.repeat(scalar_of(step, pa.int64()), count)), step)
