"""Carrying out a MERGE on Arrow data: read, match, write, commit."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelog.core import keys
from lakelog.core.actions.operation import Operation
from lakelog.core.compute import pc
from lakelog.core.dml.merge.analysis import plan_merge
from lakelog.core.dml.merge.build import RowBuilder
from lakelog.core.dml.merge.clauses import merge_parameters
from lakelog.core.dml.merge.matching import Matcher
from lakelog.core.dml.merge.merge_rewrite import MergeRewrite
from lakelog.core.dml.merge.numbering import Numbering
from lakelog.core.dml.merge.read_predicate import read_predicate
from lakelog.core.dml.merge.search_condition import SearchCondition
from lakelog.core.dml.merge.sides import Side, Sides, side_by_side
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError
from lakelog.core.expressions.arrow.given import is_arrow_expression
from lakelog.core.expressions.context import EvalContext
from lakelog.core.features.protocol import check_writable
from lakelog.core.maintain.after_command import end_command
from lakelog.core.progress import Progress
from lakelog.core.schema import StructType
from lakelog.core.telemetry.switch import command
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.command_commit import RowsChanged, is_recorded
from lakelog.core.transaction.optimistic import undone_on_error
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from lakelog.core.actions import Action
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.dml.merge.analysis import MergePlan
    from lakelog.core.dml.merge.arrow_expressions import ArrowBound
    from lakelog.core.dml.merge.clauses import MergeClause
    from lakelog.core.dml.merge.sides import Bound
    from lakelog.core.dml.merge.source import MergeSource
    from lakelog.core.progress import ProgressCallback
    from lakelog.core.transaction.optimistic import OptimisticTransaction

logger: logging.Logger = logging.getLogger("lakelog")

_BATCH_ROWS = 1 << 17
"""Rows of the source that are inserted at once."""


@dataclass(frozen=True, slots=True)
class MergeJob:
    """What the caller asked for."""

    source: MergeSource
    condition: str
    clauses: tuple[MergeClause, ...]
    target_alias: str
    source_alias: str
    evolves: bool
    user_metadata: str | None = None
    progress: tuple[str, int] | None = None
    report: ProgressCallback | None = None
    most_bytes: int | None = None
    """Of the data files that may hold matching rows; `None` reads any number."""
    plan: MergePlan | None = None
    """Of the clauses, where an engine has resolved them."""


class _TooLargeError(Exception):
    """The files are larger than `MergeJob.most_bytes`."""


@command("merge")
def run_merge(log: DeltaLog, job: MergeJob) -> RowsChanged:
    """Merge, in one commit.

    Raises:
        DeltaError: see `merge`.
    """
    txn = log.start_transaction()
    snapshot = txn.snapshot or log.snapshot  # raises, and says what is there instead
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    if is_recorded(txn, job.progress):
        return RowsChanged(None)
    with AttemptFiles(txn) as files:
        merge = _Merge(txn, job)
        return merge.commit(merge.written(files))


def run_small_merge(txn: OptimisticTransaction, job: MergeJob) -> RowsChanged | None:
    """Merge here what an engine would need a job for, unless that is the engine's work.

    Args:
        txn: of the engine, which may go on with it.
        job: the MERGE, with its plan.

    Returns:
        `None` where nothing was committed because the files are too large, or because lakelog does
        not evaluate an expression, or finds fault with it, or with a row: then the engine
        decides, in the same transaction.

    Raises:
        ConstraintViolationError: new rows break a rule of the table. Nothing was committed.
        DeltaError: what `merge` raises because of the storage or of other writers.
    """
    with AttemptFiles(txn) as files:
        try:
            with undone_on_error(txn):
                merge = _Merge(txn, job)
                actions = merge.written(files)
        except ConstraintViolationError:
            # A CHECK has the same meaning for both, and the engine would only find it again.
            raise
        except (_TooLargeError, DeltaAnalysisError) as exc:
            logger.debug("%s: this MERGE is the engine's: %s", txn.delta_log.table, exc)
            return None
        # Not within the `try`: what a commit refuses, it refuses an engine's files too.
        return merge.commit(actions)


class _Merge:
    """One attempt."""

    def __init__(self, txn: OptimisticTransaction, job: MergeJob) -> None:
        """Resolve everything; no data file is read or written yet."""
        snapshot, log = txn.snapshot, txn.delta_log
        assert snapshot is not None
        self._txn, self._job, self._snapshot = txn, job, snapshot
        self._began = log.clock.monotonic()
        self._now_ms = log.clock.now_ms()
        self._source = job.source.rows(log.conf.read(store_keys.MERGE_SOURCE_LIMIT))
        source = job.source.schema
        assert source is not None  # they are read
        self._plan = job.plan or self._analysed(source)
        if self._plan.schema != snapshot.schema:
            # Before anything asks for the layout of files, which is that of the new schema.
            metadata = replace(txn.metadata, schema_string=self._plan.schema.to_json())
            txn.update_metadata(metadata)
        # What files hold: without void columns, and with the names that column mapping gives.
        self._schema = txn.changes.file_layout.schema
        known = StructType(tuple(f for f in self._schema if snapshot.schema.get(f.name)))
        self._sides = Sides(
            Side(known, job.target_alias),
            Side(source, job.source_alias),
            EvalContext.of(snapshot.conf, self._now_ms),
        )
        self._numbering = Numbering(log.table)
        self._conditions = [self._condition(each) for each in job.clauses]
        self._builders = [self._builder(i) for i in range(len(job.clauses))]
        self._search = SearchCondition.parse(job.condition, self._sides)

    def _analysed(self, source: StructType) -> MergePlan:
        job = self._job
        return plan_merge(
            self._snapshot,
            job.clauses,
            source,
            target_alias=job.target_alias,
            source_alias=job.source_alias,
            evolves=job.evolves or self._txn.delta_log.conf.read(keys.MERGE_SCHEMA),
        )

    def _condition(self, clause: MergeClause) -> Bound | ArrowBound | None:
        if clause.condition is None:
            return None
        sides = self._sides.seen_by(clause.when)
        what = f"{clause.name} condition"
        if is_arrow_expression(clause.condition):
            return self._sides.bind_arrow(clause.condition, sides, what, condition=True)
        bound = self._sides.bind(clause.condition, sides, what, condition=True)
        bound.check_condition("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", what)
        return bound

    def _builder(self, number: int) -> RowBuilder | None:
        row = self._plan.rows[number]
        if row.clause.action == "delete":
            return None
        metadata, table = self._txn.metadata, self._txn.delta_log.table
        return RowBuilder(row, self._sides, self._schema, metadata, table, self._numbering)

    def written(self, files: AttemptFiles) -> list[Action]:
        """Match, and write the files; the actions of the commit."""
        txn, clock, clauses = self._txn, self._txn.delta_log.clock, self._job.clauses
        matcher = Matcher(
            self._snapshot, self._sides, self._source, self._search, clauses, self._conditions
        )
        self._rewrite = rewrite = files.own(
            MergeRewrite(
                txn,
                self._now_ms,
                self._schema,
                self._sides,
                self._source,
                clauses,
                self._builders,
            )
        )
        metrics = rewrite.metrics
        metrics.source_rows = self._source.num_rows
        began = clock.monotonic()
        metrics.source_ms = round(1000 * (began - self._began))
        predicate = None
        if not matcher.reads_all:
            predicate = read_predicate(self._search, self._sides, matcher.keys, matcher.candidates)
        # Recorded as read whether a row matches or not: an INSERT is right only as long as no other
        # writer adds a row that its source row would match.
        candidates = txn.reads.filter_file_table(predicate)
        self._check_size(candidates, has_keys=bool(matcher.keys))
        # All files are searched before one is written: only then is it known which source rows
        # match nothing, and that none matches a row that another matches too.
        hits = list(matcher.hits(candidates, self._job.report))
        if hits:
            # Not before: where it only inserts, an append-only table takes a MERGE.
            txn.changes.assert_removable()
        scanned = clock.monotonic()
        metrics.scan_ms = round(1000 * (scanned - began))
        rewrite.apply(hits, self._job.report)
        for number, sources in self._inserted(matcher):
            rewrite.insert(number, sources)
            self._tell_inserted(metrics.inserted)
        actions = rewrite.actions()
        # Last, when the numbers are known: another writer that took the same ones also changes
        # the mark, and the two conflict.
        txn.changes.advance_identity_columns(self._numbering.marks)
        metrics.rewrite_ms = round(1000 * (clock.monotonic() - scanned))
        metrics.execution_ms = round(1000 * (clock.monotonic() - self._began))
        return actions

    def _check_size(self, files: pa.Table, *, has_keys: bool) -> None:
        most = self._job.most_bytes
        if most is None:
            return
        size = sum(each or 0 for each in files["size"].to_pylist())
        # Without keys every row meets every source row.
        times = 1 if has_keys else max(self._source.num_rows, 1)
        if size * times > most:
            raise _TooLargeError(f"{size} bytes, {times} times")

    def _inserted(self, matcher: Matcher) -> Iterator[tuple[int, Any]]:
        """Batches of source rows that match nothing, with the clause that inserts them."""
        inserting = [i for i, each in enumerate(self._job.clauses) if each.action == "insert"]
        if not inserting:
            return
        unmatched = matcher.unmatched()
        for start in range(0, len(unmatched), _BATCH_ROWS):
            rest = unmatched.slice(start, _BATCH_ROWS)
            for number in inserting:
                taken = self._inserts(number, rest)
                chosen = rest if taken is None else rest.filter(taken)
                if len(chosen):
                    yield number, chosen
                if taken is None:
                    break
                rest = rest.filter(pc.invert(taken))

    def _tell_inserted(self, rows: int) -> None:
        if self._job.report is not None:
            self._job.report(Progress(text="inserting", done=rows, unit="rows"))

    def _inserts(self, number: int, sources: Any) -> Any:
        """Which of some source rows a clause inserts; `None` for all of them."""
        condition = self._conditions[number]
        if condition is None:
            return None
        side = self._sides.source
        names = [n for n in self._source.table.column_names if side.named(n) in condition.names]
        rows = self._source.take(names, sources)
        pairs = side_by_side(self._sides, None, rows, len(sources))
        return condition.true_for(pairs).combine_chunks()

    def commit(self, actions: Sequence[Action]) -> RowsChanged:
        """Commit what `written` gave."""
        job, kept = self._job, self._rewrite.keeps_row_ids
        parameters = merge_parameters(job.condition, job.clauses, str)
        found = self._rewrite.metrics.operation_metrics()
        operation = Operation("MERGE", parameters, found, job.user_metadata)
        return end_command(self._txn, actions, operation, batch=job.progress, keeps_row_ids=kept)
