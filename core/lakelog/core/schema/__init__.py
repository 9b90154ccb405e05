"""Schemas as the log has them: types, columns, and the rules for both.

Source: PROTOCOL.md, "Schema Serialization Format".
"""

from lakelog.core.schema.column_fills import (
    column_with_default,
    generated_column,
    identity_column,
)
from lakelog.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    type_from_json_value,
)

__all__ = [
    "ArrayType",
    "DataType",
    "DecimalType",
    "MapType",
    "PrimitiveType",
    "StructField",
    "StructType",
    "column_with_default",
    "generated_column",
    "identity_column",
    "type_from_json_value",
]
