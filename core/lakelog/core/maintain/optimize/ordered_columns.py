"""The columns that OPTIMIZE orders rows by: those of `z_order_by`, or the table's clustering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import clustering_columns
from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructType
from lakelog.core.schema.column_mapping import physical_path
from lakelog.core.schema.column_paths import (
    dotted,
    find_column,
    split_path,
    unknown_column,
    walk,
)
from lakelog.core.schema.types import DAY_TIME, YEAR_MONTH
from lakelog.core.stats.collect import StatsConfig, indexed_leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.schema import DataType
    from lakelog.core.state.snapshot import Snapshot

_UNORDERED = frozenset({"variant", "void", DAY_TIME.name, YEAR_MONTH.name})


def z_ordered_by(snapshot: Snapshot, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The paths of columns, in the schema's spelling.

    Args:
        snapshot: the version.
        names: as the user wrote them; a field of a struct as `a.b`, odd names in backticks.

    Raises:
        DeltaAnalysisError: no such column, a partition column, one without statistics, which would
            not help a reader, or one whose values have no order.
    """
    if not names:
        raise DeltaAnalysisError("z_order_by needs at least one column")
    found = []
    for name in names:
        path, kind = _column(snapshot, name)
        if path[0] in snapshot.partition_columns:
            raise DeltaAnalysisError(
                f"[DELTA_ZORDERING_ON_PARTITION_COLUMN] {name} is a partition column. Z-Ordering "
                "can only be performed on data columns: each file has one value of it already.",
                column=name,
            )
        _check_order(path, kind)
        if path in found:
            raise DeltaAnalysisError(f"z_order_by has {dotted(path)} twice", column=name)
        found.append(path)
    _check_statistics(snapshot, found)
    return tuple(found)


def _column(snapshot: Snapshot, name: str) -> tuple[tuple[str, ...], DataType]:
    try:
        parts = split_path(name)
    except ValueError:
        parts = (name,)
    # A name with a dot may be meant as it stands.
    found = find_column(parts, snapshot.schema) or find_column((name,), snapshot.schema)
    if found is not None:
        return found
    unknown = unknown_column(parts, snapshot.schema, " of z_order_by")
    raise DeltaAnalysisError(
        f"[DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST] Z-Ordering column {name} does not exist in data "
        f"schema. {unknown}",
        column=name,
    )


def _check_order(path: Sequence[str], kind: DataType) -> None:
    unordered = isinstance(kind, PrimitiveType) and kind.name in _UNORDERED
    if unordered or isinstance(kind, StructType | ArrayType | MapType):
        raise DeltaAnalysisError(
            f"rows can't be ordered by {dotted(path)}: values of type {kind} have "
            "no order. Use a column of a simple type, or a field of the struct.",
            column=dotted(path),
        )


def _check_statistics(snapshot: Snapshot, paths: Sequence[tuple[str, ...]]) -> None:
    if not snapshot.conf.read(keys.ZORDER_STATS):
        return
    config = StatsConfig.from_properties(snapshot.properties, snapshot.conf)
    leaves = (
        []
        if config is None
        else indexed_leaves(snapshot.schema, snapshot.partition_columns, config)
    )
    known = {path for path, _ in leaves}
    missing = [dotted(path) for path in paths if path not in known]
    if missing:
        raise DeltaAnalysisError(
            "[DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS] Z-Ordering on "
            f"[{', '.join(missing)}] will be ineffective, because we currently do not collect "
            f"stats for these columns. Have the table collect them "
            "(delta.dataSkippingStatsColumns), or set "
            f"{keys.ZORDER_STATS} to false to order by them all the same.",
            columns=missing,
        )


def clustered_by(snapshot: Snapshot) -> tuple[tuple[str, ...], ...]:
    """The paths of the table's clustering columns; empty where it has none.

    Raises:
        DeltaAnalysisError: the domain can't be read, or names a column that is not there.
    """
    stored = clustering_columns(snapshot.domain_metadata)
    if not stored:
        return ()
    schema = snapshot.read_schema
    logical = {
        physical_path(schema, path): (path, field.data_type)
        for path, field in walk(schema, containers=False)
    }
    found = []
    for physical in stored:
        if physical not in logical:
            raise DeltaAnalysisError(
                f"{snapshot.table} is clustered by {dotted(physical)}, which it does not have. "
                "Cluster it by columns that it has.",
                table=snapshot.table,
            )
        path, kind = logical[physical]
        _check_order(path, kind)
        found.append(path)
    return tuple(found)
