"""Creating a table from a schema, without rows."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from lakelog.core.actions import Metadata
from lakelog.core.actions.operation import Operation
from lakelog.core.arguments import check_text
from lakelog.core.delta_log import log_of, making
from lakelog.core.errors import DeltaAnalysisError, TableExistsError, TableNotFoundError
from lakelog.core.features.clustering import CLUSTERING_DOMAIN, clustering_action
from lakelog.core.features.clustering_choice import CLUSTERING, checked_columns
from lakelog.core.features.protocol import check_writable
from lakelog.core.input.given_types import property_texts, schema_from
from lakelog.core.schema.column_mapping import physical_path
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.rules import as_list, resolve_columns
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import DomainMetadata
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.input.given_types import GivenSchema
    from lakelog.core.schema import StructType
    from lakelog.core.schema.edits import ColumnPath
    from lakelog.core.transaction.optimistic import OptimisticTransaction

CreateMode = Literal["create", "create_if_not_exists", "replace", "create_or_replace"]

_OPERATIONS: Mapping[CreateMode, str] = {
    "create": "CREATE TABLE",
    "create_if_not_exists": "CREATE TABLE",
    "replace": "REPLACE TABLE",
    "create_or_replace": "CREATE OR REPLACE TABLE",
}


@command("create table")
def create_table(
    uri: TableOrLog,
    schema: GivenSchema,
    *,
    mode: CreateMode = "create",
    partition_by: str | Sequence[str] = (),
    cluster_by: str | Sequence[ColumnPath] = (),
    properties: Mapping[str, str | bool | int] | None = None,
    name: str | None = None,
    description: str | None = None,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
) -> int:
    """Make an empty Delta table, or replace one.

    Define columns that writers fill with `generated_column`, `identity_column` and
    `column_with_default`.

    Args:
        uri: where the table is, its name in a catalog, or its `DeltaLog`.
        schema: its columns: ours, a `pyarrow.Schema`, `{"id": "bigint"}`, or
            `"id bigint NOT NULL, name string"`.
        mode: `create` refuses an existing table, `create_if_not_exists` leaves it alone, `replace`
            replaces the rows, schema and properties of a table that must exist, `create_or_replace`
            does either.
        partition_by: the partition columns.
        cluster_by: the columns that `OPTIMIZE` sorts files by, at most four, instead of
            `partition_by`. A table that is replaced without any is not clustered any more.
        properties: table properties, `delta.feature.*` among them.
        name: for `DESCRIBE DETAIL`; it is not looked up anywhere.
        description: for `DESCRIBE DETAIL`.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        user_metadata: a note for the table's history.

    Returns:
        The version that created the table; the current version where nothing had to be done.

    Raises:
        TableExistsError: mode `create`, and there is a table.
        TableNotFoundError: mode `replace`, and there is none.
        DeltaAnalysisError: a schema, a partitioning or a property that no table can have.
        DeltaConcurrentModificationException: another writer was faster.
        CatalogError: the catalog of the name refuses, or can't be reached. Nothing was made.
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

    def make(log: DeltaLog) -> int:
        txn = log.start_transaction()
        if txn.snapshot is None and mode == "replace":
            raise TableNotFoundError(
                f"[TABLE_OR_VIEW_NOT_FOUND] there is no Delta table at {log.table} to "
                "replace; create_or_replace makes one",
                table=log.table,
            )
        if txn.snapshot is not None and mode == "create":
            raise TableExistsError(
                f"[TABLE_OR_VIEW_ALREADY_EXISTS] there is already a Delta table at {log.table} "
                f"(version {txn.reads.version}); choose another path, or allow it to be replaced",
                table=log.table,
            )
        if txn.snapshot is not None and mode == "create_if_not_exists":
            return txn.reads.version
        defined = define_table(
            txn,
            wanted_schema,
            partition_by=partition_by,
            cluster_by=cluster_by,
            properties=texts,
            name=name,
            description=description,
        )
        operation = Operation.create_table(
            defined.partition_by,
            cluster_by=defined.cluster_by,
            properties=property_texts(properties),
            description=description,
            user_metadata=user_metadata,
            name=_OPERATIONS[mode],
        )
        # Read as a whole: rows that another writer adds to the old table would stay in the new one.
        removed = [] if txn.snapshot is None else txn.filter_files()
        if removed:
            txn.changes.assert_removable()
        check_writable(txn.changes.protocol, txn.metadata, log.table)
        now = log.clock.now_ms()
        return txn.commit([*(file.remove(now) for file in removed), *defined.domains], operation)

    return make(log_of(uri, conf)) if mode == "replace" else making(uri, conf, make)


@dataclass(frozen=True, slots=True)
class TableDefined:
    """What `define_table` did besides the metadata of the transaction."""

    partition_by: Sequence[str]
    """As the schema spells them."""
    cluster_by: Sequence[str]
    """Paths as text."""
    domains: Sequence[DomainMetadata]
    """Actions that belong to the commit."""


def define_table(
    txn: OptimisticTransaction,
    schema: StructType,
    *,
    partition_by: str | Sequence[str] = (),
    cluster_by: str | Sequence[ColumnPath] = (),
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> TableDefined:
    """Give a transaction the metadata of a table that it makes, or that replaces its table.

    Args:
        txn: the transaction.
        schema: the columns.
        partition_by: see `create_table`, and so the rest.
        cluster_by: see `create_table`.
        properties: see `create_table`.
        name: see `create_table`.
        description: see `create_table`.

    Raises:
        DeltaAnalysisError: a schema, a partitioning or a property that no table can have.
    """
    columns = resolve_columns(schema, as_list(partition_by), "partition column")
    clustering = checked_columns(schema, cluster_by)
    texts = dict(properties or {})
    if clustering:
        texts.update(CLUSTERING)
    wanted = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema.to_json(),
        partition_columns=columns,
        configuration=texts,
        name=name,
        description=description,
    )
    _set_metadata(txn, wanted)
    return TableDefined(columns, list(map(dotted, clustering)), _clustering(txn, clustering))


def _clustering(
    txn: OptimisticTransaction, paths: Sequence[tuple[str, ...]]
) -> list[DomainMetadata]:
    """The action that leaves a table clustered by these columns alone; none where it is."""
    old = None if txn.snapshot is None else txn.snapshot.domain_metadata.get(CLUSTERING_DOMAIN)
    if not paths:
        return [] if old is None else [replace(old, removed=True)]
    schema = txn.changes.terms.read_schema
    return [clustering_action([physical_path(schema, path) for path in paths])]


def _set_metadata(txn: OptimisticTransaction, wanted: Metadata) -> None:
    if txn.snapshot is None:
        txn.update_metadata(wanted)
        return
    # No earlier file stays, so even the way in which columns are mapped may change.
    created = txn.snapshot.metadata.created_time
    txn.changes.update_metadata_for_new_table(replace(wanted, created_time=created), domains={})
