"""One write from start to commit: the plan of `DeltaWriter.save`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.core import AttemptFiles, DeltaConf, Operation, keys
from lakelog.core.engine.commit import command, end_command, streaming_metrics, write_metrics
from lakelog.core.engine.schemas import check_holds_rows
from lakelog.core.engine.tables import define_table
from lakelog.core.engine.write import IdentityBounds, TableWrite
from lakelog.core.errors import ConcurrentAppendException
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.job_errors import job_errors
from lakelog.spark.session.session import session_conf, with_storage
from lakelog.spark.types.spark_types import to_delta_schema, without_void
from lakelog.spark.writing.balanced import is_balanced
from lakelog.spark.writing.enforced_rules import RowRule, check_rule, enforced, table_rules
from lakelog.spark.writing.filled_columns import FilledColumns
from lakelog.spark.writing.options import WriteOptions
from lakelog.spark.writing.overwrite import replaced_before
from lakelog.spark.writing.replaced_changes import Written, write_with_changes
from lakelog.spark.writing.stored import cast_by_name
from lakelog.spark.writing.write_files import Fetch, TableFileWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from lakelog.core import DeltaLog, OptimisticTransaction
    from lakelog.core.actions import Action, AddFile
    from lakelog.core.engine.tables import TableDefined
    from lakelog.core.engine.write import SaveMode
    from lakelog.core.schema import StructType
    from lakelog.spark.writing.options import TableDefinition


def save_frame(
    frame: DataFrame,
    path: str,
    mode: SaveMode,
    partition_by: Sequence[str] | None,
    options: Mapping[str, str],
    definition: TableDefinition | None = None,
    read_version: int | None = None,
    replace_column: Column | None = None,
    *,
    casts: bool = False,
) -> int | None:
    """Write a DataFrame as a commit of the table at `path`; see `DeltaWriter.save`.

    Args:
        frame: the rows.
        path: the table.
        mode: what to do with a table that is there.
        partition_by: the partition columns, `None` for none named.
        options: of the writer.
        definition: where the commit makes a new table, and says more of it than options do.
        read_version: where the rows were made from the table itself, of which version.
        replace_column: the condition of an overwrite, in place of the option `replaceWhere`; the
            caller sees to it that it is true for all rows.
        casts: whether values are cast to the types of the table's columns, as by INSERT.

    Returns:
        The version of the commit; `None` where there was nothing to do and nothing was committed.
    """
    conf = DeltaConf.from_mapping(with_storage(session_conf(frame.sparkSession), options))
    wanted = WriteOptions.from_options(mode, partition_by, options, conf)
    wanted = replace(wanted, read_version=read_version, casts=casts)
    if definition is not None:
        wanted = replace(wanted, definition=definition, dynamic_overwrite=False)
    if replace_column is not None:
        wanted = replace(wanted, replace_column=replace_column, dynamic_overwrite=False)
    log = session_log(frame.sparkSession, path, conf, makes=True)
    done = _Save(frame, log, wanted).as_command()
    return None if done is None else done[0]


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """Which batch of which streaming query a write is."""

    query_id: str
    batch_id: int
    output_mode: str
    """`Append` or `Complete`, as history spells it."""
    fetched: bool
    """Whether the driver fetches the rows and writes them, since they are likely to be few."""
    streamed: frozenset[str] = frozenset()
    """The ids of the tables that the query reads as streams."""


def save_batch(
    frame: DataFrame, log: DeltaLog, options: WriteOptions, batch: StreamBatch
) -> Sequence[AddFile] | None:
    """Write one batch of a streaming query, once, however often it is tried.

    A batch without rows is also committed: the table records the query's progress.

    Args:
        frame: the rows of the batch.
        log: the table's.
        options: the mode is `overwrite` where the batch replaces the rows of the table; the
            transaction is the query's id and the number of the batch.
        batch: the batch.

    Returns:
        The files that the batch added; `None` where the table has the batch already.
    """
    done = _Save(frame, log, replace(options, casts=True), batch).run()
    return None if done is None else done[1]


@dataclass(frozen=True, slots=True)
class _Save:
    frame: DataFrame
    log: DeltaLog
    options: WriteOptions
    batch: StreamBatch | None = None

    def run(self) -> tuple[int | None, Sequence[AddFile]] | None:
        """The version of the commit and the new files; `None` where nothing was to be done."""
        # Before anything is planned or read: what others commit from here on is checked for
        # conflicts.
        txn = self.log.start_transaction()
        write = TableWrite(txn, self.options)
        if write.is_done():
            return None
        self._check_read(txn)
        if self.options.casts and txn.snapshot is not None and not self.options.overwrite_schema:
            grows = bool(self.options.merge_schema)
            found = cast_by_name(self.frame, txn.snapshot, grows=grows)
            return replace(self, frame=found)._saved(write)
        return self._saved(write)

    @command("write")
    def as_command(self) -> tuple[int | None, Sequence[AddFile]] | None:
        """The same, called by a user and not by a stream."""
        return self.run()

    def _saved(self, write: TableWrite) -> tuple[int | None, Sequence[AddFile]]:
        txn, given = write.txn, to_delta_schema(self.frame.schema)
        data = without_void(given)
        check_holds_rows(data, data, self.log.table)
        defined = self._define(write, given)
        if self.options.mode == "overwrite" and self.options.data_change:
            txn.changes.assert_removable()
        with AttemptFiles(txn) as files:
            with job_errors(self.log.table, None if txn.snapshot is None else txn.reads.version):
                written = self._write(write, given, files)
            return self._commit(write, written, defined), written.adds

    def _check_read(self, txn: OptimisticTransaction) -> None:
        """Note what the rows were made from, where it is the table itself.

        Raises:
            ConcurrentAppendException: they would replace rows that came after those.
        """
        if self.batch is not None:
            # As in delta-spark, neither of the two is a blind append to other writers.
            if txn.snapshot is None:
                if self.options.mode == "overwrite":
                    txn.filter_files()
            elif txn.metadata.id in self.batch.streamed:
                txn.reads.read_whole_table()
            return
        read = self.options.read_version
        if read is not None and txn.reads.version != read:
            raise ConcurrentAppendException(
                f"[DELTA_CONCURRENT_APPEND] the rows to write were made from version {read} of "
                f"{self.log.table}, but it is now at version {txn.reads.version}: they would "
                "replace what others wrote meanwhile. Nothing was written; run it again.",
                table=self.log.table,
                version=txn.reads.version,
            )

    def _define(self, write: TableWrite, given: StructType) -> TableDefined | None:
        """Let the table have the columns of the rows."""
        options = self.options
        if options.definition is None:
            write.settle_schema(given)
            return None
        defined = define_table(
            write.txn,
            given,
            partition_by=options.partition_by or (),
            cluster_by=options.definition.cluster_by,
            properties=options.definition.properties,
            description=options.definition.description,
        )
        write.txn.changes.terms.check_writable(self.log.table)
        return defined

    def _write(self, write: TableWrite, given: StructType, attempt: AttemptFiles) -> Written:
        """Write the files of the frame's rows; return them, and what they replace."""
        frame, txn = self.frame, write.txn
        # Spark's own writer would write a void column to the files, as a boolean.
        target = without_void(write.schema)
        replaced = replaced_before(write, frame.sparkSession, target, self.options)
        filled = FilledColumns.from_schemas(
            given, target, txn.changes.protocol, self.log.table, self.log.conf
        )
        rules = [*self._rules(txn, target), *filled.rules()]
        rows = enforced(filled.rows(frame), rules)
        bounds = IdentityBounds(target, filled.identities) if filled.identities else None
        layout = txn.changes.file_layout
        fetch: Fetch = "cheap"
        if self.batch is not None:
            fetch = "all" if self.batch.fetched else "none"
        shuffles = is_balanced(self.options, self.log.conf, txn.metadata.configuration)
        files = TableFileWriter(self.log, layout, self.options, attempt, bounds, fetch, shuffles)
        if replaced.kept_rows is None:
            few = enforced(filled.rows(frame, 1), rules) if bounds else None
            written = Written(files.write(rows, frame, few), replaced)
        elif txn.changes.terms.properties.change_data_feed:
            written = write_with_changes(txn, rows, replaced, files, target)
        else:
            # In one job: rows that are new and rows that stay share files.
            written = Written(files.write(rows.union(replaced.kept_rows)), replaced)
        # In the commit of the rows: another writer that took the same numbers changes the same
        # mark, and conflicts.
        if bounds is not None:
            txn.changes.advance_identity_columns(bounds.marks())
        # Only now is it known which partitions the rows are in.
        dynamic = write.replaced_by(written.adds)
        if not dynamic:
            return written
        return replace(written, replaced=replace(replaced, files=[*replaced.files, *dynamic]))

    def _rules(self, txn: OptimisticTransaction, target: StructType) -> list[RowRule]:
        rules = table_rules(txn.metadata, self.log.table, self.log.conf)
        predicate = self.options.replace_where
        if predicate and self.log.conf.read(keys.REPLACE_CHECK):
            rules.append(
                check_rule(
                    "[DELTA_REPLACE_WHERE_MISMATCH] Written data does not conform to partial table "
                    f"overwrite condition or constraint '{predicate}'",
                    predicate,
                    target.names,
                )
            )
        return rules

    def _commit(
        self, write: TableWrite, written: Written, defined: TableDefined | None
    ) -> int | None:
        options, adds, replaced = self.options, written.adds, written.replaced
        now = self.log.clock.now_ms()
        actions: list[Action] = [
            *(each.remove(now, data_change=options.data_change) for each in replaced.files),
            *adds,
            *written.changes,
        ]
        if defined is not None:
            actions += defined.domains
        # Rows that are written again get new ids in their new files.
        kept = None if replaced.kept_rows is None else False
        operation = self._operation(write, written, defined)
        done = end_command(write.txn, actions, operation, batch=options.batch, keeps_row_ids=kept)
        return done.version

    def _operation(
        self, write: TableWrite, written: Written, defined: TableDefined | None
    ) -> Operation:
        options, adds, replaced = self.options, written.adds, written.replaced
        if self.batch is not None:
            return Operation.streaming_update(
                self.batch.output_mode,
                self.batch.query_id,
                self.batch.batch_id,
                metrics=streaming_metrics(adds, replaced.files),
                user_metadata=options.user_metadata,
            )
        if defined is not None and options.definition is not None:
            return Operation.create_table(
                defined.partition_by,
                cluster_by=defined.cluster_by,
                properties=options.definition.properties,
                description=options.definition.description,
                managed=options.definition.managed,
                metrics=write_metrics(adds, replaced.files if replaced.files else None),
                user_metadata=options.user_metadata,
                name=options.definition.operation,
            )
        return write.operation(
            adds,
            replaced.files,
            predicate=options.predicate,
            moves_rows=replaced.kept_rows is not None,
            change_files=len(written.changes),
        )
