"""The transaction core of lakelog: Delta's log, free of any engine.

write_arrow("/lake/flights", rows, mode="append")
read_arrow("/lake/flights", columns=["day"], where="month = 1")

Functions of a table take its URI or its `DeltaLog`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelog.core.actions import (
        AddCDCFile,
        AddFile,
        CommitInfo,
        DeletionVectorDescriptor,
        DomainMetadata,
        Format,
        Metadata,
        Protocol,
        RemoveFile,
        SetTransaction,
    )
    from lakelog.core.actions.operation import Operation
    from lakelog.core.alter.add_columns import add_columns
    from lakelog.core.alter.clustering import cluster_by
    from lakelog.core.alter.columns import change_column, drop_columns, rename_column
    from lakelog.core.alter.constraints import add_constraint, drop_constraint
    from lakelog.core.alter.drop_feature.command import drop_feature
    from lakelog.core.alter.identity import sync_identity
    from lakelog.core.alter.properties import set_properties, unset_properties
    from lakelog.core.alter.replace_columns import replace_columns
    from lakelog.core.alter.row_tracking import enable_row_tracking
    from lakelog.core.change_feed.feed import table_changes
    from lakelog.core.clock import Clock, SystemClock
    from lakelog.core.commit.retry import retry_on_conflict
    from lakelog.core.conf import DeltaConf
    from lakelog.core.create.clone.command import TableCloned, clone
    from lakelog.core.create.convert import convert_to_delta
    from lakelog.core.create.table import create_table
    from lakelog.core.data.scan import Scan
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.dml.delete_update import delete_rows, update_rows
    from lakelog.core.dml.merge.builder import MergeBuilder, merge
    from lakelog.core.dml.rewrite import RowsChanged
    from lakelog.core.dml.write import write_arrow
    from lakelog.core.errors import (
        AppendOnlyError,
        ConcurrentAppendException,
        ConcurrentDeleteDeleteException,
        ConcurrentDeleteReadException,
        ConcurrentTransactionException,
        ConcurrentWriteException,
        ConstraintViolationError,
        CorruptCheckpointError,
        CorruptCommitError,
        CorruptLogError,
        DataFileError,
        DataFileMissingError,
        DeltaAnalysisError,
        DeltaConcurrentModificationException,
        DeltaError,
        InvalidCommittedVersionError,
        InvalidPredicateError,
        LogGapError,
        LogTooLargeError,
        MaxCommitAttemptsExceededError,
        MetadataChangedException,
        PostCommitError,
        PostCommitHookFailedError,
        ProtocolChangedException,
        SchemaMismatchError,
        TableExistsError,
        TableNotFoundError,
        TimestampOutOfRangeError,
        TornCommitError,
        UnsupportedFeatureError,
        VersionNotFoundError,
    )
    from lakelog.core.events import CommitStats, write_events_to
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression, lit
    from lakelog.core.features.isolation import IsolationLevel
    from lakelog.core.hooks import CommittedTransaction, PostCommitHook, hook_failed
    from lakelog.core.log.history import HistoryEntry
    from lakelog.core.maintain.optimize.command import optimize, purge
    from lakelog.core.maintain.optimize.metrics import FileSizes, OptimizeMetrics
    from lakelog.core.maintain.optimize.running import Optimized, OptimizeProgress
    from lakelog.core.maintain.repair.command import repair, undo_repair
    from lakelog.core.maintain.repair.defects import Defect, TableRepaired
    from lakelog.core.maintain.restore import TableRestored, restore
    from lakelog.core.maintain.vacuum.command import TableVacuumed, vacuum
    from lakelog.core.progress import Progress
    from lakelog.core.reading import read_arrow, scan
    from lakelog.core.schema import (
        ArrayType,
        DataType,
        DecimalType,
        MapType,
        PrimitiveType,
        StructField,
        StructType,
    )
    from lakelog.core.schema.filled_columns import (
        column_with_default,
        generated_column,
        identity_column,
    )
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.attempt_files import AttemptFiles
    from lakelog.core.transaction.optimistic import OptimisticTransaction
    from lakelog.logstores.errors import (
        CommitOutcomeUnknownError,
        FileTooLargeError,
        LogStoreConfError,
        LogStoreError,
        MissingExtraError,
        StorageUnavailableError,
        UnsafeLogStoreError,
    )

    __version__: str

# Name -> module. Imported on first use: a store, or an executor, needs few of them.
_HOMES = {
    name: f"lakelog.core.{module}"
    for module, names in {
        "actions": (
            "AddCDCFile AddFile CommitInfo DeletionVectorDescriptor DomainMetadata Format "
            "Metadata Protocol RemoveFile SetTransaction"
        ),
        "change_feed.feed": "table_changes",
        "alter.add_columns": "add_columns",
        "alter.columns": "change_column drop_columns rename_column",
        "alter.constraints": "add_constraint drop_constraint",
        "clock": "Clock SystemClock",
        "schema.filled_columns": "column_with_default generated_column identity_column",
        "conf": "DeltaConf",
        "create.convert": "convert_to_delta",
        "create.table": "create_table",
        "data.scan": "Scan",
        "delta_log": "DeltaLog",
        "errors": (
            "AppendOnlyError ConcurrentAppendException "
            "ConcurrentDeleteDeleteException ConcurrentDeleteReadException "
            "ConcurrentTransactionException ConcurrentWriteException "
            "ConstraintViolationError CorruptCheckpointError CorruptCommitError "
            "CorruptLogError DataFileError DataFileMissingError DeltaAnalysisError "
            "DeltaConcurrentModificationException DeltaError "
            "InvalidCommittedVersionError InvalidPredicateError LogGapError "
            "LogTooLargeError MaxCommitAttemptsExceededError MetadataChangedException "
            "PostCommitError PostCommitHookFailedError ProtocolChangedException "
            "SchemaMismatchError TableExistsError TableNotFoundError "
            "TimestampOutOfRangeError TornCommitError UnsupportedFeatureError "
            "VersionNotFoundError"
        ),
        "events": "CommitStats write_events_to",
        "expressions.tree": "Expression lit",
        "filters.filter": "Filter",
        "hooks": "CommittedTransaction PostCommitHook hook_failed",
        "log.history": "HistoryEntry",
        "features.isolation": "IsolationLevel",
        "actions.operation": "Operation",
        "alter.properties": "set_properties unset_properties",
        "maintain.optimize.command": "optimize purge",
        "maintain.optimize.running": "OptimizeProgress Optimized",
        "maintain.optimize.metrics": "FileSizes OptimizeMetrics",
        "progress": "Progress",
        "reading": "read_arrow scan",
        "alter.clustering": "cluster_by",
        "alter.identity": "sync_identity",
        "alter.replace_columns": "replace_columns",
        "alter.drop_feature.command": "drop_feature",
        "create.clone.command": "TableCloned clone",
        "maintain.repair.command": "repair undo_repair",
        "maintain.repair.defects": "Defect TableRepaired",
        "maintain.restore": "TableRestored restore",
        "commit.retry": "retry_on_conflict",
        "dml.rewrite": "RowsChanged",
        "dml.delete_update": "delete_rows update_rows",
        "alter.row_tracking": "enable_row_tracking",
        "dml.merge.builder": "MergeBuilder merge",
        "schema": "ArrayType DataType DecimalType MapType PrimitiveType StructField StructType",
        "state.snapshot": "Snapshot",
        "transaction.attempt_files": "AttemptFiles",
        "transaction.optimistic": "OptimisticTransaction",
        "maintain.vacuum.command": "TableVacuumed vacuum",
        "dml.write": "write_arrow",
    }.items()
    for name in names.split()
}
_HOMES |= dict.fromkeys(
    (
        "CommitOutcomeUnknownError",
        "FileTooLargeError",
        "LogStoreConfError",
        "LogStoreError",
        "MissingExtraError",
        "StorageUnavailableError",
        "UnsafeLogStoreError",
    ),
    "lakelog.logstores.errors",
)
__all__ = [
    "AddCDCFile",
    "AddFile",
    "AppendOnlyError",
    "ArrayType",
    "AttemptFiles",
    "Clock",
    "CommitInfo",
    "CommitOutcomeUnknownError",
    "CommitStats",
    "CommittedTransaction",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConstraintViolationError",
    "CorruptCheckpointError",
    "CorruptCommitError",
    "CorruptLogError",
    "DataFileError",
    "DataFileMissingError",
    "DataType",
    "DecimalType",
    "Defect",
    "DeletionVectorDescriptor",
    "DeltaAnalysisError",
    "DeltaConcurrentModificationException",
    "DeltaConf",
    "DeltaError",
    "DeltaLog",
    "DomainMetadata",
    "Expression",
    "FileSizes",
    "FileTooLargeError",
    "Filter",
    "Format",
    "HistoryEntry",
    "InvalidCommittedVersionError",
    "InvalidPredicateError",
    "IsolationLevel",
    "LogGapError",
    "LogStoreConfError",
    "LogStoreError",
    "LogTooLargeError",
    "MapType",
    "MaxCommitAttemptsExceededError",
    "MergeBuilder",
    "Metadata",
    "MetadataChangedException",
    "MissingExtraError",
    "Operation",
    "OptimisticTransaction",
    "OptimizeMetrics",
    "OptimizeProgress",
    "Optimized",
    "PostCommitError",
    "PostCommitHook",
    "PostCommitHookFailedError",
    "PrimitiveType",
    "Progress",
    "Protocol",
    "ProtocolChangedException",
    "RemoveFile",
    "RowsChanged",
    "Scan",
    "SchemaMismatchError",
    "SetTransaction",
    "Snapshot",
    "StorageUnavailableError",
    "StructField",
    "StructType",
    "SystemClock",
    "TableCloned",
    "TableExistsError",
    "TableNotFoundError",
    "TableRepaired",
    "TableRestored",
    "TableVacuumed",
    "TimestampOutOfRangeError",
    "TornCommitError",
    "UnsafeLogStoreError",
    "UnsupportedFeatureError",
    "VersionNotFoundError",
    "__version__",
    "add_columns",
    "add_constraint",
    "change_column",
    "clone",
    "cluster_by",
    "column_with_default",
    "convert_to_delta",
    "create_table",
    "delete_rows",
    "drop_columns",
    "drop_constraint",
    "drop_feature",
    "enable_row_tracking",
    "generated_column",
    "hook_failed",
    "identity_column",
    "lit",
    "merge",
    "optimize",
    "purge",
    "read_arrow",
    "rename_column",
    "repair",
    "replace_columns",
    "restore",
    "retry_on_conflict",
    "scan",
    "set_properties",
    "sync_identity",
    "table_changes",
    "undo_repair",
    "unset_properties",
    "update_rows",
    "vacuum",
    "write_arrow",
    "write_events_to",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = _version()
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        from lakelog.core.names_elsewhere import MODULE, refuse_name

        refuse_name(f"module {__name__!r}", name, MODULE.get(name))
    globals()[name] = value
    return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lakelog")
    except PackageNotFoundError:
        # Shipped to a cluster as a bare zip: the code came without its metadata.
        return "unknown"


def __dir__() -> list[str]:
    return sorted(__all__)
