"""What statistics say of the columns: their ranges and nulls, and how well they part the files."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.engine.log import read_stats
from lakelog.core.engine.schemas import dotted, physical_path, walk
from lakelog.core.engine.values import pc
from lakelog.core.schema import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from lakelog.core import Snapshot
    from lakelog.core.schema import DataType

_COLUMNS: Final = 200
"""Leaf columns that are looked at; statistics of more are rare."""
_FILES: Final = 20_000
"""Files whose statistics are parsed, spread over all of them: a million takes half a minute."""
_LONGEST: Final = 80


def column_ranges(snapshot: Snapshot, files: pa.Table) -> dict[str, Any]:
    """The columns of the table, as JSON values.

    Args:
        snapshot: the table's version.
        files: its live files, rows of `FILE_SCHEMA`.
    """
    schema, mapped = snapshot.schema, snapshot.properties.column_mapping_mode != "none"
    partitions = set(snapshot.partition_columns)
    leaves = [
        (path, field)
        for path, field in walk(schema, containers=False)
        if not isinstance(field.data_type, StructType)
    ]
    shown = leaves[:_COLUMNS]
    stored = {
        path: physical_path(schema, path) if mapped else path
        for path, field in shown
        if path[0] not in partitions and not isinstance(field.data_type, (ArrayType, MapType))
    }
    sample = _spread(files.select(["stats"]))
    kinds: dict[tuple[str, ...], DataType] = {
        stored[path]: field.data_type for path, field in shown if path in stored
    }
    stats = read_stats(sample["stats"], kinds)
    found = []
    for path, field in shown:
        row: dict[str, Any] = {
            "column": dotted(path),
            "type": str(field.data_type),
            "nullable": field.nullable,
            "partition": path[0] in partitions,
        }
        if path in stored:
            bounds = stats.columns[stored[path]]
            row |= _of_bounds(bounds.low, bounds.high, bounds.nulls, stats.num_records)
        found.append(row)
    return {"files_looked_at": sample.num_rows, "left_out": len(leaves) - len(shown), "list": found}


def _spread(files: pa.Table) -> pa.Table:
    if files.num_rows <= _FILES:
        return files
    step = files.num_rows / _FILES
    return files.take(pa.array([int(each * step) for each in range(_FILES)], pa.int64()))


def _of_bounds(low: Any, high: Any, nulls: Any, records: Any) -> dict[str, Any]:
    has_nulls = pc.and_(nulls.is_valid(), records.is_valid())
    rows = pc.sum(records.filter(has_nulls)).as_py() or 0
    null_rows = pc.sum(nulls.filter(has_nulls)).as_py() or 0
    found: dict[str, Any] = {
        "files_with_nulls_counted": pc.sum(has_nulls).as_py() or 0,
        "null_share": null_rows / rows if rows else None,
    }
    both = pc.and_(low.is_valid(), high.is_valid())
    low, high = low.filter(both), high.filter(both)
    found["files_with_bounds"] = len(low)
    if len(low):
        edges = pc.min_max(low)["min"].as_py(), pc.min_max(high)["max"].as_py()
        found["min"], found["max"] = (_shown(each) for each in edges)
        found["overlap"] = _overlap(low, high)
    return found


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _overlap(low: Any, high: Any) -> float:
    """The share of files, on average, that a lookup of a value in a file's range has to open."""
    count = len(low)
    order = pc.rank(
        pa.concat_arrays([_flat(low), _flat(high)]), sort_keys="ascending", tiebreaker="dense"
    ).to_pylist()
    lows, highs = order[:count], order[count:]
    sorted_lows, sorted_highs = sorted(lows), sorted(highs)
    # Of the files whose ranges meet a file's own, those at its lower bound.
    opened = sum(bisect_right(sorted_lows, at) - bisect_left(sorted_highs, at) for at in lows)
    return opened / count / count


def _flat(values: Any) -> Any:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    # `rank` has no decimals of 256 bits, and none of some older types.
    return values.cast(pa.float64()) if pa.types.is_decimal(values.type) else values
