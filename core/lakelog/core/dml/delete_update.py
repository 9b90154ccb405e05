"""DELETE and UPDATE of rows, without an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.arguments import check_text, checked_progress, read_arguments
from lakelog.core.delta_log import log_of
from lakelog.core.dml.rewrite import RowRewrite
from lakelog.core.dml.touched_files import touched_files
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidPredicateError,
)
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import is_partition_only
from lakelog.core.features.protocol import check_writable
from lakelog.core.maintain.after_command import end_command
from lakelog.core.progress import progress_callback
from lakelog.core.telemetry.switch import command
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.command_commit import RowsChanged, is_recorded
from lakelog.core.transaction.matching_files import matching_files
from lakelog.core.transaction.optimistic import undone_on_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.dml.merge.new_rows import NewColumn
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.progress import GivenProgress, ProgressCallback
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction


@read_arguments
@command("delete")
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
    batch = checked_progress(app_id, app_version)
    with progress_callback(progress) as report:
        return _run(log_of(uri, conf), where, None, user_metadata, batch, report)


@read_arguments
@command("update")
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
    batch = checked_progress(app_id, app_version)
    with progress_callback(progress) as report:
        return _run(log_of(uri, conf), where, set, user_metadata, batch, report)


def _run(
    log: DeltaLog,
    where: Filter | None,
    values: Mapping[str, Any] | None,
    user_metadata: str | None,
    batch: tuple[str, int] | None,
    report: ProgressCallback,
) -> RowsChanged:
    txn = log.start_transaction()
    snapshot = txn.snapshot or log.snapshot  # raises, and says what is there instead
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    if is_recorded(txn, batch):
        return RowsChanged(None)
    # Whether a row matches or not: else a job on an append-only table fails on some days alone.
    txn.changes.assert_removable()
    context = EvalContext.of(log.conf, log.clock.now_ms())
    condition = normalize_filter(where, snapshot.schema, context)
    shown = where if isinstance(where, str) else None
    plan = RowsPlan(condition, shown, _columns(values, snapshot), user_metadata)
    with AttemptFiles(txn) as files:
        change = _Change(txn, plan, report)
        return change.commit(change.written(files), batch)


def _columns(values: Mapping[str, Any] | None, snapshot: Snapshot) -> Sequence[NewColumn] | None:
    if values is None:
        return None
    from lakelog.core.dml.merge.updated_columns import updated_columns

    return updated_columns(values, snapshot)


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """A DELETE or UPDATE whose names are resolved."""

    condition: Expression | None
    """Bound to the schema; `None` holds for all rows."""
    shown: str | None
    """The condition as its author wrote it, for the history."""
    columns: Sequence[NewColumn] | None
    """What an UPDATE gives each column; `None` is a DELETE."""
    user_metadata: str | None = None
    """A note for the history; `None` is what the conf says."""


def change_few_rows(txn: OptimisticTransaction, plan: RowsPlan) -> RowsChanged | None:
    """Delete or update rows here what an engine would need a job for, where lakelog can.

    Args:
        txn: of the engine, which may go on with it.
        plan: what to do.

    Returns:
        `None` where nothing was committed because lakelog does not evaluate an expression, or
        finds fault with a new value: then the engine decides, in the same
        transaction.

    Raises:
        ConstraintViolationError: new rows break a rule of the table. Nothing was committed.
        DeltaError: what `delete_rows` and `update_rows` raise because of the storage or of other
            writers.
    """
    with AttemptFiles(txn) as files:
        try:
            with undone_on_error(txn):
                change = _Change(txn, plan)
                actions = change.written(files)
        except ConstraintViolationError:
            # A CHECK has the same meaning for both, and the engine would only find it again.
            raise
        except DeltaAnalysisError as exc:
            if plan.columns is None and not isinstance(exc, InvalidPredicateError):
                raise
            return None
        # Not within the `try`: what a commit refuses, it refuses an engine's files too.
        return change.commit(actions)


class _Change:
    """One attempt."""

    def __init__(
        self, txn: OptimisticTransaction, plan: RowsPlan, report: ProgressCallback | None = None
    ) -> None:
        """Resolve everything; no data file is read or written yet."""
        snapshot = txn.snapshot
        assert snapshot is not None
        self._txn, self._plan, self._report, self._snapshot = txn, plan, report, snapshot
        now_ms = txn.delta_log.clock.now_ms()
        update = None
        if plan.columns is not None:
            from lakelog.core.dml.merge.updated_columns import UpdatedRows

            context = EvalContext.of(snapshot.conf, now_ms)
            update = UpdatedRows(plan.columns, snapshot, context)
        self._changes = RowRewrite(txn, now_ms, update)

    def written(self, files: AttemptFiles) -> list[Action]:
        """Find the rows, and write the files; the actions of the commit."""
        txn, clock, condition = self._txn, self._txn.delta_log.clock, self._plan.condition
        changes = files.own(self._changes)
        snapshot, metrics = self._snapshot, changes.metrics
        began = clock.monotonic()
        by_partition = condition is None or is_partition_only(condition, snapshot.partition_columns)
        found = (
            matching_files(txn, condition)
            if by_partition
            else txn.reads.filter_file_table(condition)
        )
        if by_partition and self._plan.columns is None:
            changes.take_whole(to_add_files(found))
        else:
            rows = touched_files(snapshot, found, None if by_partition else condition, self._report)
            # All are searched before one is written: whether changes need files of their own
            # depends on all of them.
            touched = list(rows)
            metrics.scan_ms = round(1000 * (clock.monotonic() - began))
            changes.apply(touched, self._report)
            metrics.rewrite_ms = round(1000 * (clock.monotonic() - began)) - metrics.scan_ms
        actions = changes.actions()
        metrics.execution_ms = round(1000 * (clock.monotonic() - began))
        return actions

    def commit(
        self, actions: Sequence[Action], batch: tuple[str, int] | None = None
    ) -> RowsChanged:
        """Commit what `written` gave."""
        plan, changes = self._plan, self._changes
        name, count = ("DELETE", "numDeletedRows")
        if plan.columns is not None:
            name, count = ("UPDATE", "numUpdatedRows")
        found = changes.metrics.operation_metrics(count)
        parameters = {"predicate": json_text(_shown(plan))}
        operation = Operation(name, parameters, found, plan.user_metadata)
        kept = changes.keeps_row_ids
        return end_command(self._txn, actions, operation, batch=batch, keeps_row_ids=kept)


def _shown(plan: RowsPlan) -> list[str]:
    if plan.condition is None:
        # As delta-spark has it: every row is deleted by a condition, and updated without one.
        return ["true"] if plan.columns is None else []
    return [to_sql(plan.condition) if plan.shown is None else plan.shown]
