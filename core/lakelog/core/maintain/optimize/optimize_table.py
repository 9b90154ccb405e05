"""OPTIMIZE: fewer and larger files, without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.actions.operation import json_text
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.catalogs.refusals import refuse_maintenance
from lakelog.core.delta_log import log_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.protocol import check_writable, supported_features
from lakelog.core.maintain.optimize.chosen_files import chosen_files
from lakelog.core.maintain.optimize.ordered_columns import clustered_by, z_ordered_by
from lakelog.core.maintain.optimize.ordering import RowOrder
from lakelog.core.maintain.optimize.plan import Compaction
from lakelog.core.maintain.optimize.purging import Purge
from lakelog.core.maintain.optimize.run_settings import OptimizeSettings
from lakelog.core.maintain.optimize.running import Run
from lakelog.core.maintain.optimize.zcubes import Clustering, ZOrder
from lakelog.core.progress import progress_callback
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.rules import as_list
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.maintain.optimize.plan import Strategy
    from lakelog.core.maintain.optimize.running import GivenOptimizeProgress, Optimized
    from lakelog.core.state.snapshot import Snapshot


@read_arguments
@command("optimize")
def optimize(
    uri: TableOrLog,
    where: Filter | None = None,
    *,
    z_order_by: str | Sequence[str] | None = None,
    full: bool = False,
    target_size: int | None = None,
    batch_size: int | None = None,
    dry_run: bool = False,
    progress: GivenOptimizeProgress = None,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
) -> Optimized:
    """Put the rows of many small files into few large ones.

        optimize("/lake/flights", "day >= '2024-01-01'", target_size=256 << 20)

    The table's rows stay the same, and no change feed shows the commit. Rewritten are the files
    below the target, partition by partition, and those of which more than
    `spark.databricks.delta.optimize.maxDeletedRowsRatio` of the rows are deleted. A second run
    finds nothing to do; a run after one that was stopped does what is left.

    Writers at the same time are not disturbed. Where one deletes or changes rows of a file that is
    being rewritten, the commit of that file's batch is refused; commits before it stay.

    With `z_order_by` all rows of a partition are put in Z-order, so that readers with a condition
    on some of these columns skip most files. Of a clustered table the rows that are not in order
    yet are put along Hilbert's curve, as delta-spark does. Rows that don't fit in memory are
    sorted by way of the local temporary folder.

    Args:
        uri: where the table is, or its `DeltaLog`.
        where: a condition on partition columns alone; `None` for the whole table.
        z_order_by: columns to order by, or fields of structs as `a.b`.
        full: of a clustered table, also order again what was ordered by other columns.
        target_size: bytes that a file should have; where not given, as the conf says
            (`spark.databricks.delta.optimize.maxFileSize`), the table (`delta.targetFileSize`), or
            1 GiB.
        batch_size: commit each time so many bytes of files were rewritten, so that less is lost
            where the run is stopped or meets a conflict; one commit at the end where neither this
            nor `spark.databricks.delta.optimize.batchSize` is set.
        dry_run: only say what would be rewritten.
        progress: called before the first file, after each that is written and after each commit; or
            `auto` for a bar.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        user_metadata: a note for the table's history.

    Returns:
        The commits and the metrics.

    Raises:
        TableNotFoundError: there is no table.
        InvalidPredicateError: the condition can't be parsed, or needs another column than those of
            the partitioning.
        DeltaConcurrentModificationException: another writer changed a file that was being
            rewritten.
        DataFileMissingError: the log lists a file that the storage does not have.
        CommitOutcomeUnknownError: the storage never confirmed a commit; its files are kept.
        UnsupportedFeatureError: the table has a feature that this version can't write.
        DeltaAnalysisError: an argument, or a value of the conf, that is not valid; a column that
            can't be ordered by; a condition or `z_order_by` for a clustered table.
    """
    check_text(user_metadata, "user_metadata")
    log = log_of(uri, conf)
    snapshot = log.update()
    refuse_maintenance(log.store, log.table, "OPTIMIZE")
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    settings = OptimizeSettings.chosen(
        log.conf,
        snapshot.metadata.configuration,
        target_size=target_size,
        batch_size=batch_size,
    )
    names = as_list(z_order_by) if z_order_by is not None else None
    strategy, columns = strategy_of(snapshot, settings, where, names, full=full)
    chosen = chosen_files(snapshot, where)
    is_clustered = isinstance(strategy, Clustering)
    parameters = {
        "predicate": json_text(chosen.predicate),
        "auto": False,
        "clusterBy": json_text(columns if is_clustered else []),
        "zOrderBy": json_text([] if is_clustered else columns),
        "isFull": full if is_clustered else None,
    }
    with progress_callback(progress) as report:
        run = Run(log, snapshot, strategy, settings, user_metadata, report)
        return run.rewrite("OPTIMIZE", parameters, chosen.files, dry_run=dry_run)


def strategy_of(
    snapshot: Snapshot,
    settings: OptimizeSettings,
    where: Filter | None = None,
    z_order_by: Sequence[str] | None = None,
    *,
    full: bool = False,
) -> tuple[Strategy, list[str]]:
    """How files are chosen and rows ordered, and the columns for the history.

    Args:
        snapshot: the version.
        settings: the limits.
        where: the caller's condition.
        z_order_by: the caller's columns.
        full: whether the caller wants a clustered table ordered from scratch.

    Raises:
        DeltaAnalysisError: as `optimize`.
    """
    if "clustering" in supported_features(snapshot.protocol):
        if where is not None:
            raise DeltaAnalysisError(
                "[DELTA_CLUSTERING_WITH_PARTITION_PREDICATE] OPTIMIZE command for Delta table with "
                "clustering doesn't support partition predicates. Leave the condition out.",
                table=snapshot.table,
            )
        if z_order_by is not None:
            raise DeltaAnalysisError(
                "[DELTA_CLUSTERING_WITH_ZORDER_BY] OPTIMIZE command for Delta table with "
                "clustering cannot specify ZORDER BY. The table's own columns order its rows: "
                "leave z_order_by out.",
                table=snapshot.table,
            )
        paths = clustered_by(snapshot)
        if paths:
            columns = [dotted(path) for path in paths]
            order = RowOrder(paths, "hilbert")
            return Clustering(settings, order, columns, full=full), columns
    if full:
        raise DeltaAnalysisError(
            "[DELTA_OPTIMIZE_FULL_NOT_SUPPORTED] OPTIMIZE FULL is only supported for clustered "
            f"tables with non-empty clustering columns, and {snapshot.table} is not one.",
            table=snapshot.table,
        )
    if z_order_by is None:
        return Compaction(settings), []
    paths = z_ordered_by(snapshot, z_order_by)
    columns = [dotted(path) for path in paths]
    return ZOrder(settings, RowOrder(paths, "zorder"), columns), columns


@read_arguments
@command("purge")
def purge(
    uri: TableOrLog,
    where: Filter | None = None,
    *,
    batch_size: int | None = None,
    dry_run: bool = False,
    progress: GivenOptimizeProgress = None,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
) -> Optimized:
    """Rewrite the files that hold rows or columns which the table no longer has.

    Delta's `REORG TABLE ... APPLY (PURGE)`: files with a deletion vector, and files with a column
    that was dropped. The values are gone for good once `VACUUM` has deleted the old files.

    Args:
        uri: where the table is, or its `DeltaLog`.
        where: a condition on partition columns alone; `None` for the whole table.
        batch_size: as for `optimize`, and so the rest.
        dry_run: see `optimize`.
        progress: see `optimize`.
        conf: see `optimize`.
        user_metadata: see `optimize`.

    Returns:
        As `optimize`.

    Raises:
        DeltaError: those of `optimize`.
    """
    check_text(user_metadata, "user_metadata")
    log = log_of(uri, conf)
    snapshot = log.update()
    refuse_maintenance(log.store, log.table, "REORG")
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    settings = OptimizeSettings.chosen(
        log.conf, snapshot.metadata.configuration, batch_size=batch_size
    )
    chosen = chosen_files(snapshot, where)
    parameters = {"predicate": json_text(chosen.predicate), "applyPurge": True}
    strategy = Purge(snapshot, settings)
    with progress_callback(progress) as report:
        run = Run(log, snapshot, strategy, settings, user_metadata, report)
        return run.rewrite("REORG", parameters, chosen.files, dry_run=dry_run)
