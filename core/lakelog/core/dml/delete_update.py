"""DELETE and UPDATE of rows, without an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.actions import SetTransaction
from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.arguments import check_text, checked_progress, read_arguments
from lakelog.core.delta_log import log_of
from lakelog.core.dml.rewrite import RowRewrite, RowsChanged
from lakelog.core.dml.touched_files import touched_files
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import is_partition_only, to_sql
from lakelog.core.features.protocol import check_writable
from lakelog.core.features.row_tracking import preservation_tags
from lakelog.core.maintain.optimize.auto_compaction import compact_after
from lakelog.core.progress import told
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.matching_files import matching_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from lakelog.core.actions import Action
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.progress import GivenProgress, Tell
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction


@read_arguments
def delete_rows(
    uri: TableOrLog,
    where: Filter | None = None,
    *,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    app_id: str | None = None,
    app_version: int | None = None,
    progress: GivenProgress = None,
) -> RowsChanged:
    """Delete the rows for which a condition is true, in one commit.

    Rows for which it is null stay. A condition on partition columns alone takes out whole files
    without reading one. Else a touched file gets a deletion vector where the table has
    `delta.enableDeletionVectors`, and otherwise its other rows go to a new file.

    Args:
        uri: where the table is, or its `DeltaLog`.
        where: SQL text, an `Expression` or pyarrow's tuples; `None` deletes all rows.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        user_metadata: a note for the table's history.
        app_id: with `app_version`: delete only if this application has not recorded this version
            or a later one yet, so that a job can be run again.
        app_version: see `app_id`.
        progress: called now and then with how many files are searched, and then with how far those
            that have such rows are rewritten; or `auto` for a bar.

    Returns:
        The version of the commit, and its metrics. The version is `None` where nothing was
        committed: no row matches, or the application has recorded the batch.

    Raises:
        TableNotFoundError: there is no table.
        AppendOnlyError: `delta.appendOnly` is set.
        InvalidPredicateError: the condition can't be parsed, names an unknown column, or has a
            part that only Spark can evaluate.
        DataFileMissingError: the log lists a file that the storage does not have.
        DeltaConcurrentModificationException: another writer was faster; nothing was committed.
        CommitOutcomeUnknownError: the storage never confirmed the commit; the files are kept.
        UnsupportedFeatureError: the table has a feature that this version can't write.
    """
    check_text(user_metadata, "user_metadata")
    job = _Job("DELETE", where, user_metadata, checked_progress(app_id, app_version))
    with told(progress) as tell:
        return _run(log_of(uri, conf), job, tell)


@read_arguments
def update_rows(
    uri: TableOrLog,
    set: Mapping[str, Any],  # noqa: A002  # SQL's word
    where: Filter | None = None,
    *,
    conf: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    app_id: str | None = None,
    app_version: int | None = None,
    progress: GivenProgress = None,
) -> RowsChanged:
    """Give columns new values in the rows for which a condition is true, in one commit.

        update_rows("/lake/flights", {"late": "delay > 15"}, "date = '2024-01-01'")

    Text is SQL, as in delta-spark and deltalake: `{"name": "upper(name)"}` evaluates it, and
    `{"name": lit("upper(name)")}` sets that text. SQL is cast to the column's type as Spark casts
    what UPDATE assigns, `1.9` to a whole number too; a value and what a pyarrow expression gives
    are taken exactly, or refused.

    Rows for which the condition is null stay as they are. New rows keep the table's rules, as
    those of `write_arrow` do.

    Args:
        uri: where the table is, or its `DeltaLog`.
        set: column, or field of a struct (`address.city`), -> its new value: text in Spark's SQL
            or a `pyarrow.compute.Expression`, both over the columns of the old row; `DEFAULT`; or
            a value, of Python, numpy, pandas or Arrow, or `lakelog.core.lit` of one, which a
            string needs. A struct's value has every field.
        where: SQL text, an `Expression` or pyarrow's tuples; `None` updates all rows.
        conf: as for `delete_rows`, and so the rest.
        user_metadata: a note for the table's history.
        app_id: see `delete_rows`.
        app_version: see `delete_rows`.
        progress: see `delete_rows`.

    Returns:
        As `delete_rows`.

    Raises:
        ConstraintViolationError: new rows break a rule of the table. Nothing was committed.
        DeltaAnalysisError: a column that the table does not have, one that is set twice, as a
            whole and in part, an identity column, a value that its column can't hold exactly, or
            SQL that has no result for some row.
        InvalidPredicateError: SQL that can't be parsed, names an unknown column or has a part
            that only Spark can evaluate.
        DeltaError: the others of `delete_rows`.
    """
    check_text(user_metadata, "user_metadata")
    job = _Job("UPDATE", where, user_metadata, checked_progress(app_id, app_version), set)
    with told(progress) as tell:
        return _run(log_of(uri, conf), job, tell)


@dataclass(frozen=True, slots=True)
class _Job:
    """What the caller asked for."""

    name: str
    where: Filter | None
    user_metadata: str | None
    batch: tuple[str, int] | None
    values: Mapping[str, Any] | None = None
    """The new values of an UPDATE."""


def _run(log: DeltaLog, job: _Job, tell: Tell) -> RowsChanged:
    txn = log.start_transaction()
    snapshot = txn.snapshot or log.snapshot  # raises, and says what is there instead
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    if job.batch and txn.txn_version(job.batch[0]) >= job.batch[1]:
        return RowsChanged(None)
    txn.assert_removable()
    now_ms = log.clock.now_ms()
    condition = normalize_filter(
        job.where, snapshot.schema, session_tz=log.conf.session_tz, now_ms=now_ms
    )
    with AttemptFiles(txn) as files:
        changes = files.own(RowRewrite(txn, now_ms, _update(job, snapshot, now_ms)))
        return _commit(txn, job, condition, changes, tell)


def _update(job: _Job, snapshot: Snapshot, now_ms: int) -> Callable[[pa.Table], pa.Table] | None:
    if job.values is None:
        return None
    from lakelog.core.dml.merge.update import UpdatedRows

    return UpdatedRows(job.values, snapshot, now_ms=now_ms)


def _commit(
    txn: OptimisticTransaction,
    job: _Job,
    condition: Expression | None,
    changes: RowRewrite,
    tell: Tell,
) -> RowsChanged:
    snapshot, clock, metrics = txn.snapshot, txn.delta_log.clock, changes.metrics
    assert snapshot is not None
    began = clock.monotonic()
    by_partition = condition is None or is_partition_only(condition, snapshot.partition_columns)
    files = matching_files(txn, condition) if by_partition else txn.filter_file_table(condition)
    if by_partition and job.values is None:
        changes.take_whole(to_add_files(files))
    else:
        searched = touched_files(snapshot, files, None if by_partition else condition, tell)
        touched = list(searched)
        metrics.scan_ms = round(1000 * (clock.monotonic() - began))
        changes.apply(touched, tell)
        metrics.rewrite_ms = round(1000 * (clock.monotonic() - began)) - metrics.scan_ms
    actions = [*_transaction(txn, job), *changes.actions()]
    txn.mark_written()
    compact_after(txn)
    metrics.execution_ms = round(1000 * (clock.monotonic() - began))
    found = metrics.operation_metrics("numDeletedRows" if job.values is None else "numUpdatedRows")
    parameters = {"predicate": json_text(_shown(job, condition))}
    tags = preservation_tags(snapshot.terms, preserved=changes.keeps_row_ids)
    operation = Operation(job.name, parameters, found, job.user_metadata, tags)
    return RowsChanged(txn.commit_if_needed(actions, operation), found)


def _transaction(txn: OptimisticTransaction, job: _Job) -> list[Action]:
    if job.batch is None:
        return []
    app_id, version = job.batch
    now = txn.delta_log.clock.now_ms()
    return [SetTransaction(app_id=app_id, version=version, last_updated=now)]


def _shown(job: _Job, condition: Expression | None) -> list[str]:
    if condition is None:
        # As delta-spark has it: every row is deleted by a condition, and updated without one.
        return ["true"] if job.values is None else []
    return [job.where if isinstance(job.where, str) else to_sql(condition)]
