"""Choosing the columns that a table's files are sorted by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.actions.operation import Operation
from lakelog.core.arguments import refusal
from lakelog.core.delta_log import begin_change
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import clustering_action, clustering_columns
from lakelog.core.features.properties import FEATURE_PREFIX
from lakelog.core.schema import DecimalType, PrimitiveType
from lakelog.core.schema.column_mapping import logical_path, physical_path
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.edits import column_path, nearest_field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.schema import DataType, StructType
    from lakelog.core.schema.edits import ColumnPath
    from lakelog.core.state.snapshot import Snapshot

CLUSTERING: Final = {f"{FEATURE_PREFIX}clustering": "supported"}
"""The property that gives a table the feature."""
_MOST: Final = 4
_SORTED: Final = frozenset(
    {
        *("byte", "short", "integer", "long", "float", "double"),
        *("date", "timestamp", "timestamp_ntz", "string"),
    }
)


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


def checked_columns(
    schema: StructType, columns: str | Iterable[ColumnPath]
) -> list[tuple[str, ...]]:
    """The paths of clustering columns as the schema spells them.

    Args:
        schema: the table's.
        columns: as the user gives them.

    Raises:
        DeltaAnalysisError: columns that a table can't be clustered by.
    """
    found: dict[tuple[str, ...], None] = {}
    given_columns = [columns] if isinstance(columns, str) else columns
    if not isinstance(given_columns, Iterable):
        raise refusal(columns, "cluster_by", "names of columns")
    for each in given_columns:
        given = column_path(each)
        path, field = nearest_field(schema, given)
        if len(path) < len(given) or not _has_order(field.data_type):
            raise DeltaAnalysisError(
                "[DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED] CLUSTER BY is not supported "
                f"because the column {dotted(given)} of type {field.data_type} has no minimum and "
                "maximum. Choose a column of numbers, strings, dates or timestamps.",
                column=dotted(given),
            )
        if path in found:
            raise DeltaAnalysisError(
                "[DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY] CLUSTER BY names the column "
                f"{dotted(path)} twice. Name each column once.",
                column=dotted(path),
            )
        found[path] = None
    if len(found) > _MOST:
        raise DeltaAnalysisError(
            f"[DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS] CLUSTER BY supports up to {_MOST} clustering "
            f"columns, but {len(found)} are given: {', '.join(map(dotted, found))}. Choose those "
            "that most queries filter by.",
            columns=[dotted(path) for path in found],
        )
    return list(found)


def shown_columns(snapshot: Snapshot) -> list[str]:
    """The clustering columns of a table by the names that it shows."""
    stored = clustering_columns(snapshot.domain_metadata)
    return [dotted(logical_path(snapshot.read_schema, path)) for path in stored]


def _has_order(kind: DataType) -> bool:
    if isinstance(kind, DecimalType):
        return True
    return isinstance(kind, PrimitiveType) and kind.name in _SORTED
