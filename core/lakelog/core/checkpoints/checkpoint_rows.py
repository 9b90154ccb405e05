"""The columns of a checkpoint (PROTOCOL.md, "Checkpoint Schema"), and rows of them.

Statistics are stored as JSON text, as typed columns, or both, as the table's properties say. Typed
columns are written where `delta.checkpoint.writeStatsAsStruct` is set to true, or the text is
disabled: Spark's default is both, the protocol's is the text alone, and parsing the text of a
million files takes longer than all the rest of a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.file_table import DELETION_VECTOR, JSON_NAMES, STRING_MAP
from lakelog.core.arrays import scalar_of

if TYPE_CHECKING:
    from lakelog.core.actions import (
        CheckpointMetadata,
        DomainMetadata,
        Metadata,
        Protocol,
        SetTransaction,
        SidecarFile,
    )
    from lakelog.core.schema import StructType
    from lakelog.core.state.snapshot import Snapshot

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

_V2_FIELDS = (
    pa.field("checkpointMetadata", pa.struct({"version": pa.int64(), "tags": STRING_MAP})),
    pa.field(
        "sidecar",
        pa.struct(
            {
                "path": pa.string(),
                "sizeInBytes": pa.int64(),
                "modificationTime": pa.int64(),
                "tags": STRING_MAP,
            }
        ),
    ),
)

_COLUMN_OF = {json_name: column for column, json_name in JSON_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the files of one checkpoint."""

    schema: pa.Schema
    partitions: StructType | None = None
    """The partition columns, if they are also written as typed columns."""
    session_tz: str = "UTC"
    """The zone of partition values that name none."""

    def only_files(self) -> Layout:
        """The same for a sidecar, which has no other actions."""
        kept = [each for each in self.schema if each.name in ("add", "remove")]
        return Layout(pa.schema(kept), self.partitions, self.session_tz)

    def top_level(self) -> pa.Schema:
        """The same for the top level of a V2 checkpoint.

        Spark wants the columns of file actions there, though all of these are in sidecars.
        """
        return pa.schema([*self.schema, *_V2_FIELDS])


def layout_of(snapshot: Snapshot) -> Layout:
    """The columns that a table's properties ask for."""
    properties = snapshot.properties
    as_struct = snapshot.metadata.configuration.get("delta.checkpoint.writeStatsAsStruct")
    as_json = properties.write_stats_as_json
    if as_json and (as_struct is None or not properties.write_stats_as_struct):
        return Layout(CHECKPOINT_SCHEMA)
    fields = [each for each in _ADD if as_json or each.name != "stats"]
    partitions = None
    if properties.write_stats_as_struct:
        from lakelog.core.arrow.arrow_types import to_arrow_type
        from lakelog.core.stats.structs import stats_type, stored_name

        if snapshot.partition_columns:
            partitions = snapshot.partition_schema
            mapped = properties.column_mapping_mode != "none"
            named = [(stored_name(f) if mapped else f.name, f.data_type) for f in partitions]
            struct = pa.struct([(name, to_arrow_type(kind)) for name, kind in named])
            fields.append(pa.field("partitionValues_parsed", struct))
        parsed = stats_type(
            snapshot.schema,
            snapshot.partition_columns,
            properties,
            with_tight_bounds="deletionVectors" in (snapshot.protocol.reader_features or ()),
        )
        fields.append(pa.field("stats_parsed", parsed))
    index = CHECKPOINT_SCHEMA.get_field_index("add")
    schema = CHECKPOINT_SCHEMA.set(index, pa.field("add", pa.struct(fields)))
    return Layout(schema, partitions, snapshot.conf.session_tz)


def as_row(
    action: Protocol
    | Metadata
    | SetTransaction
    | DomainMetadata
    | CheckpointMetadata
    | SidecarFile,
    schema: pa.Schema = CHECKPOINT_SCHEMA,
) -> dict[str, Any]:
    """A row with one action that is not a file action."""
    return {action.kind: _entries(action.to_json_value(), schema.field(action.kind).type)}


def _entries(value: Any, of: pa.DataType) -> Any:
    """JSON objects as Arrow wants maps: pairs."""
    if value is None:
        return None
    if pa.types.is_map(of):
        return list(value.items())
    if pa.types.is_struct(of):
        return {each.name: _entries(value.get(each.name), each.type) for each in of}
    return value


def add_rows(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """Rows of `FILE_SCHEMA` as rows of a checkpoint."""
    return _rows("add", batch, layout)


def tombstone_rows(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """Rows of `TOMBSTONE_SCHEMA` as rows of a checkpoint."""
    return _rows("remove", batch, layout)


def _rows(kind: str, batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    struct = layout.schema.field(kind).type
    children = [_child(kind, each, batch, layout) for each in struct]
    actions = pa.StructArray.from_arrays(children, fields=list(struct))
    columns = [
        actions if each.name == kind else pa.nulls(batch.num_rows, each.type)
        for each in layout.schema
    ]
    return pa.record_batch(columns, schema=layout.schema)


def _child(kind: str, field: pa.Field[Any], batch: pa.RecordBatch, layout: Layout) -> pa.Array[Any]:
    if field.name == "dataChange" and kind == "add":
        # State has no changes: Spark also writes `false` here.
        return pa.repeat(scalar_of(False, pa.bool_()), batch.num_rows)
    if field.name == "stats_parsed":
        from lakelog.core.stats.structs import parse_stats

        return parse_stats(batch.column("stats"), field.type)
    if field.name == "partitionValues_parsed":
        from lakelog.core.arrow.partitions import typed_partition_table

        assert layout.partitions is not None  # `layout_of` sets both
        typed = typed_partition_table(
            pa.Table.from_batches([batch]), layout.partitions, session_tz=layout.session_tz
        )
        columns = [column.combine_chunks() for column in typed.columns]
        return pa.StructArray.from_arrays(columns, fields=list(field.type))
    return batch.column(_COLUMN_OF[field.name])
