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
    from lakelog.core.change_feed.feed import table_changes
    from lakelog.core.clock import Clock, SystemClock
    from lakelog.core.commands.add_columns import add_columns
    from lakelog.core.commands.alter_clustering import cluster_by
    from lakelog.core.commands.alter_columns import change_column, drop_columns, rename_column
    from lakelog.core.commands.alter_constraints import add_constraint, drop_constraint
    from lakelog.core.commands.alter_properties import set_properties, unset_properties
    from lakelog.core.commands.clone.command import TableCloned, clone
    from lakelog.core.commands.convert import convert_to_delta
    from lakelog.core.commands.create import create_table
    from lakelog.core.commands.delete_update import delete_rows, update_rows
    from lakelog.core.commands.drop_feature.command import drop_feature
    from lakelog.core.commands.enable_row_tracking import enable_row_tracking
    from lakelog.core.commands.merge.builder import MergeBuilder, merge
    from lakelog.core.commands.optimize.command import optimize, purge
    from lakelog.core.commands.optimize.metrics import FileSizes, OptimizeMetrics
    from lakelog.core.commands.optimize.running import Optimized, OptimizeProgress
    from lakelog.core.commands.read import read_arrow, scan
    from lakelog.core.commands.repair.command import repair, undo_repair
    from lakelog.core.commands.repair.defects import Defect, TableRepaired
    from lakelog.core.commands.replace_columns import replace_columns
    from lakelog.core.commands.restore import TableRestored, restore
    from lakelog.core.commands.retry import retry_on_conflict
    from lakelog.core.commands.rewrite import RowsChanged
    from lakelog.core.commands.sync_identity import sync_identity
    from lakelog.core.commands.vacuum.command import TableVacuumed, vacuum
    from lakelog.core.commands.write import write_arrow
    from lakelog.core.conf import DeltaConf
    from lakelog.core.data.scan import Scan
    from lakelog.core.delta_log import DeltaLog
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
    from lakelog.core.expressions.tree import Expression, lit
    from lakelog.core.features.isolation import IsolationLevel
    from lakelog.core.filters.filter import Filter
    from lakelog.core.hooks import CommittedTransaction, PostCommitHook, hook_failed
    from lakelog.core.log.history import HistoryEntry
    from lakelog.core.progress import Progress
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
        "commands.add_columns": "add_columns",
        "commands.alter_columns": "change_column drop_columns rename_column",
        "commands.alter_constraints": "add_constraint drop_constraint",
        "clock": "Clock SystemClock",
        "schema.filled_columns": "column_with_default generated_column identity_column",
        "conf": "DeltaConf",
        "commands.convert": "convert_to_delta",
        "commands.create": "create_table",
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
        "commands.alter_properties": "set_properties unset_properties",
        "commands.optimize.command": "optimize purge",
        "commands.optimize.running": "OptimizeProgress Optimized",
        "commands.optimize.metrics": "FileSizes OptimizeMetrics",
        "progress": "Progress",
        "commands.read": "read_arrow scan",
        "commands.alter_clustering": "cluster_by",
        "commands.sync_identity": "sync_identity",
        "commands.replace_columns": "replace_columns",
        "commands.drop_feature.command": "drop_feature",
        "commands.clone.command": "TableCloned clone",
        "commands.repair.command": "repair undo_repair",
        "commands.repair.defects": "Defect TableRepaired",
        "commands.restore": "TableRestored restore",
        "commands.retry": "retry_on_conflict",
        "commands.rewrite": "RowsChanged",
        "commands.delete_update": "delete_rows update_rows",
        "commands.enable_row_tracking": "enable_row_tracking",
        "commands.merge.builder": "MergeBuilder merge",
        "schema": "ArrayType DataType DecimalType MapType PrimitiveType StructField StructType",
        "state.snapshot": "Snapshot",
        "transaction.attempt_files": "AttemptFiles",
        "transaction.optimistic": "OptimisticTransaction",
        "commands.vacuum.command": "TableVacuumed vacuum",
        "commands.write": "write_arrow",
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
# Names of before, which warn.
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
