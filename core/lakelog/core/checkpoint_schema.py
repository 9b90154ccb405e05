"""The columns of a classic checkpoint (PROTOCOL.md, "Checkpoint Schema"), and rows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.file_table import DELETION_VECTOR, JSON_NAMES, STRING_MAP

if TYPE_CHECKING:
    from lakelog.core.actions import DomainMetadata, Metadata, Protocol, SetTransaction

__all__ = ["CHECKPOINT_SCHEMA", "as_row", "file_rows", "tombstone_rows"]

_STRINGS = pa.list_(pa.string())

_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", STRING_MAP),
        ("deletionVector", DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
        ("stats", pa.string()),
    ]
)
_REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("deletionVector", DELETION_VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)

CHECKPOINT_SCHEMA = pa.schema(
    [
        (
            "txn",
            pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        ),
        ("add", _ADD),
        ("remove", _REMOVE),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct({"provider": pa.string(), "options": STRING_MAP})),
                    ("schemaString", pa.string()),
                    ("partitionColumns", _STRINGS),
                    ("configuration", STRING_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", _STRINGS),
                    ("writerFeatures", _STRINGS),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
        ),
    ]
)

_COLUMN_OF = {json_name: column for column, json_name in JSON_NAMES.items()}


def as_row(action: Protocol | Metadata | SetTransaction | DomainMetadata) -> dict[str, Any]:
    """A row with one action that is about no file."""
    return {
        action.kind: _entries(action.to_json_value(), CHECKPOINT_SCHEMA.field(action.kind).type)
    }


def _entries(value: Any, of: pa.DataType) -> Any:
    """JSON objects as Arrow wants maps: pairs."""
    if value is None:
        return None
    if pa.types.is_map(of):
        return list(value.items())
    if pa.types.is_struct(of):
        return {each.name: _entries(value.get(each.name), each.type) for each in of}
    return value


def file_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `FILE_SCHEMA` as rows of a checkpoint."""
    # State has no changes: Spark writes `false` here, too.
    return _rows("add", _ADD, batch, {"dataChange": False})


def tombstone_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `TOMBSTONE_SCHEMA` as rows of a checkpoint."""
    return _rows("remove", _REMOVE, batch, {})


def _rows(
    kind: str, struct: pa.StructType, batch: pa.RecordBatch, constants: dict[str, bool]
) -> pa.RecordBatch:
    count = batch.num_rows
    children = []
    for each in struct:
        if each.name in constants:
            children.append(pa.repeat(pa.scalar(constants[each.name], each.type), count))
        else:
            children.append(batch.column(_COLUMN_OF[each.name]))
    actions = pa.StructArray.from_arrays(children, fields=list(struct))
    columns = [
        actions if each.name == kind else pa.nulls(count, each.type) for each in CHECKPOINT_SCHEMA
    ]
    return pa.record_batch(columns, schema=CHECKPOINT_SCHEMA)
