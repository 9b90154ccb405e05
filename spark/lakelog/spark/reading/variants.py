"""Variants from Arrow to Spark, which recognises them by metadata on one of their parts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakelog.core.engine.values import ARROW_VARIANT, filled_variants, has_variants

# Spark takes the parts by position.
_MARKED = [
    pa.field("value", pa.binary(), nullable=False),
    pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
]


def for_spark(table: pa.Table) -> pa.Table:
    """The same rows, with variants that Spark reads as its own `VariantType`."""
    if not has_variants(table.schema):
        return table
    columns = [
        _with_variant_metadata(filled_variants(each.combine_chunks())) for each in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _with_variant_metadata(array: Any) -> Any:
    kind = array.type
    if pa.types.is_struct(kind):
        mask = array.is_null() if array.null_count else None
        if kind == ARROW_VARIANT:
            parts = [array.field("value"), array.field("metadata")]
            return pa.StructArray.from_arrays(parts, fields=_MARKED, mask=mask)
        parts = [_with_variant_metadata(array.field(i)) for i in range(kind.num_fields)]
        fields = [kind.field(i).with_type(each.type) for i, each in enumerate(parts)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if pa.types.is_map(kind):
        items = _with_variant_metadata(array.items)
        whole = pa.map_(kind.key_field, kind.item_field.with_type(items.type))
        fields = [whole.key_field, whole.item_field]
        return _with_child(
            array, whole, pa.StructArray.from_arrays([array.keys, items], fields=fields)
        )
    if pa.types.is_list(kind):
        values = _with_variant_metadata(array.values)
        return _with_child(array, pa.list_(kind.value_field.with_type(values.type)), values)
    return array


def _with_child(array: Any, kind: pa.DataType, child: Any) -> Any:
    shape = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), shape, array.null_count, array.offset, children=[child]
    )
