"""The Arrow schema of a table's data files: physical names, and Parquet's field ids.

pyarrow writes the id from a field's metadata under `PARQUET:field_id`, and puts it
there when it reads. Struct fields have ids with column mapping; elements, keys and values only
where the nearest struct field lists them (`delta.columnMapping.nested.ids`, for Iceberg).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.schema import ArrayType, DataType, MapType, StructField, StructType
from lakelog.core.schema.column_mapping import FIELD_ID, ID_KEY, NESTED_IDS, physical_name

if TYPE_CHECKING:
    from collections.abc import Mapping


def stored_schema(schema: StructType) -> pa.Schema | None:
    """The schema of a table's data files; `None` for a table without column mapping.

    Args:
        schema: with the metadata of column mapping only where it counts.

    Raises:
        DeltaAnalysisError: a type that Arrow can't write.
    """
    if not any(ID_KEY in each.metadata for each in schema):
        return None
    return pa.schema([_field(each) for each in schema])


def _field(field: StructField) -> pa.Field[Any]:
    name = physical_name(field)
    nested = field.metadata.get(NESTED_IDS)
    kind = _type(field.data_type, nested if isinstance(nested, dict) else {}, name)
    return pa.field(name, kind, field.nullable, _id(field.metadata.get(ID_KEY)))


def _type(kind: DataType, nested: Mapping[str, int], path: str) -> pa.DataType:
    """The type, whose parts have the ids of `nested`; `path` leads to it from the nearest field."""
    match kind:
        case StructType():
            return pa.struct([_field(each) for each in kind])
        case ArrayType(element, contains_null):
            return pa.list_(_part("element", element, contains_null, nested, path))
        case MapType(key, value, value_contains_null):
            return pa.map_(
                _part("key", key, False, nested, path),
                _part("value", value, value_contains_null, nested, path),
            )
    return to_arrow_type(kind, path=(path,))


def _part(
    name: str, kind: DataType, nullable: bool, nested: Mapping[str, int], path: str
) -> pa.Field[Any]:
    inner = f"{path}.{name}"
    return pa.field(name, _type(kind, nested, inner), nullable, _id(nested.get(inner)))


def _id(number: object) -> dict[bytes, bytes] | None:
    return {FIELD_ID: str(number).encode()} if isinstance(number, int) else None
