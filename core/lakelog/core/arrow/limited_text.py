"""Columns of `CHAR(n)` as Arrow data: filled up with spaces, as they are stored and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.schema.char_varchar import (
    char_length,
    fields_within,
    items_within,
    limit_of,
    padding_of,
)

if TYPE_CHECKING:
    from lakelog.core.schema import StructType


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


def _padded(values: Any, kind: Any) -> Any:
    """An array, by what the mark says of it; that may be older than the type."""
    of = values.type
    if pa.types.is_string(of):
        length = char_length(kind)
        return values if length is None else pc.utf8_rpad(values, length, padding=" ")
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
