"""The transaction core of lakelog: Delta's log, free of any engine.

log = DeltaLog.for_table("/lake/flights")
log.snapshot.to_arrow(columns=["month"], filter="month = 1")
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
    from lakelog.core.alter_columns import (
        add_columns,
        change_column,
        drop_columns,
        rename_column,
    )
    from lakelog.core.alter_constraints import add_constraint, drop_constraint
    from lakelog.core.change_feed import table_changes
    from lakelog.core.clock import Clock, SystemClock
    from lakelog.core.columns import generated, identity, with_default
    from lakelog.core.conf import DeltaConf
    from lakelog.core.convert import convert_to_delta
    from lakelog.core.create import create_table
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.events import CommitStats
    from lakelog.core.expressions import lit
    from lakelog.core.history import HistoryEntry
    from lakelog.core.isolation import IsolationLevel
    from lakelog.core.operations import Operation
    from lakelog.core.property_changes import set_properties, unset_properties
    from lakelog.core.row_changes import RowsChanged
    from lakelog.core.row_operations import delete_rows, update_rows
    from lakelog.core.row_tracking_backfill import enable_row_tracking
    from lakelog.core.schema import (
        ArrayType,
        DecimalType,
        MapType,
        PrimitiveType,
        StructField,
        StructType,
    )
    from lakelog.core.snapshot import Snapshot
    from lakelog.core.transaction import OptimisticTransaction
    from lakelog.core.write import write_arrow

# Name -> module. Imported on first use: a store, or an executor, needs few of them.
_HOMES = {
    name: f"lakelog.core.{module}"
    for module, names in {
        "actions": (
            "AddCDCFile AddFile CommitInfo DeletionVectorDescriptor DomainMetadata Format "
            "Metadata Protocol RemoveFile SetTransaction"
        ),
        "change_feed": "table_changes",
        "alter_columns": "add_columns change_column drop_columns rename_column",
        "alter_constraints": "add_constraint drop_constraint",
        "clock": "Clock SystemClock",
        "columns": "generated identity with_default",
        "conf": "DeltaConf",
        "convert": "convert_to_delta",
        "create": "create_table",
        "delta_log": "DeltaLog",
        "events": "CommitStats",
        "expressions": "lit",
        "history": "HistoryEntry",
        "isolation": "IsolationLevel",
        "operations": "Operation",
        "property_changes": "set_properties unset_properties",
        "row_changes": "RowsChanged",
        "row_operations": "delete_rows update_rows",
        "row_tracking_backfill": "enable_row_tracking",
        "schema": "ArrayType DecimalType MapType PrimitiveType StructField StructType",
        "snapshot": "Snapshot",
        "transaction": "OptimisticTransaction",
        "write": "write_arrow",
    }.items()
    for name in names.split()
}

__all__ = [
    "AddCDCFile",
    "AddFile",
    "ArrayType",
    "Clock",
    "CommitInfo",
    "CommitStats",
    "DecimalType",
    "DeletionVectorDescriptor",
    "DeltaConf",
    "DeltaLog",
    "DomainMetadata",
    "Format",
    "HistoryEntry",
    "IsolationLevel",
    "MapType",
    "Metadata",
    "Operation",
    "OptimisticTransaction",
    "PrimitiveType",
    "Protocol",
    "RemoveFile",
    "RowsChanged",
    "SetTransaction",
    "Snapshot",
    "StructField",
    "StructType",
    "SystemClock",
    "add_columns",
    "add_constraint",
    "change_column",
    "convert_to_delta",
    "create_table",
    "delete_rows",
    "drop_columns",
    "drop_constraint",
    "enable_row_tracking",
    "generated",
    "identity",
    "lit",
    "rename_column",
    "set_properties",
    "table_changes",
    "unset_properties",
    "update_rows",
    "with_default",
    "write_arrow",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
