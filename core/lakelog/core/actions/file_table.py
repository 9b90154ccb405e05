"""Live files and tombstones as Arrow tables, and converting them to action objects and back.

A table of a million files is a few columns here and a million Python objects nowhere: code that
needs objects asks for those of the rows that are left after pruning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.actions.objects import AddFile, DeletionVectorDescriptor
from lakelog.core.arrays import batch_of_columns, empty_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STRING_MAP = pa.map_(pa.string(), pa.string())

DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)

FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", STRING_MAP),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("stats", pa.string()),
        ("tags", STRING_MAP),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
"""One row per live file. `path` is as in the log: percent-encoded."""

TOMBSTONE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deletion_timestamp", pa.int64()),
        ("data_change", pa.bool_()),
        ("extended_file_metadata", pa.bool_()),
        ("partition_values", STRING_MAP),
        ("size", pa.int64()),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
    ]
)
"""One row per removed file that replay or `VACUUM` may still need."""

JSON_NAMES: Mapping[str, str] = {
    "path": "path",
    "partition_values": "partitionValues",
    "size": "size",
    "modification_time": "modificationTime",
    "stats": "stats",
    "tags": "tags",
    "deletion_vector": "deletionVector",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "clustering_provider": "clusteringProvider",
    "deletion_timestamp": "deletionTimestamp",
    "data_change": "dataChange",
    "extended_file_metadata": "extendedFileMetadata",
}
"""Column -> JSON field, for both tables."""

NO_FILES: Final = empty_table(FILE_SCHEMA)
NO_TOMBSTONES: Final = empty_table(TOMBSTONE_SCHEMA)


def files_from_json(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Build rows of `FILE_SCHEMA` from the JSON values of `add` actions.

    Raises:
        pyarrow.ArrowException: a field has a value that its type can't hold.
    """
    return _from_json(rows, FILE_SCHEMA)


def tombstones_from_json(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Build rows of `TOMBSTONE_SCHEMA` from the JSON values of `remove` actions.

    Raises:
        pyarrow.ArrowException: a field has a value that its type can't hold.
    """
    # Absent means `true` (PROTOCOL.md, "Add File and Remove File").
    changes = [row if row.get("dataChange") is not None else row | _CHANGES for row in rows]
    return _from_json(changes, TOMBSTONE_SCHEMA)


_CHANGES: Final = {"dataChange": True}


def _from_json(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    if not rows:
        return NO_FILES if schema is FILE_SCHEMA else NO_TOMBSTONES
    columns = []
    for field in schema:
        values = [row.get(JSON_NAMES[field.name]) for row in rows]
        if pa.types.is_map(field.type):
            values = [None if v is None else list(v.items()) for v in values]
        columns.append(values)
    return pa.Table.from_batches([batch_of_columns(columns, schema)])


def from_add_files(adds: Iterable[AddFile]) -> pa.Table:
    """The rows of these actions; `data_change` and unknown fields have no column."""
    return files_from_json([add.to_json_value() for add in adds])


def to_add_files(table: pa.Table, *, data_change: bool = False) -> list[AddFile]:
    """Make an action of every row.

    Args:
        table: rows of `FILE_SCHEMA`.
        data_change: the `dataChange` of the actions; `False` by default, since state has no
            changes.
    """
    return [
        AddFile(
            path=path,
            partition_values=dict(values or ()),
            size=size,
            modification_time=modified or 0,
            data_change=data_change,
            stats=stats,
            tags=None if tags is None else dict(tags),
            deletion_vector=_descriptor(vector),
            base_row_id=row_id,
            default_row_commit_version=row_version,
            clustering_provider=provider,
        )
        for (
            path,
            values,
            size,
            modified,
            stats,
            tags,
            vector,
            row_id,
            row_version,
            provider,
        ) in _rows(table, FILE_SCHEMA)
    ]


def _rows(table: pa.Table, schema: pa.Schema) -> Iterable[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in schema.names), strict=True)


def _descriptor(value: Mapping[str, Any] | None) -> DeletionVectorDescriptor | None:
    if value is None:
        return None
    return DeletionVectorDescriptor(
        storage_type=value["storageType"],
        path_or_inline_dv=value["pathOrInlineDv"],
        offset=value["offset"],
        size_in_bytes=value["sizeInBytes"],
        cardinality=value["cardinality"],
    )
