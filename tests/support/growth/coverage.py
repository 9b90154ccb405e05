"""The public operations of lakelog, and those of them that growth is not measured of."""

from __future__ import annotations

import inspect
from functools import cached_property
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Final

import lakelog.core
import lakelog.spark
from lakelog.cli.app import COMMANDS
from lakelog.core.names_elsewhere import PUBLIC
from lakelog.core.transaction.recorded_reads import Reads
from lakelog.core.transaction.transaction_changes import Changes
from lakelog.logstores import LogStore


def public_operations() -> set[str]:
    """All that users call: `write_arrow`, `DeltaLog.history`, `cli.files`, `LogStore.read`."""
    parts = _members(Reads) | _members(Changes)  # of a transaction, for engines
    cli = {f"cli.{name}" for name in COMMANDS}
    modules = (lakelog.core, *map(import_module, PUBLIC))
    return cli.union(_members(LogStore), parts, *map(_public, modules))


def public_operations_of_spark() -> set[str]:
    """The same of `lakelog.spark`: `DeltaTable.detail`."""
    return _public(lakelog.spark)


def _public(module: ModuleType) -> set[str]:
    found: set[str] = set()
    for name in module.__all__:
        value = getattr(module, name)
        if not isinstance(value, FunctionType | type) or (
            inspect.isclass(value) and issubclass(value, Exception)
        ):
            continue
        found |= _members(value) if inspect.isclass(value) else {name}
    return found


def _members(kind: type) -> set[str]:
    """Methods and properties that a class of ours defines or inherits; fields are none."""
    operations = (FunctionType, property, cached_property, classmethod, staticmethod)
    return {
        f"{kind.__name__}.{name}"
        for each in kind.__mro__
        if each.__module__.startswith("lakelog.")
        for name, value in vars(each).items()
        if not name.startswith("_") and isinstance(value, operations)
    }


_REASONS = {
    "hands out what it was given, or says one thing of it": """
        DeltaLog.clock DeltaLog.conf DeltaLog.is_governed DeltaLog.known_snapshot
        DeltaLog.known_version
        DeltaLog.store DeltaLog.table Snapshot.clock Snapshot.conf Snapshot.state
        Snapshot.store Snapshot.table Snapshot.time Snapshot.version
        SetTransaction.last_updated_time
        Snapshot.partition_columns Snapshot.has_deletion_vectors
        DeltaLog.doubt DeltaLog.known_alone DeltaLog.note_commit DeltaLog.was_just_made
        DeltaLog.held_files DeltaLog.decides_afar DeltaLog.may_hold Snapshot.held_files
        DeltaLog.active_transaction OptimisticTransaction.attempts
        OptimisticTransaction.may_be_committed OptimisticTransaction.snapshot
        OptimisticTransaction.register_post_commit_hook
        Changes.mark_written Changes.new_metadata Changes.new_protocol Changes.file_layout
        Changes.pending Changes.restore Changes.has_checks
        Reads.version Reads.read_whole_table
        LogStore.capabilities LogStore.close LogStore.conf LogStore.create_folder
        LogStore.filesystem LogStore.filesystem_path LogStore.is_partial_write_visible
        LogStore.settings
        Clock.monotonic Clock.now_ms Clock.sleep
        SystemClock.monotonic SystemClock.now_ms SystemClock.sleep
        DeltaConf.get_bool DeltaConf.get_float DeltaConf.get_int DeltaConf.get_str
        DeltaConf.from_mapping DeltaConf.derived DeltaConf.read
        DeltaConf.session_tz
        Scan.schema Scan.limit Snapshot.print_schema HistoryEntry.time
        FileSizes.as_delta OptimizeMetrics.as_delta OptimizeMetrics.num_files_added
        OptimizeMetrics.num_files_removed Optimized.version
    """,
    "a part of every commit or write that is measured": """
        DeltaLog.for_table DeltaLog.start_transaction DeltaLog.with_new_transaction
        DeltaLog.after_commit DeltaLog.table_exists Changes.check_before_commit Changes.check_now
        DeltaLog.is_commit_lock_enabled DeltaLog.lock_commit_if_enabled
        DeltaLog.protocol_read DeltaLog.protocol_write
        OptimisticTransaction.metadata Changes.metadata Changes.protocol Changes.take
        OptimisticTransaction.commit_if_needed OptimisticTransaction.run_post_commit_hooks
        OptimisticTransaction.txn_version OptimisticTransaction.filter_files
        OptimisticTransaction.update_metadata
        Changes.assert_removable Reads.track_files_read
        Changes.terms Changes.update_metadata_for_restore
        FileSizes.measured Operation.streaming_update
        Operation.changes_data Operation.create_table Operation.json_metrics
        Operation.json_parameters Operation.manual Operation.may_change_partitioning
        Operation.takes_files_as_they_are Operation.write
        LogStore.staged LogStore.delete_files CommitStats.to_json
        AttemptFiles.add AttemptFiles.at AttemptFiles.own
        PostCommitHook.handle_error PostCommitHook.name hook_failed write_events_to
        retry_on_conflict
    """,
    "takes rows in memory, or commits them as write_arrow does, which is measured": """
        appender Appender.abort Appender.append Appender.app_id Appender.close Appender.flush
        Appender.last_seq AsyncAppender.abort
        Appender.metrics Appender.rejected_sample AsyncAppender.append AsyncAppender.flush
        Appender.reject AsyncAppender.last_seq AsyncAppender.metrics Ticket.done Ticket.result
        Ticket.saved Ticket.wait_saved cli.append
    """,
    "reads as to_batches or to_arrow, which are measured": """
        Scan.narrowed Scan.head Scan.to_arrow Scan.to_duckdb Scan.to_pandas Scan.to_polars
        Scan.to_reader
    """,
    "one action: commits that hold many are measured": """
        action_from_json UnknownAction.kind UnknownAction.to_json
        CheckpointMetadata.check_json_value CheckpointMetadata.from_json_value
        CheckpointMetadata.to_json CheckpointMetadata.to_json_value
        SidecarFile.check_json_value SidecarFile.from_json_value SidecarFile.to_json
        SidecarFile.to_json_value
        AddCDCFile.check_json_value
        AddCDCFile.from_json_value AddCDCFile.to_json AddCDCFile.to_json_value
        AddFile.check_json_value
        AddFile.from_json_value AddFile.to_json AddFile.to_json_value
        AddFile.num_records AddFile.remove
        CommitInfo.check_json_value
        CommitInfo.from_json_value CommitInfo.to_json CommitInfo.to_json_value
        DeletionVectorDescriptor.check_json_value
        DeletionVectorDescriptor.from_json_value DeletionVectorDescriptor.to_json_value
        DomainMetadata.check_json_value
        DomainMetadata.from_json_value DomainMetadata.to_json DomainMetadata.to_json_value
        Format.check_json_value
        Format.from_json_value Format.to_json_value
        Metadata.check_json_value
        Metadata.from_json_value Metadata.to_json Metadata.to_json_value
        Protocol.check_json_value
        Protocol.from_json_value Protocol.to_json Protocol.to_json_value
        RemoveFile.check_json_value
        RemoveFile.from_json_value RemoveFile.to_json RemoveFile.to_json_value
        SetTransaction.check_json_value
        SetTransaction.from_json_value SetTransaction.to_json SetTransaction.to_json_value
    """,
    "one column: schemas that have many are measured": """
        ArrayType.json_value DecimalType.json_value MapType.json_value PrimitiveType.json_value
        StructField.json_value StructField.with_type column_with_default generated_column
        identity_column lit type_from_json_value
    """,
    "speaks to a server, a fixed number of times": """
        cli.conformance cli.doctor cli.migrate cli.drop cli.rename drop_table rename_table
    """,
    "passes on what stores are asked, which is measured": "cli.serve",
    "starts another program": "cli.run",
    "asks what history, files, OPTIMIZE and VACUUM ask, each measured": "cli.report cli.ui",
    "puts back what a command has noted": "Changes.undone_on_error Reads.undone_on_error",
    "what its function does is measured": """
        cli.alter cli.clone cli.convert cli.merge cli.write
    """,
    "goes by what one repair has set aside": "undo_repair TableRepaired.left",
}

EXCUSED: Final = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Name -> why nothing that it does can grow with a table, or where that is measured."""

_REASONS_OF_SPARK = {
    "takes down what `load`, `save`, `execute` or `start` then does": """
        DeltaReader.format DeltaReader.option DeltaReader.options DeltaReader.schema
        DeltaReader.filter DeltaReader.where
        DeltaWriter.format DeltaWriter.mode DeltaWriter.option DeltaWriter.options
        DeltaWriter.clusterBy DeltaWriter.partitionBy DeltaWriter.replaceWhere
        DeltaTableBuilder.clusterBy DeltaTableBuilder.comment DeltaTableBuilder.location
        DeltaTableBuilder.partitionedBy DeltaTableBuilder.property DeltaTableBuilder.tableName
        DeltaTable.create DeltaTable.createIfNotExists DeltaTable.createOrReplace
        DeltaTable.replace
        DeltaTable.alias DeltaTable.merge DeltaTable.optimize
        DeltaMergeBuilder.whenMatchedDelete DeltaMergeBuilder.whenMatchedUpdate
        DeltaMergeBuilder.whenMatchedUpdateAll DeltaMergeBuilder.whenNotMatchedBySourceDelete
        DeltaMergeBuilder.whenNotMatchedBySourceUpdate DeltaMergeBuilder.whenNotMatchedInsert
        DeltaMergeBuilder.whenNotMatchedInsertAll DeltaMergeBuilder.withSchemaEvolution
        read_stream DeltaStreamReader.format DeltaStreamReader.option DeltaStreamReader.options
        DeltaStreamReader.schema
        write_stream DeltaStreamWriter.format DeltaStreamWriter.option DeltaStreamWriter.options
        DeltaStreamWriter.clusterBy
        DeltaStreamWriter.outputMode DeltaStreamWriter.partitionBy DeltaStreamWriter.queryName
        DeltaStreamWriter.trigger
        write_to DeltaWriterV2.clusterBy DeltaWriterV2.option DeltaWriterV2.options
        DeltaWriterV2.partitionedBy DeltaWriterV2.tableProperty DeltaWriterV2.using
    """,
    "the core's, which is measured": """
        DeltaTable.generate DeltaTable.isDeltaTable DeltaTable.log DeltaTable.vacuum
        DeltaTable.addColumns DeltaTable.alterColumn DeltaTable.clusterBy DeltaTable.dropColumns
        DeltaTable.dropConstraint DeltaTable.renameColumn DeltaTable.replaceColumns
        DeltaTable.setProperties DeltaTable.syncIdentity DeltaTable.unsetProperties
        DeltaTable.addFeatureSupport DeltaTable.dropFeatureSupport DeltaTable.upgradeTableProtocol
        DeltaTable.clone DeltaTable.cloneAtTimestamp DeltaTable.cloneAtVersion
        DeltaTable.restoreToTimestamp DeltaTable.restoreToVersion
    """,
    "queries of Spark's over the rows, and a commit": """
        DeltaTable.addConstraint DeltaTable.delete DeltaTable.update DeltaMergeBuilder.execute
    """,
    "hands a query to Spark, each batch of which reads or writes as `load` and `save`": """
        DeltaStreamReader.load DeltaStreamWriter.start once_per_batch
    """,
    "a question to the catalog, and what is done by path": """
        DeltaTable.forName DeltaReader.table DeltaStreamReader.table DeltaStreamWriter.toTable
        DeltaWriter.saveAsTable DeltaWriterV2.append DeltaWriterV2.create
        DeltaWriterV2.createOrReplace DeltaWriterV2.overwrite DeltaWriterV2.overwritePartitions
        DeltaWriterV2.replace
    """,
    "reads a statement, and does what a method does": "sql sql_script",
    "once for a session": "bridge disable enable unwrap_error register",
}

EXCUSED_OF_SPARK: Final = {
    name: reason for reason, names in _REASONS_OF_SPARK.items() for name in names.split()
}
"""As `EXCUSED`."""
