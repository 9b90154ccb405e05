"""DELETE and UPDATE of rows for any condition that Spark can evaluate.

Both are two steps. A Spark job says which rows the condition is true for, by file and position;
then the old rows are taken out by a deletion vector or a copy of the others
(`lakelog.core.dml.rewrite`). New rows come from a second read, of the touched files alone.
The first reads the condition's columns and no others, and is left out where the log tells that
every row of a file matches. One job can't do both: what Spark gives back of a job that writes is
its files, and whatever tasks count beside them counts twice where a task is retried.

Where lakelog can evaluate everything by itself, and the files are small, it does so in this
process (`lakelog.core.dml.delete_update`): no Spark job starts. The transaction and what was found
out of the condition and the new values are the same for both ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lakelog.core import AttemptFiles, Operation
from lakelog.core.engine.commit import command, end_command, json_text
from lakelog.core.engine.conditions import columns as columns_of
from lakelog.core.engine.conditions import is_partition_only
from lakelog.core.engine.dml import (
    RowRewrite,
    RowsPlan,
    can_evaluate,
    change_few_rows,
    touched_at,
    touched_whole,
    updated_columns,
)
from lakelog.core.engine.log import from_add_files, to_add_files
from lakelog.core.engine.scan import readable_partitions
from lakelog.core.engine.values import has_variants, pc
from lakelog.core.schema import StructType
from lakelog.spark.dml import without_spark as here
from lakelog.spark.dml.candidate_files import RowCondition, outside_of
from lakelog.spark.dml.column_text import as_texts
from lakelog.spark.dml.copies import copied_by_spark
from lakelog.spark.dml.given_expressions import (
    check_expressions,
    may_ask_metadata,
    subqueries_in,
    text_of,
)
from lakelog.spark.dml.given_frames import under
from lakelog.spark.dml.matching_positions import hit_positions, partitions_matching, row_width
from lakelog.spark.dml.merge.clause_values import as_column, check_defaults
from lakelog.spark.dml.needed import columns_needed
from lakelog.spark.dml.updated_rows import checked_types, updated_rows
from lakelog.spark.reading.read_files import positioned_df
from lakelog.spark.session.job_errors import job_errors
from lakelog.spark.session.kept_rows import again_if_rows_are_lost
from lakelog.spark.writing.balanced import is_balanced
from lakelog.spark.writing.by_driver import arrow_of
from lakelog.spark.writing.enforced_rules import table_rules
from lakelog.spark.writing.options import WriteOptions
from lakelog.spark.writing.write_files import TableFileWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakelog.core import DeltaLog, Expression, OptimisticTransaction, RowsChanged, Snapshot
    from lakelog.core.engine.dml import TouchedFile
    from lakelog.core.engine.merge import NewColumn
    from lakelog.spark.dml.given_frames import GivenFrames
    from lakelog.spark.reading.row_positions import PositionedRows

_FEW_ROWS = 1 << 18
_FEW_BYTES = 64 << 20
"""So many new rows, of so many bytes, are fetched and written by this process."""


@command("delete", at=1)
def delete(
    spark: SparkSession,
    log: DeltaLog,
    condition: str | Column | None,
    alias: str | None,
    frames: GivenFrames | None = None,
) -> int:
    """Delete the rows for which a condition is true; see `DeltaTable.delete`.

    Returns:
        How many; -1 where the log does not say.
    """
    return _Change(spark, log, "DELETE", condition, alias, frames=frames).run()


@command("update", at=1)
def update(
    spark: SparkSession,
    log: DeltaLog,
    values: Mapping[str, str | Column],
    condition: str | Column | None,
    alias: str | None,
    frames: GivenFrames | None = None,
) -> int:
    """Set columns in the rows for which a condition is true; see `DeltaTable.update`.

    Returns:
        How many rows; -1 where the log does not say.
    """
    update = _Change(spark, log, "UPDATE", condition, alias, values, frames=frames)
    return again_if_rows_are_lost(update.run)


@dataclass(frozen=True, slots=True)
class _Change:
    """One command."""

    spark: SparkSession
    log: DeltaLog
    name: str
    condition: str | Column | None
    alias: str | None
    values: Mapping[str, str | Column] | None = None
    """The new values of an UPDATE."""
    frames: GivenFrames | None = None
    """Whose columns the expressions may name."""
    frame: DataFrame | None = None
    """The one of them whose columns they do name."""

    def run(self) -> int:
        """Change the rows, in one commit.

        Returns:
            How many rows; -1 where the log does not say.
        """
        txn = self.log.start_transaction()
        snapshot = txn.snapshot or self.log.snapshot  # raises, and says what is there instead
        txn.changes.terms.check_writable(self.log.table)
        txn.changes.assert_removable()
        return self._in_texts(snapshot)._run(txn, snapshot)

    def _in_texts(self, snapshot: Snapshot) -> _Change:
        """The same with texts for Columns, as far as there are any."""
        values = self.values or {}
        given = [self.condition, *values.values()]
        if all(each is None or isinstance(each, str) for each in given):
            return self
        change, empty = self, self._empty(snapshot)
        if self.frames is not None:
            asked = [self.condition, *filter(_is_sql, values.values())]
            frame = self.frames.known_to(empty, asked, self.alias)
            if frame is not None:
                change = replace(self, frame=frame)
                empty = change._empty(snapshot)
        texts = as_texts(["" if each is None else each for each in given], empty)
        return replace(
            change,
            condition=None if self.condition is None else texts[0],
            values=None if self.values is None else dict(zip(values, texts[1:], strict=True)),
        )

    def _run(self, txn: OptimisticTransaction, snapshot: Snapshot) -> int:
        columns = None
        if self.values is not None:
            columns = updated_columns(self.values, snapshot, alias=self.alias)
        condition = RowCondition.of(self.condition, snapshot, self.alias)
        done = None
        if self._is_small(snapshot, condition, columns):
            done = change_few_rows(txn, self._plan(condition, columns))
        if done is None:
            done = self._run_by_spark(txn, snapshot, condition, columns or ())
        return 0 if done.version is None else done.metrics.get(self._row_metric, -1)

    def _plan(self, condition: RowCondition, columns: Sequence[NewColumn] | None) -> RowsPlan:
        shown = None if self.condition is None else text_of(self.condition)
        return RowsPlan(condition.whole, shown, columns)

    def _is_small(
        self, snapshot: Snapshot, condition: RowCondition, columns: Sequence[NewColumn] | None
    ) -> bool:
        """Whether this process may do it, and the columns that it reads are not too large."""
        whole = condition.whole
        if self.condition is None and columns is None:
            return True  # by the log alone
        if whole is None and self.condition is not None:
            return False
        if not all(isinstance(each, str) for each in (self.values or {}).values()):
            return False
        # To Spark, `s.id` is the table's `id` before it is a field of the column `s`.
        if self.alias is not None and snapshot.schema.get(self.alias) is not None:
            return False
        if not here.evaluates_as_spark(self.spark):
            return False
        if whole is not None and is_partition_only(whole, snapshot.partition_columns):
            if columns is None:
                return True
        elif whole is not None and not can_evaluate(snapshot, whole):
            return False
        files = snapshot.file_table_for(whole)
        share = 1.0
        if whole is not None and columns is None and snapshot.properties.deletion_vectors:
            share = len({path[0].lower() for path in columns_of(whole)})
            share /= len(snapshot.schema.fields)
        size = sum(each or 0 for each in files["size"].to_pylist())
        return bool(size * share <= here.HERE_BYTES)

    def _run_by_spark(
        self,
        txn: OptimisticTransaction,
        snapshot: Snapshot,
        condition: RowCondition,
        columns: Sequence[NewColumn],
    ) -> RowsChanged:
        empty = self._empty(snapshot)
        given = [] if self.values is None else [v for v in self.values.values() if _is_sql(v)]
        check_expressions(empty, self.condition, given, self.name)
        if columns:
            checked_types(empty, columns)
        now_ms = self.log.clock.now_ms()
        with AttemptFiles(txn) as attempt:
            is_update = self.values is not None
            copies = partial(copied_by_spark, self.spark)
            changes = attempt.own(
                RowRewrite(txn, now_ms, is_given_rows=is_update, run_copies=copies)
            )
            with job_errors(self.log.table, txn.reads.version):
                self._apply(txn, snapshot, condition, changes, columns, attempt)
            return self._commit(txn, changes)

    @property
    def _row_metric(self) -> str:
        """The metric that says how many rows changed."""
        return "numDeletedRows" if self.values is None else "numUpdatedRows"

    def _empty(self, snapshot: Snapshot) -> DataFrame:
        """What expressions see, without rows."""
        return self._rows(snapshot, snapshot.file_table.slice(0, 0), snapshot.schema)[1]

    def _rows(
        self,
        snapshot: Snapshot,
        files: pa.Table,
        schema: StructType,
        prune: Expression | None = None,
    ) -> tuple[PositionedRows, DataFrame]:
        """The rows of some files, under the name that expressions use."""
        asked = may_ask_metadata([self.condition, *(self.values or {}).values()], snapshot.schema)
        found = positioned_df(
            self.spark, snapshot, files, schema=schema, prune=prune, metadata=asked
        )
        df = under(self.frame, found.df)
        return found, df if self.alias is None else df.alias(self.alias)

    def _hit(self, rows: DataFrame) -> DataFrame:
        return rows if self.condition is None else rows.where(as_column(self.condition))

    def _apply(
        self,
        txn: OptimisticTransaction,
        snapshot: Snapshot,
        condition: RowCondition,
        changes: RowRewrite,
        columns: Sequence[NewColumn],
        attempt: AttemptFiles,
    ) -> None:
        clock, metrics = self.log.clock, changes.metrics
        began = clock.monotonic()
        files, by_partition, known = self._files(txn, snapshot, condition.part)
        if by_partition and self.values is None:
            changes.take_whole(to_add_files(files))
            metrics.execution_ms = round(1000 * (clock.monotonic() - began))
            return
        if by_partition or self.condition is None:
            touched = touched_whole(snapshot, files)
        else:
            found, rows = self._rows(snapshot, files, self._needed(snapshot), known)
            touched = touched_at(snapshot, files, hit_positions(self._hit(rows), found.numbers))
        metrics.scan_ms = round(1000 * (clock.monotonic() - began))
        if touched:
            if self.values is not None:
                self._write_new(txn, snapshot, touched, known, columns, changes, attempt)
            changes.apply(touched)
        metrics.rewrite_ms = round(1000 * (clock.monotonic() - began)) - metrics.scan_ms
        metrics.execution_ms = metrics.scan_ms + metrics.rewrite_ms

    def _needed(self, snapshot: Snapshot) -> StructType:
        """The columns that the condition sees."""
        schema, condition = snapshot.schema, self.condition
        if condition is None or self.frame is not None:
            return schema
        none = snapshot.file_table.slice(0, 0)
        return columns_needed(
            schema,
            snapshot.partition_columns,
            [condition],
            lambda some: self._hit(self._rows(snapshot, none, some)[1]),
        )

    def _files(
        self, txn: OptimisticTransaction, snapshot: Snapshot, known: Expression | None
    ) -> tuple[pa.Table, bool, Expression | None]:
        """The files that may have rows to change, whether all of their rows are, and a condition.

        All rows to change meet the condition, where there is one.

        The transaction learns what was read, by which the commits of others are judged.
        """
        if self.condition is None:
            return txn.reads.filter_file_table(None), False, None
        files = snapshot.file_table_for(known)
        condition = as_column(self.condition)
        whole = partitions_matching(self.spark, snapshot, files, condition, self.alias)
        if whole is None:
            return txn.reads.filter_file_table(known), False, known
        if known is None:
            # Only Spark knows what the condition means of a partition, and it has said so of those
            # that are there. One that another writer adds may be meant: it counts as read.
            values = readable_partitions(snapshot, files.filter(pc.invert(whole)))
            known = outside_of(snapshot, values.select(snapshot.partition_columns))
        txn.reads.filter_file_table(known)
        return files.filter(whole), True, None

    def _write_new(
        self,
        txn: OptimisticTransaction,
        snapshot: Snapshot,
        touched: Sequence[TouchedFile],
        known: Expression | None,
        columns: Sequence[NewColumn],
        changes: RowRewrite,
        attempt: AttemptFiles,
    ) -> None:
        """Write the new rows, and the change data, of the touched files."""
        # The condition finds the same rows once more: data files never change, and what is not
        # deterministic was refused.
        files = from_add_files([each.add for each in touched])
        ids = changes.row_ids
        schema = snapshot.schema if ids is None else ids.add_id_columns(snapshot.schema)
        found, rows = self._rows(snapshot, files, schema, known)
        firsts = {key: touched[i].add.base_row_id for key, i in found.numbers.items()}
        table, conf = self.log.table, self.log.conf
        check_defaults(columns, table, conf)
        rules = table_rules(txn.metadata, table, conf)
        new = updated_rows(self._hit(rows), columns, rules, ids, firsts)
        count = sum(each.hit.true_count for each in touched)
        layout = txn.changes.file_layout
        variants = has_variants(layout.plan(self.log.store, self.log.table).schema)
        if count <= _FEW_ROWS and count * row_width(files) <= _FEW_BYTES and not variants:
            fresh, old = new.split(arrow_of(new.flat))
            changes.write_new(fresh)
            changes.write_changed(old, fresh)
            return
        options = WriteOptions.from_options("append", None, {}, self.log.conf)
        shuffles = is_balanced(options, self.log.conf, txn.metadata.configuration)
        plain = TableFileWriter(self.log, layout, options, attempt, shuffles=shuffles)
        feeds = snapshot.properties.change_data_feed
        if feeds and subqueries_in(rows, (self.values or {}).values()):
            # Its table may change between the two writes.
            new = replace(new, both=new.both.localCheckpoint())
        fed = plain.write_changes(new.changes) if feeds else []
        hidden = None if ids is None else ids.add_id_columns(StructType())
        changes.add_written(replace(plain, hidden=hidden).write(new.new), fed)

    def _commit(self, txn: OptimisticTransaction, changes: RowRewrite) -> RowsChanged:
        actions = changes.actions()
        # All rows are deleted elsewhere; an UPDATE of all has no predicate in delta-spark, either.
        shown = [] if self.condition is None else [text_of(self.condition)]
        operation = Operation(
            self.name,
            {"predicate": json_text(shown)},
            changes.metrics.operation_metrics(self._row_metric),
        )
        return end_command(txn, actions, operation, keeps_row_ids=changes.keeps_row_ids)


def _is_sql(value: str | Column) -> bool:
    """Whether a value is an expression, and not the keyword."""
    return not isinstance(value, str) or value.strip().upper() != "DEFAULT"
