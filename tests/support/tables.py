"""Small tables, made without data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lakelog.core.actions import AddFile, Metadata
from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.clock import Clock


def schema_json(**columns: Any) -> str:
    """A schema of nullable columns, by name and the JSON value of their type."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in columns.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


ID_SCHEMA = schema_json(id="long")


def add_file(path: str, *, data_change: bool = True, **partition: str | None) -> AddFile:
    """A file that nobody wrote."""
    return AddFile(
        path=path,
        partition_values=partition,
        size=1,
        modification_time=1,
        data_change=data_change,
        stats='{"numRecords":1}',
    )


def new_table(
    uri: str,
    *,
    schema: str = ID_SCHEMA,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> DeltaLog:
    """Create a table (version 0) and give its log."""
    log = DeltaLog.for_table(uri, conf, clock)
    return created_by(log, schema=schema, partition_by=partition_by, properties=properties)


def created_by(
    log: DeltaLog,
    *,
    schema: str = ID_SCHEMA,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> DeltaLog:
    """The same, through a log that there is."""
    txn = log.start_transaction()
    metadata = Metadata(
        id="test",
        schema_string=schema,
        partition_columns=list(partition_by),
        configuration=dict(properties or {}),
    )
    txn.update_metadata(metadata)
    txn.commit([], Operation.create_table(partition_by))
    return log
