"""What is done to a table before it loses a feature: nothing of it may be in use any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from lakelog.core import keys
from lakelog.core.actions import RemoveFile
from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.alter.feature_removal.rewriting import purge, rewrite_all
from lakelog.core.alter.feature_removal.traces import is_used
from lakelog.core.arrays import array_of
from lakelog.core.compute import pc
from lakelog.core.data.file_locations import DataPlaces
from lakelog.core.deletion_vectors.stored_vectors import vector_path
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import clustering_action, clustering_columns
from lakelog.core.features.numbered_rows import UNBACKFILL
from lakelog.core.features.table_properties import CONSTRAINT_PREFIX
from lakelog.core.metadata.verify import verify_new_metadata
from lakelog.core.paths import encode_path
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import logical_path, physical_schema, read_schema_of
from lakelog.core.schema.column_paths import dotted, walk
from lakelog.core.schema.edits import change_field
from lakelog.core.schema.rules import odd_names
from lakelog.core.schema.type_widening import TYPE_CHANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from lakelog.core.actions import Metadata
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.schema import StructField
    from lakelog.core.state.snapshot import Snapshot

_WIDENING: Final = "delta.enableTypeWidening"
_MAPPING: Final = ("delta.columnMapping.mode", "delta.columnMapping.maxColumnId")
_TIMES: Final = (
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.inCommitTimestampEnablementVersion",
)


def remove_traces(log: DeltaLog, feature: str) -> bool:
    """Bring a table to where its newest version does not use a feature.

    Returns:
        Whether anything had to be changed.

    Raises:
        DeltaAnalysisError: only the user can decide what becomes of what uses it.
        DeltaConcurrentModificationException: another writer was faster; call it again.
    """
    snapshot = log.update()
    used = is_used(feature, snapshot)
    match feature:
        case "checkConstraints" if used:
            raise _constraints(snapshot)
        case "deletionVectors":
            _remove_vectors(log, snapshot)
        case "typeWidening" | "typeWidening-preview" if used:
            _remove_type_changes(log, snapshot)
        case "columnMapping" if used:
            _remove_mapping(log)
        case "v2Checkpoint" if used:
            _set(log, {"delta.checkpointPolicy": "classic"})
        case "inCommitTimestamp":
            return _remove_times(log, snapshot)
        case "rowTracking" if used:
            _remove_row_ids(log, snapshot)
        case "domainMetadata" if used:
            _remove_domains(log)
        case "materializePartitionColumns" if used:
            _unset(log, ["delta.enableMaterializePartitionColumnsFeature"])
    return used


def _constraints(snapshot: Snapshot) -> DeltaAnalysisError:
    names = sorted(
        key[len(CONSTRAINT_PREFIX) :]
        for key in snapshot.metadata.configuration
        if key.lower().startswith(CONSTRAINT_PREFIX)
    )
    return DeltaAnalysisError(
        "[DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE] Cannot drop the CHECK constraints table "
        f"feature of {snapshot.table}. The following constraints must be dropped first: "
        f"{', '.join(names)}.",
        table=snapshot.table,
        constraints=names,
    )


def _set(log: DeltaLog, values: Mapping[str, str]) -> None:
    parameters = {"properties": json_text(dict(values))}
    _reconfigure(log, Operation("SET TBLPROPERTIES", parameters), (), values)


def _unset(log: DeltaLog, names: Iterable[str], values: Mapping[str, str] | None = None) -> None:
    gone = list(names)
    parameters = {"properties": json_text([*gone, *(values or {})]), "ifExists": True}
    _reconfigure(log, Operation("UNSET TBLPROPERTIES", parameters), gone, values or {})


def _reconfigure(
    log: DeltaLog, operation: Operation, gone: Iterable[str], values: Mapping[str, str]
) -> None:
    txn = log.start_transaction()
    left = set(gone)
    kept = {k: v for k, v in txn.metadata.configuration.items() if k not in left}
    metadata = replace(txn.metadata, configuration={**kept, **values})
    txn.changes.update_metadata_for_restore(metadata, txn.changes.protocol)
    txn.commit([], operation)


def _remove_vectors(log: DeltaLog, snapshot: Snapshot) -> None:
    # The property first: else a DELETE in between may mask the files that are written here.
    if snapshot.properties.deletion_vectors:
        _unset(log, ["delta.enableDeletionVectors"])
    files = log.update().file_table
    purge(log, files.filter(files["deletion_vector"].is_valid()))
    _protect_vectors(log)


def _protect_vectors(log: DeltaLog) -> None:
    """Record the files of vectors as removed, so that a VACUUM that knows none keeps them."""
    snapshot, table = log.update(), log.table
    rows = snapshot.tombstones
    with_vectors = rows.filter(rows["deletion_vector"].is_valid())["deletion_vector"].to_pylist()
    places = {place for each in with_vectors if (place := vector_path(each, table)) is not None}
    known = set(
        DataPlaces(table).resolve(
            rows.filter(rows["deletion_vector"].is_null())["path"].to_pylist()
        )
    )
    root = f"{table.rstrip('/')}/"
    lacking = sorted(p.removeprefix(root) for p in places - known if p.startswith(root))
    if not lacking:
        return
    now = log.clock.now_ms()
    gone = [
        RemoveFile(path=encode_path(path), deletion_timestamp=now, data_change=False)
        for path in lacking
    ]
    log.start_transaction().commit(gone, Operation("Deletion Vector Tombstones"))


def _remove_type_changes(log: DeltaLog, snapshot: Snapshot) -> None:
    if snapshot.properties.type_widening:
        _unset(log, [_WIDENING])
    snapshot = log.update()
    purge(log, _of_older_types(snapshot))
    txn = log.start_transaction()
    metadata = txn.metadata
    schema = StructType.from_json(metadata.schema_string)
    changed = [(path, field) for path, field in walk(schema) if TYPE_CHANGES in field.metadata]
    if not changed:
        return
    for path, _ in changed:
        schema = change_field(schema, path, _without_changes)
    said = [
        {
            "name": path[-1],
            "type": field.data_type.json_value(),
            "nullable": field.nullable,
            "metadata": dict(field.metadata),
        }
        for path, field in changed
    ]
    # Only of the files that were looked at is it known that none has an older type.
    txn.reads.read_whole_table()
    txn.changes.update_metadata_for_restore(
        replace(metadata, schema_string=schema.to_json()), txn.changes.protocol
    )
    txn.commit([], Operation("DROP FEATURE", {"columns": json_text(said)}))


def _without_changes(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key != TYPE_CHANGES}
    return replace(field, metadata=kept)


def _of_older_types(snapshot: Snapshot) -> pa.Table:
    """The files whose columns are not stored with the types that the table has now."""
    from lakelog.core.arrow.arrow_types import to_arrow_schema

    store, files = snapshot.store, snapshot.file_table
    wanted = {
        field.name: field.type for field in to_arrow_schema(physical_schema(snapshot.read_schema))
    }
    partitions = set(snapshot.partition_columns)
    places = DataPlaces(snapshot.table).resolve(files["path"].to_pylist())
    older: list[Any] = []
    for place in places:
        with store.filesystem.open_input_file(store.filesystem_path(place)) as source:
            found = pq.read_schema(source)
        older.append(
            any(
                field.name in wanted
                and field.name not in partitions
                and not _same_kind(field.type, wanted[field.name])
                for field in found
            )
        )
    return files.filter(pc.equal(_flags(older), True))


def _flags(values: list[Any]) -> pa.Array[Any]:
    import pyarrow as pa

    return array_of(values, pa.bool_())


def _same_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a file needs no widening; any doubt means that it does."""
    if found == wanted:
        return True
    import pyarrow as pa

    either = (found, wanted)
    return all(map(pa.types.is_timestamp, either)) and (found.tz is None) == (wanted.tz is None)


def _remove_mapping(log: DeltaLog) -> None:
    # New schema and new files in one commit: under the names of one the columns of the other are
    # not found.
    txn = log.start_transaction()
    txn.changes.update_metadata_for_restore(
        _without_mapping(txn.metadata, log), txn.changes.protocol
    )
    snapshot = txn.snapshot
    assert snapshot is not None
    stored = clustering_columns(snapshot.domain_metadata)
    shown = [logical_path(snapshot.read_schema, path) for path in stored]
    rewrite_all(txn, "REMOVE COLUMN MAPPING", [clustering_action(shown)] if stored else [])


def _without_mapping(metadata: Metadata, log: DeltaLog) -> Metadata:
    schema = read_schema_of(StructType.from_json(metadata.schema_string), "none")
    kept = {k: v for k, v in metadata.configuration.items() if k not in _MAPPING}
    found = replace(metadata, schema_string=schema.to_json(), configuration=kept)
    if odd := list(map(dotted, odd_names(schema))):
        raise DeltaAnalysisError(
            "[DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING] Found invalid characters in "
            f"the column names of {log.table}: {', '.join(odd)}. They must not contain any of "
            r"' ,;{}()\n\t=' once column mapping is removed. Rename the columns first.",
            table=log.table,
            columns=odd,
        )
    verify_new_metadata(metadata, found, log.conf)
    return found


def _remove_times(log: DeltaLog, snapshot: Snapshot) -> bool:
    configuration = snapshot.metadata.configuration
    enabled = snapshot.properties.in_commit_timestamps
    gone = [key for key in _TIMES if key in configuration]
    if not enabled and not gone:
        return False
    _unset(log, gone, {"delta.enableInCommitTimestamps": "false"} if enabled else {})
    return True


def _remove_row_ids(log: DeltaLog, snapshot: Snapshot) -> None:
    wanted = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    if not wanted.items() <= snapshot.metadata.configuration.items():
        _set(log, wanted)
    # In batches, each of the newest version, as Delta's own: one commit of all files would conflict
    # with every writer that touches one of them meanwhile.
    size, batch = max(log.conf.read(keys.BACKFILL_FILES), 1), 0
    while True:
        txn = log.start_transaction()
        assert txn.snapshot is not None
        files = txn.snapshot.file_table
        numbered = files.filter(
            pc.or_(files["base_row_id"].is_valid(), files["default_row_commit_version"].is_valid())
        ).slice(0, size)
        if not numbered.num_rows:
            return
        txn.reads.track_files_read(numbered)
        adds = [
            replace(add, base_row_id=None, default_row_commit_version=None, data_change=False)
            for add in to_add_files(numbered)
        ]
        txn.commit(adds, Operation(UNBACKFILL, {"batchId": str(batch)}))
        batch += 1


def _remove_domains(log: DeltaLog) -> None:
    txn = log.start_transaction()
    assert txn.snapshot is not None
    gone = [replace(each, removed=True) for each in txn.snapshot.domain_metadata.values()]
    txn.commit(gone, Operation("DOMAIN METADATA CLEANUP"))
