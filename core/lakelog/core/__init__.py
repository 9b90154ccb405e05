"""The transaction core of lakelog: Delta's log, free of any engine.

write_arrow("/lake/flights", rows, mode="append")
read_arrow("/lake/flights", columns=["day"], where="month = 1")

Functions of a table take its URI or its `DeltaLog`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.actions.operation import Operation
    from lakelog.core.change_feed.feed import table_changes
    from lakelog.core.clock import Clock, SystemClock
    from lakelog.core.commit.retry import retry_on_conflict
    from lakelog.core.conf import DeltaConf
    from lakelog.core.create.clone.clone_table import TableCloned, clone
    from lakelog.core.create.convert_to_delta import convert_to_delta
    from lakelog.core.create.named_tables import drop_table, rename_table
    from lakelog.core.create.table import create_table
    from lakelog.core.data.table_scan import Scan
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.dml.appending.appender import Appender, AsyncAppender, appender
    from lakelog.core.dml.appending.dead_letters import UnfitRow
    from lakelog.core.dml.appending.intake import Ticket
    from lakelog.core.dml.arrow_write import write_arrow
    from lakelog.core.dml.delete_update import delete_rows, update_rows
    from lakelog.core.dml.merge.builder import MergeBuilder, merge
    from lakelog.core.events import CommitStats, write_events_to
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression, lit
    from lakelog.core.features.isolation import IsolationLevel
    from lakelog.core.log.commit_history import HistoryEntry
    from lakelog.core.maintain.optimize.optimize_table import optimize, purge
    from lakelog.core.maintain.optimize.run_metrics import FileSizes, OptimizeMetrics
    from lakelog.core.maintain.optimize.running import Optimized, OptimizeProgress
    from lakelog.core.maintain.repair.defects import Defect, TableRepaired
    from lakelog.core.maintain.repair.repair_table import repair, undo_repair
    from lakelog.core.maintain.restore_version import TableRestored, restore
    from lakelog.core.maintain.vacuum.vacuum_table import TableVacuumed, vacuum
    from lakelog.core.progress import Progress
    from lakelog.core.reading import read_arrow, scan
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.attempt_files import AttemptFiles
    from lakelog.core.transaction.command_commit import RowsChanged
    from lakelog.core.transaction.optimistic import OptimisticTransaction

    __version__: str

__all__ = [
    "Appender",
    "AsyncAppender",
    "AttemptFiles",
    "Clock",
    "CommitStats",
    "Defect",
    "DeltaConf",
    "DeltaLog",
    "Expression",
    "FileSizes",
    "Filter",
    "HistoryEntry",
    "IsolationLevel",
    "MergeBuilder",
    "Operation",
    "OptimisticTransaction",
    "OptimizeMetrics",
    "OptimizeProgress",
    "Optimized",
    "Progress",
    "RowsChanged",
    "Scan",
    "Snapshot",
    "SystemClock",
    "TableCloned",
    "TableRepaired",
    "TableRestored",
    "TableVacuumed",
    "Ticket",
    "UnfitRow",
    "__version__",
    "appender",
    "clone",
    "convert_to_delta",
    "create_table",
    "delete_rows",
    "drop_table",
    "lit",
    "merge",
    "optimize",
    "purge",
    "read_arrow",
    "rename_table",
    "repair",
    "restore",
    "retry_on_conflict",
    "scan",
    "table_changes",
    "undo_repair",
    "update_rows",
    "vacuum",
    "write_arrow",
    "write_events_to",
]

if not TYPE_CHECKING:  # else a type checker takes every name for one that is here
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions.operation": "Operation",
            "dml.appending.appender": "Appender AsyncAppender appender",
            "dml.appending.dead_letters": "UnfitRow",
            "dml.appending.intake": "Ticket",
            "change_feed.feed": "table_changes",
            "clock": "Clock SystemClock",
            "commit.retry": "retry_on_conflict",
            "conf": "DeltaConf",
            "create.clone.clone_table": "TableCloned clone",
            "create.convert_to_delta": "convert_to_delta",
            "create.named_tables": "drop_table rename_table",
            "create.table": "create_table",
            "data.table_scan": "Scan",
            "delta_log": "DeltaLog",
            "dml.delete_update": "delete_rows update_rows",
            "dml.merge.builder": "MergeBuilder merge",
            "dml.arrow_write": "write_arrow",
            "events": "CommitStats write_events_to",
            "expressions.tree": "Expression lit",
            "features.isolation": "IsolationLevel",
            "expressions.filter": "Filter",
            "log.commit_history": "HistoryEntry",
            "maintain.optimize.optimize_table": "optimize purge",
            "maintain.optimize.run_metrics": "FileSizes OptimizeMetrics",
            "maintain.optimize.running": "Optimized OptimizeProgress",
            "maintain.repair.repair_table": "repair undo_repair",
            "maintain.repair.defects": "Defect TableRepaired",
            "maintain.restore_version": "TableRestored restore",
            "maintain.vacuum.vacuum_table": "TableVacuumed vacuum",
            "progress": "Progress",
            "reading": "read_arrow scan",
            "state.snapshot": "Snapshot",
            "transaction.attempt_files": "AttemptFiles",
            "transaction.command_commit": "RowsChanged",
            "transaction.optimistic": "OptimisticTransaction",
            "version": "__version__",
        },
    )
