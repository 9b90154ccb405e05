"""The live files of a version, as rows to show and as totals."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import pyarrow as pa

from lakelog.cli.files.live_numbers import row_counts, total
from lakelog.core.engine.scan import typed_partition_table
from lakelog.core.engine.schemas import dotted, split_path
from lakelog.core.engine.shown import SMALL, time_text
from lakelog.core.engine.values import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core import Snapshot

_PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"


class StatsColumn(NamedTuple):
    """A column whose statistics are wanted."""

    name: str
    """As its path is written: `a.b`."""
    path: tuple[str, ...]
    """Where statistics keep it."""


def stats_column(text: str, schema: StructType, *, mapped: bool) -> StatsColumn:
    """Find a column by its name.

    Args:
        text: its path, `a.b`; backticks around names that have dots.
        schema: of the table.
        mapped: whether files store columns under other names.

    Raises:
        DeltaAnalysisError: there is no such column.
    """
    try:
        parts = split_path(text)
    except ValueError as error:
        raise DeltaAnalysisError(f"--stats {text}: {error}") from None
    found: list[StructField] = []
    kind: Any = schema
    for part in parts:
        field = kind.get(part) if isinstance(kind, StructType) else None
        if field is None:
            names = kind.names if isinstance(kind, StructType) else []
            near = difflib.get_close_matches(part, names, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise DeltaAnalysisError(f"--stats {text}: the table has no column {part!r}.{hint}")
        found.append(field)
        kind = field.data_type
    return StatsColumn(
        dotted(each.name for each in found),
        tuple(_name_in_files(each, mapped=mapped) for each in found),
    )


def _name_in_files(field: StructField, *, mapped: bool) -> str:
    return str(field.metadata.get(_PHYSICAL_NAME, field.name)) if mapped else field.name


def is_mapped(snapshot: Snapshot) -> bool:
    """Whether the log and the files use other names for the table's columns."""
    return snapshot.properties.column_mapping_mode != "none"


def shown_rows(
    snapshot: Snapshot,
    files: pa.Table,
    columns: Sequence[StatsColumn],
    limit: int | None,
    start: int = 0,
) -> list[dict[str, Any]]:
    """The first files by path, as JSON values.

    Args:
        snapshot: the table's version.
        files: rows of `FILE_SCHEMA`.
        columns: whose minimum, maximum and count of nulls to show, as the log has them.
        limit: how many; None for all.
        start: how many of them to pass over.
    """
    # By path, so that the same command shows the same files.
    order = pc.sort_indices(files["path"])
    shown = files.take(order[start:] if limit is None else order[start : start + limit])
    counts = row_counts(shown).to_pylist()
    names = _partition_names(snapshot)
    rows = []
    for file, count in zip(_dicts(shown), counts, strict=True):
        values = dict(file["partition_values"] or ())
        vector = file["deletion_vector"]
        row: dict[str, Any] = {
            "path": file["path"],
            "partition_values": {name: values.get(inner) for name, inner in names},
            "bytes": file["size"],
            "rows": count,
            "modified": time_text(file["modification_time"]),
            "deleted_rows": vector["cardinality"] if vector else 0,
        }
        if columns:
            row["stats"] = _stats(file["stats"], columns)
        rows.append(row)
    return rows


def _dicts(files: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in files.to_batches():
        yield from batch.to_pylist()


def _partition_names(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Name, and name in the log, of the partition columns."""
    mapped = is_mapped(snapshot)
    return [(f.name, _name_in_files(f, mapped=mapped)) for f in snapshot.partition_schema]


def _stats(text: str | None, columns: Sequence[StatsColumn]) -> dict[str, dict[str, Any]]:
    try:
        found = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        found = {}
    return {
        column.name: {
            "min": _at(found, "minValues", column.path),
            "max": _at(found, "maxValues", column.path),
            "nulls": _at(found, "nullCount", column.path),
        }
        for column in columns
    }


def _at(stats: Any, kind: str, path: tuple[str, ...]) -> Any:
    for step in (kind, *path):
        stats = stats.get(step) if isinstance(stats, dict) else None
    return stats


def sums_by_partition(
    snapshot: Snapshot, files: pa.Table, kept: pa.ChunkedArray[Any] | None = None
) -> list[dict[str, Any]]:
    """Files, bytes, rows and small files of each partition, the largest first.

    Args:
        snapshot: the table's version.
        files: rows of `FILE_SCHEMA`.
        kept: which of them are counted; all by default.
    """
    names = _partition_names(snapshot)
    texts = StructType(tuple(StructField(inner, PrimitiveType("string")) for _, inner in names))
    counts = row_counts(files)
    if kept is not None:
        files, counts = files.filter(kept), counts.filter(kept)
    keys = [f"p{index}" for index in range(len(names))]
    parts = typed_partition_table(files, texts, session_tz="UTC").columns
    summed = ("bytes", "rows", "small", "unknown")
    grouped = (
        pa.table([*parts, files["size"], counts], names=[*keys, "bytes", "rows"])
        .append_column("small", pc.less(files["size"], SMALL).cast(pa.int64()))
        .append_column("unknown", counts.is_null().cast(pa.int64()))
        .group_by(keys)
        .aggregate([([], "count_all"), *((name, "sum") for name in summed)])
    )
    found = [
        {
            "partition_values": {
                name: row[key] for (name, _), key in zip(names, keys, strict=True)
            },
            "files": row["count_all"],
            "bytes": row["bytes_sum"],
            "rows": row["rows_sum"],
            "files_without_row_count": row["unknown_sum"],
            "small_files": row["small_sum"],
        }
        for row in grouped.to_pylist()
    ]
    return sorted(found, key=lambda each: (-each["bytes"], str(each["partition_values"])))


def sums(files: pa.Table) -> dict[str, Any]:
    """Count, bytes and rows of files."""
    rows, unknown = total(row_counts(files))
    return {
        "files": files.num_rows,
        "bytes": pc.sum(files["size"]).as_py() or 0,
        "rows": rows,
        "files_without_row_count": unknown,
    }
