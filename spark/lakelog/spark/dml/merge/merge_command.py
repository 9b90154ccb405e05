"""MERGE: from its clauses to its commit.

    source, evaluated once ─┐
                            ├─ join ─► rows that a clause applies to, kept by the executors
    rows with places ───────┘            ├─► places ─► deletion vectors, or copies of other rows
                                         ├─► new rows, with those of the source that match none
                                         └─► the change feed

The table is read once. Rows that stay are copied by Arrow, and never seen by Spark.

A small MERGE is carried out in this process (`without_spark`), by the same plan and in the same
transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.types import LongType

from lakelog.core import AttemptFiles, Operation, keys
from lakelog.core.engine.commit import check_writable, command, end_command
from lakelog.core.engine.dml import RowRewrite
from lakelog.core.engine.log import NO_FILES
from lakelog.core.engine.merge import (
    MergeMetrics,
    MergeReads,
    merge_parameters,
    plan_merge,
    takes_many_matches,
)
from lakelog.core.engine.rows import MovedRowIds
from lakelog.spark.dml.column_text import as_texts
from lakelog.spark.dml.copies import copied_by_spark
from lakelog.spark.dml.given_expressions import may_ask_metadata, text_of
from lakelog.spark.dml.merge.changed_positions import places_of
from lakelog.spark.dml.merge.changed_rows import MergeRows
from lakelog.spark.dml.merge.char_comparisons import CharComparisons
from lakelog.spark.dml.merge.checked_expressions import Scope, check_deterministic, refuse_stars
from lakelog.spark.dml.merge.clause_values import as_column, check_defaults, check_given, given_in
from lakelog.spark.dml.merge.many_matches import refuse_many_matches
from lakelog.spark.dml.merge.numbered_source import NUMBER, MergeSource
from lakelog.spark.dml.merge.placed_target import MergeTarget
from lakelog.spark.dml.merge.written_rows import Changed, Inserted, MergeWrites, Written
from lakelog.spark.dml.needed import columns_needed
from lakelog.spark.dml.without_spark import (
    HERE_BYTES,
    HERE_ROWS,
    alias_in_targets,
    aliases_here,
    expressions_of,
    merged_here,
)
from lakelog.spark.reading.row_positions import FILE
from lakelog.spark.session.answers import answer
from lakelog.spark.session.job_errors import job_errors
from lakelog.spark.session.kept_rows import again_if_rows_are_lost
from lakelog.spark.types.spark_types import struct_of, to_delta_schema
from lakelog.spark.writing.by_driver import fetched_if_small
from lakelog.spark.writing.enforced_rules import table_rules

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lakelog.core import Expression, OptimisticTransaction, Snapshot
    from lakelog.core.actions import Action
    from lakelog.core.engine.merge import MergeClause, MergePlan
    from lakelog.core.schema import StructType
    from lakelog.spark.dml.merge.request import Merge


@command("merge")
def run_merge(merge: Merge) -> DataFrame:
    """Run a MERGE; see `DeltaMergeBuilder.execute`."""
    metrics = again_if_rows_are_lost(lambda: _Run(merge, merge.log.start_transaction()).run())
    updated, deleted = metrics["numTargetRowsUpdated"], metrics["numTargetRowsDeleted"]
    inserted = metrics["numTargetRowsInserted"]
    row = (updated + deleted + inserted, updated, deleted, inserted)
    names = (f"num_{name}_rows" for name in ("affected", "updated", "deleted", "inserted"))
    return answer(merge.spark, struct_of(**dict.fromkeys(names, LongType())), [row])


@dataclass
class _Run:
    """One execution."""

    merge: Merge
    txn: OptimisticTransaction
    metrics: MergeMetrics = field(default_factory=MergeMetrics)
    _keeps_row_ids: bool = True
    _frame: DataFrame | None = None
    """Of `toDF`, whose columns the expressions name."""

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.txn.snapshot or self.merge.log.snapshot  # raises, and says what is there

    @cached_property
    def ids(self) -> MovedRowIds | None:
        return MovedRowIds.from_snapshot(self.snapshot)

    @cached_property
    def _asks_metadata(self) -> bool:
        return may_ask_metadata(expressions_of(self.merge), self.snapshot.schema)

    @cached_property
    def reads(self) -> MergeReads:
        merge, source = self.merge, to_delta_schema(self.merge.source.schema)
        return MergeReads.of(merge.condition, self.snapshot, source, merge.alias)

    def run(self) -> dict[str, int]:
        snapshot, log, clock = self.snapshot, self.merge.log, self.merge.log.clock
        check_writable(snapshot.protocol, snapshot.metadata, log.table)
        began = clock.monotonic()
        source = MergeSource.planned(self.merge.source)
        target = self._known(source)
        # Before the clauses are analysed: the plan, keys and the way without Spark see one form.
        self.merge = self._in_texts(target, source)
        plan = self._analysed(source.schema)
        types = self._resolved(plan, target, source)
        with AttemptFiles(self.txn) as attempt, job_errors(log.table, snapshot.version):
            here = self._aliases_here(plan)
            rows = None if here is None else fetched_if_small(self.merge.source)
            if here is not None and rows is None:
                # Kept by the executors before it is fetched: where this process does not merge it
                # after all, Spark goes on with the same rows.
                source = source.evaluated(self.reads.keys)
                rows = source.fetched(HERE_ROWS)
            if here is not None and rows is not None:
                changed = merged_here(self.txn, self.merge, plan, rows, here)
                if changed is not None:
                    return dict(changed.metrics)
            if source.rows < 0:
                source = source.evaluated(self.reads.keys)
            self.metrics.source_rows = source.rows
            self.metrics.source_ms = round(1000 * (clock.monotonic() - began))
            actions = self._actions(plan, types, source, attempt)
            self.metrics.execution_ms = round(1000 * (clock.monotonic() - began))
            found, asked = self.metrics.operation_metrics(), self.merge
            parameters = merge_parameters(text_of(asked.condition), asked.clauses, text_of)
            operation = Operation("MERGE", parameters, found)
            end_command(self.txn, actions, operation, keeps_row_ids=self._keeps_row_ids)
        return found

    def _aliases_here(self, plan: MergePlan) -> tuple[str, str] | None:
        """What expressions call the tables, where this process may do it all by itself."""
        if self.snapshot.size_in_bytes > HERE_BYTES:
            reads = self.reads
            if plan.of("not matched by source") or not (reads.keys or reads.filters):
                return None
        return aliases_here(self.merge)

    def _analysed(self, source: StructType) -> MergePlan:
        snapshot, merge = self.snapshot, self.merge
        evolves = merge.evolves or merge.log.conf.read(keys.MERGE_SCHEMA)
        return plan_merge(
            snapshot,
            merge.clauses,
            source,
            target_alias=merge.alias,
            source_alias=alias_in_targets(merge, snapshot.schema) if evolves else None,
            evolves=evolves,
        )

    def _in_texts(self, target: MergeTarget, source: MergeSource) -> Merge:
        """The same with texts for Columns, as far as there are any."""
        merge = self.merge
        if all(isinstance(each, str) for each in expressions_of(merge)):
            return merge
        both = target.df.join(source.df)
        seen = {
            "matched": both,
            "not matched": source.df,
            "not matched by source": target.alone(target.df),
        }

        def in_texts(clause: MergeClause) -> MergeClause:
            values = clause.values or {}
            given = [clause.condition, *values.values()]
            texts = as_texts(["" if each is None else each for each in given], seen[clause.when])
            return replace(
                clause,
                condition=None if clause.condition is None else texts[0],
                values=clause.values and dict(zip(values, texts[1:], strict=True)),
            )

        (condition,) = as_texts([merge.condition], both)
        return replace(merge, condition=condition, clauses=tuple(map(in_texts, merge.clauses)))

    def _resolved(
        self, plan: MergePlan, target: MergeTarget, source: MergeSource
    ) -> dict[int, Any]:
        """The types of all expressions; every name is known and every condition is one then."""
        condition, what = self.merge.condition, "search condition"
        conditions = [(condition, what)]
        seen: dict[str, list[tuple[Any, str]]] = {
            when: [] for when in ("matched", "not matched", "not matched by source")
        }
        for row in plan.rows:
            clause = row.clause
            if clause.condition is not None:
                named = (clause.condition, f"{clause.name} condition")
                seen[clause.when].append(named)
                conditions.append(named)
            for column in row.columns:
                seen[clause.when] += [
                    (given, f"{clause.name} clause") for given in given_in(column.value)
                ]
        both = target.df.join(source.df)
        scopes = {
            "matched": Scope(both, sf.col(NUMBER)),
            "not matched": Scope(source.df, sf.col(NUMBER)),
            "not matched by source": Scope(target.alone(target.df), sf.col(FILE)),
        }
        for when, wanted in seen.items():
            for expression, where in wanted:
                refuse_stars(scopes[when].frame, expression, self.merge.alias, where)
        scopes["matched"].resolve([(condition, what), *seen["matched"]])
        scopes["not matched"].resolve(seen["not matched"])
        scopes["not matched by source"].resolve(seen["not matched by source"])
        types = {k: v for scope in scopes.values() for k, v in scope.types.items()}
        for row in plan.rows:
            for column in row.columns:
                check_given(column.value, types, column.field.data_type, (column.field.name,))
        for expression, where in conditions:
            Scope(both, sf.col(NUMBER), types).check_condition(expression, where)
        check_deterministic(
            target.df, source.df, [(condition, what), *_conditions(plan, "matched")]
        )
        # Not under the name `id`, by which an expression may mean a column of the table.
        one = self.merge.spark.range(1).toDF("__lakelog_other")
        check_deterministic(source.df, one, _conditions(plan, "not matched"))
        alone = _conditions(plan, "not matched by source")
        check_deterministic(target.alone(target.df), one, alone)
        return types

    def _known(self, source: MergeSource) -> MergeTarget:
        """The table without rows; from here on under the columns that the expressions name."""
        target = self._target(NO_FILES)
        if self.merge.frames is not None:
            given = expressions_of(self.merge)
            self._frame = self.merge.frames.known_to(target.df, given, self.merge.alias, source.df)
        return target if self._frame is None else self._target(NO_FILES)

    def _target(
        self,
        files: pa.Table,
        columns: StructType | None = None,
        prune: Expression | None = None,
    ) -> MergeTarget:
        merge, ids = self.merge, self.ids
        return MergeTarget.over(
            merge.spark,
            self.snapshot,
            files,
            merge.alias,
            ids,
            self._frame,
            columns=columns,
            prune=prune,
            metadata=self._asks_metadata,
        )

    def _needed(self, plan: MergePlan, source: MergeSource) -> StructType | None:
        """The columns of the table that conditions see, where no clause needs the others."""
        has_feed = self.snapshot.properties.change_data_feed
        updates = any(row.clause.action == "update" for row in plan.rows)
        if updates or has_feed or self._frame is not None:
            return None
        alone = _conditions(plan, "not matched by source")
        both = [(self.merge.condition, ""), *_conditions(plan, "matched")]

        def tried(some: StructType) -> DataFrame:
            target = self._target(NO_FILES, some)
            found = target.df.join(source.df).select(*(as_column(each) for each, _ in both))
            rows = target.alone(target.df).select(*(as_column(each) for each, _ in alone))
            return found.join(rows)

        given = [each for each, _ in (*both, *alone)]
        snapshot = self.snapshot
        return columns_needed(snapshot.read_schema, snapshot.partition_columns, given, tried)

    def _read(self, plan: MergePlan, source: MergeSource) -> tuple[pa.Table, Expression | None]:
        """The files that may have rows to change, and a condition that is true for these."""
        alone = plan.of("not matched by source")
        # A clause for rows that the source lacks is about all rows of the table, and so conflicts
        # with whatever another writer adds.
        known = None if alone else self.reads.predicate(source.bounds)
        return self.txn.reads.filter_file_table(known), known

    def _actions(
        self,
        plan: MergePlan,
        types: dict[int, Any],
        source: MergeSource,
        attempt: AttemptFiles,
    ) -> list[Action]:
        files, known = self._read(plan, source)
        now = self.merge.log.clock.now_ms()
        # Its layout is that of the old schema: copied rows need no column that no clause set.
        copies = partial(copied_by_spark, self.merge.spark)
        rewrite = attempt.own(
            RowRewrite(self.txn, now, is_given_rows=True, command="merge", run_copies=copies)
        )
        self._with_new_schema(plan)
        target = self._target(files, self._needed(plan, source), known)
        log = self.merge.log
        for each in plan.rows:
            check_defaults(each.columns or (), log.table, log.conf)
        rules = table_rules(self.txn.metadata, log.table, log.conf)
        chars = CharComparisons(self.snapshot.read_schema, source.schema, self.merge.alias)
        rows = MergeRows(plan, target, source, types, rules, chars.column)
        writes = MergeWrites(
            self.txn, self.merge.log, self.merge.spark, rows, attempt, self.ids, files
        )
        clock = self.merge.log.clock
        began = clock.monotonic()
        changed = None
        if files.num_rows:
            changed = self._changed(rows)
            # Several matches of one row are refused before a file is written.
            self._count_rows(rows, changed)
            self.metrics.scan_ms = round(1000 * (clock.monotonic() - began))
            if changed.places is not None and changed.places.counts:
                self.txn.changes.assert_removable()
                rewrite.apply(changed.places.touched(self.snapshot, files))
        # From the matches that were kept, and not by a second join: a row is updated or inserted,
        # and never both.
        inserted = Inserted()
        if plan.of("not matched"):
            inserted = writes.inserted(rows.inserted(_matched(changed)))
        written = writes.write(changed, inserted)
        removed = rewrite.actions()
        self.metrics.inserted = inserted.rows
        self._count_files(rewrite, written)
        self.metrics.rewrite_ms = round(1000 * (clock.monotonic() - began)) - self.metrics.scan_ms
        self._keeps_row_ids = self.ids is not None or not (removed or written.adds)
        return [*removed, *written.adds, *written.changes]

    def _with_new_schema(self, plan: MergePlan) -> None:
        """Let the table have the columns that the MERGE adds."""
        if plan.schema == self.snapshot.schema:
            return
        metadata = self.txn.metadata
        self.txn.update_metadata(replace(metadata, schema_string=plan.schema.to_json()))

    def _changed(self, rows: MergeRows) -> Changed:
        # Pairs that no clause applies to also count as matches, as delta-spark counts them.
        all_matches = not takes_many_matches(self.merge.clauses) or rows.plan.of("not matched")
        condition = rows.column(self.merge.condition)
        df = rows.changed(condition, all_matches=bool(all_matches))
        inserts_only = all(row.clause.when == "not matched" for row in rows.plan.rows)
        if inserts_only:
            df = df.select(NUMBER).distinct().localCheckpoint()
            return Changed(df, None, updates=False, deletes=False)
        # Places, new rows, matches and the change feed are each taken from it, and must agree, also
        # where a task is retried.
        df = df.localCheckpoint()
        one_match = not takes_many_matches(self.merge.clauses)
        places = places_of(
            df, rows.target.numbers, source_rows=rows.source.rows, one_match=one_match
        )
        updates = not places.counts.keys().isdisjoint(rows.updating)
        return Changed(df, places, updates, deletes=bool(places.counts.keys() - set(rows.updating)))

    def _count_rows(self, rows: MergeRows, changed: Changed) -> None:
        """Count the rows that clauses update or delete; refuse several matches of one."""
        places = changed.places
        if places is None:
            return
        if places.many is not None:
            refuse_many_matches(places.many, rows.source, self.reads.keys, self.merge.log.table)
        for number, count in places.counts.items():
            self.metrics.count_rows(rows.plan.rows[number].clause, count)

    def _count_files(self, rewrite: RowRewrite, written: Written) -> None:
        copies, metrics = rewrite.metrics, self.metrics
        metrics.copied = copies.copied
        metrics.removed_files, metrics.removed_bytes = copies.removed_files, copies.removed_bytes
        metrics.vectors_added = copies.vectors_added
        metrics.vectors_removed = copies.vectors_removed
        metrics.vectors_updated = copies.vectors_updated
        metrics.added_files = copies.added_files + len(written.adds)
        metrics.added_bytes = copies.added_bytes + sum(each.size for each in written.adds)
        metrics.change_files = len(written.changes)


def _conditions(plan: MergePlan, when: str) -> list[tuple[Any, str]]:
    return [
        (row.clause.condition, f"{row.clause.name} condition")
        for row in plan.rows
        if row.clause.when == when and row.clause.condition is not None
    ]


def _matched(changed: Changed | None) -> DataFrame | None:
    """The numbers of the source rows that match."""
    if changed is None:
        return None
    return changed.df.where(sf.col(NUMBER).isNotNull()).select(NUMBER).distinct()
