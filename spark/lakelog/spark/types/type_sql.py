"""Types of a table as SQL has them."""

from __future__ import annotations

from lakelog.core.schema import ArrayType, DataType, MapType, StructType
from lakelog.spark.types.path_forms import quoted


def type_sql(data_type: DataType) -> str:
    """A type as SQL, with its field names quoted."""
    match data_type:
        case StructType(fields=fields):
            inner = ", ".join(f"{quoted(f.name)}: {type_sql(f.data_type)}" for f in fields)
            return f"struct<{inner}>"
        case ArrayType(element_type=element):
            return f"array<{type_sql(element)}>"
        case MapType(key_type=key, value_type=value):
            return f"map<{type_sql(key)}, {type_sql(value)}>"
    return str(data_type)
