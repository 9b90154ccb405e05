"""Choosing the columns that a table's files are sorted by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import begin_change
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import clustering_action, clustering_columns
from lakelog.core.features.clustering_choice import CLUSTERING, checked_columns
from lakelog.core.schema.column_mapping import logical_path, physical_path
from lakelog.core.schema.column_paths import dotted
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.schema.edits import ColumnPath
    from lakelog.core.state.snapshot import Snapshot


@command("cluster by")
def cluster_by(
    uri: TableOrLog,
    columns: str | Iterable[ColumnPath] = (),
    *,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Choose the columns that `OPTIMIZE` sorts files by: `ALTER TABLE … CLUSTER BY`.

    The files stay as they are; new ones get statistics of these columns. An unpartitioned table
    that was not clustered gets the table feature `clustering`.

    Args:
        uri: where the table is, or its `DeltaLog`.
        columns: at most four, fields of structs among them; none ends the clustering.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: a partitioned table, a column that does not exist or is named twice,
            a type without an order, or more than four columns.
        DeltaConcurrentModificationException: another writer was faster; nothing was committed.
    """
    txn = begin_change(uri, conf)
    snapshot = txn.snapshot
    assert snapshot is not None
    if snapshot.partition_columns:
        raise DeltaAnalysisError(
            "[DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED] ALTER TABLE CLUSTER "
            f"BY cannot be applied to a partitioned table: {snapshot.table} is partitioned by "
            f"{', '.join(snapshot.partition_columns)}. Write its rows to a new table.",
            table=snapshot.table,
        )
    wanted = checked_columns(snapshot.schema, columns)
    before = shown_columns(snapshot)
    if "clustering" not in snapshot.terms.features:
        configuration = {**txn.metadata.configuration, **CLUSTERING}
        txn.update_metadata(replace(txn.metadata, configuration=configuration))
    stored = [physical_path(snapshot.read_schema, path) for path in wanted]
    operation = Operation(
        "CLUSTER BY",
        {
            "oldClusteringColumns": ",".join(before),
            "newClusteringColumns": ",".join(map(dotted, wanted)),
        },
    )
    return txn.commit([clustering_action(stored)], operation)


def shown_columns(snapshot: Snapshot) -> list[str]:
    """The clustering columns of a table by the names that it shows."""
    stored = clustering_columns(snapshot.domain_metadata)
    return [dotted(logical_path(snapshot.read_schema, path)) for path in stored]
