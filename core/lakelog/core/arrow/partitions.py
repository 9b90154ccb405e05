"""Partition values: the text of the log, Python values, and typed Arrow columns.

The text is what PROTOCOL.md, "Partition Value Serialization", says: the empty string is null for
every type, a timestamp may lack its zone. What is in a log is read as leniently as Spark reads
it, by `partition_casts`. The names of partition folders mean nothing to a reader.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, one_array
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.limited_text import with_padding
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.arrow.time_zones import in_utc
from lakelog.core.compute import pc
from lakelog.core.portable.partition_text import partition_texts
from lakelog.core.schema import DecimalType, PrimitiveType, StructType
from lakelog.core.schema.column_mapping import physical_name
from lakelog.core.schema.types import YEAR_MONTH, is_interval, is_known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.schema import DataType

_INTEGER = re.compile(r"[+-]?[0-9]+")

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(\.[0-9]+)?)?"
    r"\s*(Z|[+-][0-9]{2}:?[0-9]{2}(?::?[0-9]{2})?)?"
)

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def partition_schema_of(schema: StructType, partition_columns: Sequence[str]) -> StructType:
    """The columns that a table is partitioned by, in partitioning order.

    Raises:
        KeyError: a partition column that the schema does not have.
    """
    found = []
    for name in partition_columns:
        each = schema.get(name)
        if each is None:
            raise KeyError(f"partition column {name!r} is not in the schema {schema}")
        found.append(each)
    return StructType(tuple(found))


def serialize_value(value: Any, data_type: DataType) -> str | None:
    """The text of a partition value; `None` for null and for the empty string.

    A `datetime` without zone counts as UTC where the type is `timestamp`.

    Raises:
        ValueError: the value does not fit the type, or the log has no text for it.
        TypeError: a table can't be partitioned by the type.
    """
    try:
        array = array_of([value], to_arrow_type(data_type))
    except pa.ArrowException as exc:
        raise ValueError(f"{value!r} is not a partition value of type {data_type}: {exc}") from exc
    return partition_texts(array, months=data_type == YEAR_MONTH)[0]


def parse_value(text: str | None, data_type: DataType, session_tz: str = "UTC") -> Any:
    """Read a value that a user or a statistic gives as text, in the spelling of the protocol.

    What `serialize_value` wrote comes back equal.

    Args:
        text: `None` and `""` are null.
        data_type: the column's type.
        session_tz: the zone of a timestamp without one.

    Returns:
        A Python value; timestamps are in UTC, NaN is always `math.nan` itself, an interval is its
        number of months or microseconds.

    Raises:
        ValueError: the text is not such a value.
    """
    if not text:
        return None
    if isinstance(data_type, DecimalType):
        return _parse_decimal(text, data_type)
    if not isinstance(data_type, PrimitiveType):
        raise ValueError(f"{text!r}: a partition column can't be of type {data_type}")
    name = data_type.name
    if is_interval(data_type):
        return cast_text(text, data_type, session_tz)
    if name in _BITS:
        return _parse_integer(text, _BITS[name])
    if name in ("timestamp", "timestamp_ntz"):
        return _parse_timestamp(text, name, session_tz)
    try:
        parser = _PARSERS[name]
    except KeyError:
        raise ValueError(f"{text!r}: a partition column can't be of type {data_type}") from None
    return parser(text)


def _parse_integer(text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not an integer")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{text!r} does not fit {bits} bits")
    return value


def _parse_double(text: str) -> float:
    if text.lower() == "nan":
        return math.nan
    if text.lstrip("+-").lower() not in ("infinity", "inf") and not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _parse_float(text: str) -> float:
    value = _parse_double(text)
    if not math.isfinite(value):
        return value
    try:
        narrow: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise ValueError(f"{text!r} does not fit a float") from None
    return narrow


def _parse_decimal(text: str, data_type: DecimalType) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a decimal")
    value = Decimal(text)
    if value and not -data_type.scale <= value.adjusted() < data_type.precision:
        # Before the digits are written out: an exponent may be arbitrarily large.
        raise ValueError(f"{text!r} does not fit {data_type}")
    sign, digits, exponent = value.as_tuple()
    # Not with `quantize`: its context rounds to 28 digits, but Delta's decimals have 38.
    moved = int(exponent) + data_type.scale
    number = int("".join(map(str, digits)))
    number, rest = (number * 10**moved, 0) if moved >= 0 else divmod(number, 10**-moved)
    if rest or number >= 10**data_type.precision:
        raise ValueError(f"{text!r} does not fit {data_type}")
    whole = tuple(int(d) for d in str(number))
    return Decimal((sign, whole, -data_type.scale))


def _parse_boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError(f"{text!r} is neither true nor false")


def _parse_date(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is not a date (yyyy-MM-dd)")
    return date.fromisoformat(text)


def _parse_timestamp(text: str, name: str, session_tz: str) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp")
    day, clock, fraction, zone = match.groups()
    value = datetime.fromisoformat(f"{day}T{clock or '00:00'}")
    if fraction:
        value = value.replace(microsecond=int(f"{fraction[1:]:0<6}"[:6]))
    if name == "timestamp_ntz":
        return value
    if zone is None:
        return in_utc(value, session_tz)
    if zone == "Z":
        return value.replace(tzinfo=UTC)
    value = value.replace(tzinfo=datetime.strptime(zone, "%z").tzinfo)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from None


_PARSERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "float": _parse_float,
    "double": _parse_double,
    "boolean": _parse_boolean,
    "date": _parse_date,
    "binary": str.encode,
}


def typed_partition_table(
    file_table: pa.Table, partition_schema: StructType, *, session_tz: str = "UTC"
) -> pa.Table:
    """One typed column a partition column, one row a file; a value that can't be read is null.

    Args:
        file_table: any table with a column `partition_values`, a map of strings.
        partition_schema: the partition columns, as `partition_schema_of` gives them.
        session_tz: the zone of timestamps without one.
    """
    return typed_partition_columns(file_table, partition_schema, session_tz=session_tz)[0]


def typed_partition_columns(
    file_table: pa.Table, partition_schema: StructType, *, session_tz: str = "UTC"
) -> tuple[pa.Table, pa.Table]:
    """The typed columns, and which of their values could not be read.

    Args:
        file_table: see `typed_partition_table`, and so the others.
        partition_schema: the partition columns.
        session_tz: the zone of timestamps without one.

    Returns:
        Two tables with the same columns: the values, and booleans that are true where the log
        has a string that is not a value of the type, or no values at all. Such a null says
        nothing about the file.
    """
    maps = file_table.column("partition_values")
    typed, unreadable = {}, {}
    for each in partition_schema:
        key = physical_name(each)
        texts = pa.chunked_array([_lookup(m, key) for m in maps.chunks], pa.string())
        typed[each.name], bad = _typed(texts, each.data_type, session_tz)
        # Of a file without a map nothing is known, and a null value would be something.
        unreadable[each.name] = pc.or_(bad, maps.is_null()) if maps.null_count else bad
    return with_padding(pa.table(typed), partition_schema), pa.table(unreadable)


def _lookup(maps: Any, name: str) -> Any:
    """The item under a key, row by row; null where a map is null or lacks the key."""
    if not len(maps):
        return pa.nulls(0, pa.string())
    # `keys` and `items` ignore that an array may be a slice; `offsets` does not.
    start, stop = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    at = pc.indices_nonzero(pc.equal(maps.keys.slice(start, stop - start), name))
    if len(at) == len(maps) and not maps.null_count:
        # One match within each row's bounds: no search needed.
        offsets = pc.subtract(maps.offsets, start).cast(pa.uint64())
        low, high = pc.greater_equal(at, offsets[:-1]), pc.less(at, offsets[1:])
        if pc.all(pc.and_(low, high)).as_py():
            return maps.items.slice(start, stop - start).take(at)
    return pc.map_lookup(maps, query_key=name, occurrence="first")


def _typed(texts: Any, data_type: DataType, session_tz: str) -> tuple[Any, Any]:
    if not is_known(data_type):
        return pa.nulls(len(texts)), texts.is_valid()
    # A partition holds many files: each text is parsed once.
    encoded = one_array(texts).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    values: list[Any] = []
    bad: list[bool] = []
    for text in encoded.dictionary.to_pylist():
        try:
            values.append(cast_text(text, data_type, session_tz))
            bad.append(False)
        except (ValueError, ArithmeticError):
            values.append(None)
            bad.append(True)
    typed = array_of(values, to_arrow_type(data_type)).take(encoded.indices)
    flags = array_of(bad, pa.bool_()).take(encoded.indices)
    return typed, pc.fill_null(flags, False)
