"""Delta types <-> Arrow types, and casts to exactly the Arrow type of a Delta column.

| Delta | Arrow |
|---|---|
| string, binary, boolean | utf8, binary, bool |
| byte, short, integer, long | int8, int16, int32, int64 |
| float, double | float32, float64 |
| decimal(p,s) | decimal128(p, s) |
| date | date32 |
| timestamp, timestamp_ntz | timestamp(us, tz), timestamp(us) |
| array, map, struct | list<element>, map<key, value>, struct |
| void | null |
| variant | struct<metadata, value>, two binaries that are not null |
| interval day to second | duration(us) |
| interval year to month | int32: the number of months |

On the way in Arrow has many spellings of one thing (large, view, dictionary, run-end encoded);
they are taken where the values fit. Seconds, milliseconds and nanoseconds count as timestamps, and
as durations; a value with a part smaller than a microsecond is refused when it is cast, never cut.
Arrow has a type for months, but pyarrow and Parquet do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow.variant_values import ARROW_VARIANT
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.rules import check_known
from lakelog.core.schema.types import DAY_TIME, YEAR_MONTH, is_known

if TYPE_CHECKING:
    from collections.abc import Sequence

_TO_ARROW = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    DAY_TIME.name: pa.duration("us"),
    YEAR_MONTH.name: pa.int32(),
}
_FROM_ARROW = {
    **{
        arrow: name
        for name, arrow in _TO_ARROW.items()
        if name not in ("timestamp_ntz", YEAR_MONTH.name)
    },
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    # Parquet has unsigned integers but Delta does not: the next wider type holds them all.
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.float16(): "float",
    pa.date64(): "date",
}


def to_arrow_type(
    data_type: DataType, *, timestamps: str = "UTC", path: Sequence[str] = ()
) -> pa.DataType:
    """The Arrow type of a Delta type.

    Args:
        data_type: the Delta type.
        timestamps: time zone in the Arrow type of `timestamp`; the values are UTC in any case.
        path: the column, for messages.

    Raises:
        DeltaAnalysisError: a type that this version does not know; names the column.
    """
    match data_type:
        case PrimitiveType("timestamp"):
            return pa.timestamp("us", tz=timestamps)
        case PrimitiveType("variant"):
            return ARROW_VARIANT
        case PrimitiveType(name) if name in _TO_ARROW:
            return _TO_ARROW[name]
        case DecimalType(precision, scale) if is_known(data_type):
            return pa.decimal128(precision, scale)
        case StructType():
            return pa.struct(
                [to_arrow_field(f, timestamps=timestamps, path=path) for f in data_type]
            )
        case ArrayType(element, contains_null):
            inner = to_arrow_type(element, timestamps=timestamps, path=(*path, "element"))
            return pa.list_(pa.field("element", inner, nullable=contains_null))
        case MapType(key, value, value_contains_null):
            keys = to_arrow_type(key, timestamps=timestamps, path=(*path, "key"))
            values = to_arrow_type(value, timestamps=timestamps, path=(*path, "value"))
            return pa.map_(
                pa.field("key", keys, nullable=False),
                pa.field("value", values, nullable=value_contains_null),
            )
        case _:
            check_known(data_type, tuple(path))
            raise AssertionError(data_type)  # a type is one of those above, or not known


def to_arrow_field(
    field: StructField, *, timestamps: str = "UTC", path: Sequence[str] = ()
) -> pa.Field[Any]:
    """The Arrow field of a Delta column; `path` is the path of its parent."""
    inner = (*path, field.name)
    arrow = to_arrow_type(field.data_type, timestamps=timestamps, path=inner)
    return pa.field(field.name, arrow, nullable=field.nullable)


def to_arrow_schema(schema: StructType, *, timestamps: str = "UTC") -> pa.Schema:
    """The Arrow schema of a Delta schema, in the same order.

    Args:
        schema: the Delta schema.
        timestamps: time zone in the Arrow type of `timestamp` columns.
    """
    return pa.schema([to_arrow_field(f, timestamps=timestamps) for f in schema])


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """The Delta schema of Arrow data.

    A timestamp with a zone is `timestamp`, one without is `timestamp_ntz`. Metadata of fields is
    dropped: it belongs to the format the data came from.

    Raises:
        DeltaAnalysisError: a type that Delta does not have, named with its column.
    """
    return StructType(tuple(_from_arrow_field(field, ()) for field in schema))


def from_arrow_type(arrow: pa.DataType, path: Sequence[str] = ()) -> DataType:
    """The Delta type of Arrow values of a type.

    Args:
        arrow: the Arrow type.
        path: the column, for messages.

    Raises:
        DeltaAnalysisError: a type that Delta does not have.
    """
    types = pa.types
    if name := _FROM_ARROW.get(arrow):
        return PrimitiveType(name)
    if types.is_duration(arrow):
        return DAY_TIME
    if types.is_timestamp(arrow):
        return PrimitiveType("timestamp_ntz" if arrow.tz is None else "timestamp")
    if types.is_decimal(arrow) or arrow == pa.uint64():
        return _from_arrow_decimal(arrow, path)
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return from_arrow_type(arrow.value_type, path)
    if types.is_fixed_size_binary(arrow):
        return PrimitiveType("binary")
    if types.is_struct(arrow):
        return StructType(tuple(_from_arrow_field(f, path) for f in arrow))
    if types.is_map(arrow):
        return MapType(
            from_arrow_type(arrow.key_type, (*path, "key")),
            from_arrow_type(arrow.item_type, (*path, "value")),
            arrow.item_field.nullable,
        )
    if is_list(arrow):
        element = from_arrow_type(arrow.value_type, (*path, "element"))
        return ArrayType(element, arrow.value_field.nullable)
    raise _refused(path, arrow, _ADVICE.get(arrow.id, "cast it to a type that Delta supports"))


_ADVICE = {
    pa.time64("us").id: "cast it to int64 (microseconds) or to string",
    pa.time32("ms").id: "cast it to int32 (milliseconds) or to string",
    pa.month_day_nano_interval().id: "cast it to duration, or its months to int32",
}


def is_list(arrow: pa.DataType) -> bool:
    """Whether the type is any of Arrow's lists; a map does not count."""
    types = pa.types
    return bool(
        types.is_list(arrow)
        or types.is_large_list(arrow)
        or types.is_fixed_size_list(arrow)
        or is_list_view(arrow)
    )


def is_list_view(arrow: pa.DataType) -> bool:
    """Whether the type is a list whose elements may be stored out of order."""
    return bool(pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow))


def _from_arrow_field(field: Any, path: Sequence[str]) -> StructField:
    data_type = from_arrow_type(field.type, (*path, field.name))
    return StructField(field.name, data_type, field.nullable)


def _from_arrow_decimal(arrow: Any, path: Sequence[str]) -> DecimalType:
    if arrow == pa.uint64():
        return DecimalType(20, 0)
    if arrow.precision > 38:
        raise _refused(path, arrow, "cast it to at most 38 digits, Delta's limit for decimals")
    if arrow.scale < 0:
        precision = min(arrow.precision - arrow.scale, 38)
        raise _refused(path, arrow, f"cast it to decimal128({precision}, 0)")
    if arrow.scale > arrow.precision:
        raise _refused(path, arrow, f"cast it to decimal128({arrow.scale}, {arrow.scale})")
    return DecimalType(arrow.precision, arrow.scale)


def _refused(path: Sequence[str], found: Any, remedy: str) -> DeltaAnalysisError:
    column = dotted(path) or "(the value)"
    return DeltaAnalysisError(
        f"Column {column} has type {found}, which can't be converted between Delta and Arrow; "
        f"{remedy}.",
        column=column,
        type=str(found),
    )
