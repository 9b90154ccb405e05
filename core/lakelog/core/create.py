"""Making a table of a schema, without rows."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from lakelog.core.actions import Metadata
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError, TableExistsError, TableNotFoundError
from lakelog.core.given_types import property_texts, schema_from
from lakelog.core.log_values import check_text
from lakelog.core.names import several
from lakelog.core.operations import Operation
from lakelog.core.properties import defaults_from_conf
from lakelog.core.protocol import check_writable
from lakelog.core.schema_rules import resolve_columns

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.given_types import GivenSchema
    from lakelog.core.transaction import OptimisticTransaction

__all__ = ["CreateMode", "create_table"]

CreateMode = Literal["create", "create_if_not_exists", "replace", "create_or_replace"]

_OPERATIONS: Mapping[CreateMode, str] = {
    "create": "CREATE TABLE",
    "create_if_not_exists": "CREATE TABLE",
    "replace": "REPLACE TABLE",
    "create_or_replace": "CREATE OR REPLACE TABLE",
}


def create_table(
    uri: str | os.PathLike[str],
    schema: GivenSchema,
    *,
    mode: CreateMode = "create",
    partition_by: str | Sequence[str] = (),
    properties: Mapping[str, str | bool | int] | None = None,
    name: str | None = None,
    description: str | None = None,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
) -> int:
    """Make an empty Delta table, or replace one.

    Columns that writers fill are made by `lakelog.core.columns`.

    Args:
        uri: the table.
        schema: its columns: ours, a `pyarrow.Schema`, `{"id": "bigint"}`, or
            `"id bigint NOT NULL, name string"`.
        mode: `create` refuses a table that is there, `create_if_not_exists` leaves it alone,
            `replace` takes its rows, schema and properties, and needs one, `create_or_replace`
            does either.
        partition_by: the partition columns.
        properties: table properties, `delta.feature.*` among them.
        name: for `DESCRIBE DETAIL`; it is not looked up anywhere.
        description: for `DESCRIBE DETAIL`.
        conf: the user's whole Spark conf; it chooses the store.
        user_metadata: a note for the table's history.

    Returns:
        The version that made the table; its present one where nothing had to be done.

    Raises:
        TableExistsError: mode `create`, and there is a table.
        TableNotFoundError: mode `replace`, and there is none.
        DeltaAnalysisError: a schema, a partitioning or a property that no table can have.
        DeltaConcurrentModificationException: another writer was faster.
    """
    if mode not in _OPERATIONS:
        raise DeltaAnalysisError(f"mode must be one of {', '.join(_OPERATIONS)}, not {mode!r}")
    wanted_schema, texts = schema_from(schema), property_texts(properties)
    for argument, text in (
        ("name", name),
        ("description", description),
        ("user_metadata", user_metadata),
    ):
        check_text(text, argument)
    log = DeltaLog.for_table(uri, conf)
    txn = log.start_transaction()
    if txn.snapshot is None and mode == "replace":
        raise TableNotFoundError(
            f"there is no Delta table at {log.table} to replace; create_or_replace makes one",
            table=log.table,
        )
    if txn.snapshot is not None and mode == "create":
        raise TableExistsError(
            f"there is a Delta table at {log.table} already (version {txn.read_version}); choose "
            "another path, or say that it may be replaced",
            table=log.table,
        )
    if txn.snapshot is not None and mode == "create_if_not_exists":
        return txn.read_version
    columns = resolve_columns(wanted_schema, several(partition_by), "partition column")
    wanted = Metadata(
        id=str(uuid.uuid4()),
        schema_string=wanted_schema.to_json(),
        partition_columns=columns,
        configuration=texts,
        name=name,
        description=description,
    )
    operation = Operation.create_table(
        columns,
        properties=texts,
        description=description,
        user_metadata=user_metadata,
        name=_OPERATIONS[mode],
    )
    removed = _removed(txn, wanted)
    check_writable(txn.protocol, txn.metadata, log.table)
    now = log.clock.now_ms()
    return txn.commit([file.remove(now) for file in removed], operation)


def _removed(txn: OptimisticTransaction, wanted: Metadata) -> list[AddFile]:
    """Set the metadata; give the files of a table that is replaced."""
    if txn.snapshot is None:
        txn.update_metadata(wanted)
        return []
    old = txn.snapshot.metadata
    defaults = defaults_from_conf(txn.delta_log.conf)
    txn.update_metadata(
        replace(
            wanted,
            id=old.id,
            created_time=old.created_time,
            configuration={**defaults, **wanted.configuration},
        )
    )
    files = txn.filter_files()
    if files:
        txn.assert_removable()
    return files
