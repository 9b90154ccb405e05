"""Columns of `CHAR(n)` and `VARCHAR(n)` as Arrow data: filled up with spaces, as they are stored
and compared, and looked through for what is too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of
from lakelog.core.compute import pc
from lakelog.core.schema.char_varchar import (
    fields_within,
    items_within,
    limit_itself,
    limit_of,
    limits_within,
    padding_of,
)

if TYPE_CHECKING:
    from lakelog.core.schema import StructField, StructType


def with_padding(rows: pa.Table, schema: StructType) -> pa.Table:
    """Rows with each `CHAR` filled up to its length, at any depth.

    What is too long stays so, for the rule to refuse it.

    Args:
        rows: columns by the names of `schema`.
        schema: of the columns.
    """
    for field in schema:
        limit, at = limit_of(field), rows.schema.get_field_index(field.name)
        if at < 0:
            continue
        column: Any = rows.column(at)
        if limit is not None:
            if not limit.pads or not pa.types.is_string(column.type):
                continue
            padded = pc.utf8_rpad(column, limit.length, padding=" ")
        elif (kind := padding_of(field)) is not None:
            chunks = [_padded(each, kind) for each in column.chunks]
            padded = pa.chunked_array(chunks, type=column.type)
        else:
            continue
        rows = rows.set_column(at, rows.schema.field(at), padded)
    return rows


def too_long(column: pa.ChunkedArray[Any], field: StructField) -> pa.ChunkedArray[Any]:
    """Which rows have a string that is longer than a `CHAR` or `VARCHAR` allows, at any depth.

    Args:
        column: of the field.
        field: of the table.
    """
    limit = limit_of(field)
    if limit is not None:
        chunks = [_longer(each, limit.length) for each in column.chunks]
    else:
        kind = limits_within(field)
        chunks = [_too_long(each, kind) for each in column.chunks]
    return pa.chunked_array(chunks, type=pa.bool_())


def _longer(texts: Any, length: int) -> Any:
    return pc.fill_null(pc.greater(pc.utf8_length(texts), length), False)


def _too_long(values: Any, kind: Any) -> Any:
    """Of each value of an array, by what `limits_within` says of it."""
    of, found = values.type, pa.repeat(False, len(values))
    if kind is None:
        return found
    if pa.types.is_string(of):
        limit = limit_itself(kind)
        return found if limit is None else _longer(values, limit.length)
    if pa.types.is_struct(of):
        known = fields_within(kind)
        for i in range(of.num_fields):
            inner = known.get(of[i].name.lower())
            found = pc.or_(found, _too_long(values.field(i), inner))
    elif pa.types.is_map(of):
        keys, items = items_within(kind, "MAP", 2) or (None, None)
        found = _in_lists(
            values, pc.or_(_too_long(values.keys, keys), _too_long(values.items, items))
        )
    elif pa.types.is_list(of):
        (item,) = items_within(kind, "ARRAY", 1) or (None,)
        found = _in_lists(values, _too_long(values.values, item))
    return pc.and_(found, values.is_valid())


def _in_lists(lists: Any, found: Any) -> Any:
    """Which lists or maps have an element that was found."""
    counts = pc.cumulative_sum(found.cast(pa.int64()))
    before = pa.concat_arrays([array_of([0], pa.int64()), counts]).take(lists.offsets)
    return pc.greater(before[1:], before[:-1])


def _padded(values: Any, kind: Any) -> Any:
    """An array, by what `padding_of` says of it."""
    of = values.type
    if pa.types.is_string(of):
        limit = limit_itself(kind)
        if limit is None or not limit.pads:
            return values
        return pc.utf8_rpad(values, limit.length, padding=" ")
    if pa.types.is_struct(of):
        known = fields_within(kind)
        parts = [
            _padded(values.field(i), known[of[i].name.lower()])
            if of[i].name.lower() in known
            else values.field(i)
            for i in range(of.num_fields)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(of), mask=values.is_null())
    within, inner = None, None
    if pa.types.is_map(of):
        within = items_within(kind, "MAP", 2)
        if within is not None:
            pairs = zip((values.keys, values.items), within, strict=True)
            entries = [_padded(each, inner) for each, inner in pairs]
            inner = pa.StructArray.from_arrays(entries, fields=[of.key_field, of.item_field])
    elif pa.types.is_list(of):
        within = items_within(kind, "ARRAY", 1)
        if within is not None:
            inner = _padded(values.values, within[0])
    if within is None:
        return values
    buffers = values.buffers()[:2]
    return pa.Array.from_buffers(
        of, len(values), buffers, values.null_count, values.offset, children=[inner]
    )
