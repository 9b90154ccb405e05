"""What a scan needs to know about Parquet: old timestamps, and which row groups to skip."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from lakelog.core.actions.file_table import files_from_json
from lakelog.core.portable.leaves import leaves
from lakelog.core.schema import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from lakelog.core.schema.column_mapping import by_name, physical_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema.column_mapping import Match

_TIMESTAMP = PrimitiveType("timestamp")


def as_utc(table: pa.Table, schema: StructType, match: Match = by_name) -> pa.Table:
    """Mark as UTC what the table calls `timestamp` and the file leaves without a zone.

    INT96, which Spark still writes by default, has no zone; by convention it is UTC.
    """
    for index, field in enumerate(match(table.schema, schema)):
        if field is None:
            continue
        found = table.schema.field(index)
        target = _zoned(found.type, field.data_type, match)
        if target != found.type:
            column = table.column(index).cast(target)
            table = table.set_column(index, found.with_type(target), column)
    return table


def _zoned(kind: pa.DataType, of: DataType, match: Match) -> pa.DataType:
    """The Arrow type with zones where the Delta type wants them."""
    if of == _TIMESTAMP:
        return pa.timestamp(kind.unit, "UTC") if _is_naive(kind) else kind
    match of:
        case StructType() if pa.types.is_struct(kind):
            children = []
            for child, field in zip(kind, match(kind, of), strict=True):
                inner = child.type if field is None else _zoned(child.type, field.data_type, match)
                children.append(child.with_type(inner))
            return pa.struct(children)
        case ArrayType(element) if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(_zoned(kind.value_type, element, match)))
        case MapType(key, value) if pa.types.is_map(kind):
            return pa.map_(
                kind.key_field.with_type(_zoned(kind.key_type, key, match)),
                kind.item_field.with_type(_zoned(kind.item_type, value, match)),
            )
    return kind


def _is_naive(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is None


def matching_row_groups(
    metadata: Any,
    expression: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    partition_values: Mapping[str, str | None],
    match: Match = by_name,
    *,
    session_tz: str = "UTC",
) -> list[int]:
    """The row groups that may hold a row for which the expression is true.

    The same rules as for whole files decide, on statistics from the footer.

    Args:
        metadata: the file's `pyarrow.parquet.FileMetaData`.
        expression: the filter.
        schema: of the table.
        partition_columns: of the table.
        partition_values: of the file, as its `add` action has them.
        match: which of the file's columns are which of the table's.
        session_tz: the zone of partition values that name none.
    """
    from lakelog.core.expressions.prune import keep_files

    arrow = metadata.schema.to_arrow_schema()
    names = dict(zip(arrow.names, match(arrow, schema), strict=True))
    # By position: a dotted path may be that of a field in a struct, or of a name with a dot.
    paths = [leaf.path for leaf in leaves(arrow)]
    columns = [names[path[0]] if len(path) == 1 else None for path in paths]
    groups = [
        {
            "path": str(i),
            "partitionValues": partition_values,
            "stats": _stats(metadata.row_group(i), columns),
        }
        for i in range(metadata.num_row_groups)
    ]
    kept = keep_files(
        files_from_json(groups), expression, schema, partition_columns, session_tz=session_tz
    )
    return [index for index, keep in enumerate(kept.to_pylist()) if keep]


def _stats(group: Any, columns: Sequence[StructField | None]) -> str:
    """The statistics of a row group, in the form of `add.stats`; of these columns of the table."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for position, field in enumerate(columns):
        found = None if field is None else group.column(position).statistics
        if field is None or found is None or not isinstance(field.data_type, PrimitiveType):
            continue
        name = physical_name(field)
        if found.has_null_count:
            nulls[name] = found.null_count
        # A footer written by Arrow ignores NaN, which is greater than everything.
        if not found.has_min_max or field.data_type.name in ("float", "double", "boolean"):
            continue
        zone = "Z" if field.data_type == _TIMESTAMP else ""
        try:
            bounds = _bound(found.min, zone), _bound(found.max, zone)
        except (OverflowError, ValueError):
            # A day that Python has no date for, or text that is not a date, is not a bound.
            continue
        if None not in bounds:
            low[name], high[name] = bounds
    return orjson.dumps(
        {"numRecords": group.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    ).decode()


def _bound(value: Any, zone: str) -> int | str | None:
    match value:
        case bool():
            return None
        case datetime():
            plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return plain.isoformat(timespec="milliseconds") + zone
        case date():
            return value.isoformat()
        case int() | str():
            return value
    return None
