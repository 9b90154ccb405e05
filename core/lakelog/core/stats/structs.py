"""Statistics as typed columns: `add.stats_parsed` of a checkpoint, from the JSON of `add.stats`.

The struct has what the table's statistics have (PROTOCOL.md, "Checkpoint Schema"): bounds for the
indexed columns whose types have some, a null count for each indexed column. A value that is not
of its column's type becomes null, which means unknown.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from lakelog.core.arrays import array_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.schema import DecimalType, PrimitiveType, StructType
from lakelog.core.stats.collect import StatsConfig, indexed_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.features.table_properties import TableProperties
    from lakelog.core.schema import DataType, StructField

# The default of 28 would refuse the longer decimals.
_DIGITS = Context(prec=76)

_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})

_WITH_BOUNDS = _NUMBERS | {"boolean", "date", "timestamp", "timestamp_ntz", "string"}


def stats_type(
    schema: StructType,
    partition_columns: Sequence[str],
    properties: TableProperties,
    *,
    with_tight_bounds: bool,
) -> pa.StructType:
    """The type of the struct.

    Args:
        schema: of the table.
        partition_columns: columns that get no statistics.
        properties: say which columns get some.
        with_tight_bounds: whether files may have deletion vectors.
    """
    config = StatsConfig(
        num_indexed_cols=properties.num_indexed_cols, columns=properties.stats_columns
    )
    mapped = properties.column_mapping_mode != "none"
    leaves = [
        (_stored(schema, path) if mapped else path, kind)
        for path, kind in indexed_leaves(schema, partition_columns, config)
    ]
    bounds = {path: to_arrow_type(kind) for path, kind in leaves if _has_bounds(kind)}
    counts: dict[tuple[str, ...], pa.DataType] = {path: pa.int64() for path, _ in leaves}
    fields: list[tuple[str, pa.DataType]] = [("numRecords", pa.int64())]
    for name, found in (("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)):
        # Parquet has no struct without fields.
        if found:
            fields.append((name, _tree(found)))
    if with_tight_bounds:
        fields.append(("tightBounds", pa.bool_()))
    return pa.struct(fields)


def parse_stats(texts: pa.Array[Any], target: pa.StructType) -> pa.Array[Any]:
    """One struct per string; null where it is null or no JSON object."""
    return array_of([_parsed(text, target) for text in texts.to_pylist()], target)


def stored_name(field: StructField) -> str:
    """The name that a column of a table with column mapping has in files and in the log."""
    return str(field.metadata.get("delta.columnMapping.physicalName", field.name))


def _stored(schema: StructType, path: tuple[str, ...]) -> tuple[str, ...]:
    names = []
    kind: DataType = schema
    for name in path:
        field = kind.get(name) if isinstance(kind, StructType) else None
        assert field is not None  # the path is one of this schema
        names.append(stored_name(field))
        kind = field.data_type
    return tuple(names)


def _has_bounds(kind: DataType) -> bool:
    return isinstance(kind, DecimalType) or (
        isinstance(kind, PrimitiveType) and kind.name in _WITH_BOUNDS
    )


def _tree(leaves: dict[tuple[str, ...], pa.DataType]) -> pa.StructType:
    fields: dict[str, Any] = {}
    for path, kind in leaves.items():
        if len(path) == 1:
            fields[path[0]] = kind
        else:
            fields.setdefault(path[0], {})[path[1:]] = kind
    return pa.struct(
        [(name, _tree(kind) if isinstance(kind, dict) else kind) for name, kind in fields.items()]
    )


def _parsed(text: str | None, target: pa.StructType) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        # As a float a decimal would lose digits, and a number can't be an infinity.
        value = json.loads(text, parse_float=str, parse_constant=str)
    except ValueError:
        return None
    return _of_type(value, target) if isinstance(value, dict) else None


def _of_type(value: Any, target: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(target):
        if not isinstance(value, dict):
            return None
        return {each.name: _of_type(value.get(each.name), each.type) for each in target}
    try:
        return _reader(target)(value, target)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        return None


def _reader(target: pa.DataType) -> Callable[[Any, Any], Any]:
    if pa.types.is_integer(target):
        return _integer
    if pa.types.is_floating(target):
        return _float
    if pa.types.is_decimal(target):
        return _decimal
    if pa.types.is_date(target):
        return lambda value, _: date.fromisoformat(value)
    if pa.types.is_timestamp(target):
        return _timestamp
    wanted = bool if pa.types.is_boolean(target) else str
    return lambda value, _: value if isinstance(value, wanted) else None


def _integer(value: Any, target: Any) -> int | None:
    fits = type(value) is int and -(1 << (target.bit_width - 1)) <= value
    return value if fits and value < 1 << (target.bit_width - 1) else None


def _float(value: Any, _: Any) -> float | None:
    # The nearest 32-bit number is the one that was printed, as a float or as a double.
    number = float(value)
    return number if math.isfinite(number) else None


def _decimal(value: Any, target: Any) -> Decimal | None:
    number = Decimal(value)
    exact = number.quantize(Decimal(1).scaleb(-target.scale), context=_DIGITS)
    fits = exact == number and len(exact.as_tuple().digits) <= target.precision
    return exact if fits else None


def _timestamp(value: Any, target: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if target.tz is None:
        if moment.tzinfo is not None:
            raise ValueError("a timestamp without a zone has one")
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def with_wide_bounds(stats: str | None, rows: int) -> str:
    """The text of `add.stats` with `numRecords`, and `tightBounds` false.

    Args:
        stats: as the file had it; statistics that can't be read are dropped.
        rows: how many the file holds, deleted ones included.
    """
    # Numbers keep their text: as a float, the bound of a decimal would change.
    raw: Any = orjson.Fragment
    try:
        found = json.loads(stats or "{}", parse_int=raw, parse_float=raw, parse_constant=_refuse)
    except ValueError:
        found = {}
    if not isinstance(found, dict):
        found = {}
    return orjson.dumps({**found, "numRecords": rows, "tightBounds": False}).decode()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
