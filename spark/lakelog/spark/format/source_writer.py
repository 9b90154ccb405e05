"""The writing half of `format("lakelog")`: executors write files, a daemon commits them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lakelog.core import AttemptFiles, DeltaLog
from lakelog.core.engine.commit import COMMAND, end_command, flush, observing
from lakelog.core.engine.rows import generation_of, is_filled, missing_identities, table_constraints
from lakelog.core.engine.schemas import check_holds_rows
from lakelog.core.engine.tables import travelling_conf
from lakelog.core.engine.write import TableWrite, cast_batch, partition_errors, write_batches
from lakelog.core.errors import DeltaAnalysisError, MetadataChangedException
from lakelog.core.schema import StructType
from lakelog.spark.names.governed import keys_of_name, lasting
from lakelog.spark.types.spark_types import without_void
from lakelog.spark.workers.filesystems import for_workers
from lakelog.spark.workers.marked_errors import marked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from lakelog.core import OptimisticTransaction
    from lakelog.spark.writing.options import WriteOptions

_MAIN_PATH = "lakelog.spark.write(df).mode(…).save(path)"


@dataclass
class _Written(WriterCommitMessage):
    """What one task wrote: tuples of `portable.writer.RESULT_SCHEMA`."""

    results: list[tuple[Any, ...]]


class SourceWriter(DataSourceArrowWriter):
    """Appends to a table or replaces its rows. Picklable: it travels to executors and back."""

    def __init__(
        self,
        path: str,
        data: StructType,
        options: WriteOptions,
        conf: Mapping[str, str],
        led_by: str | None = None,
    ) -> None:
        """Check the write against the table as it is now.

        Args:
            path: the table.
            data: the schema of the rows.
            options: the caller's.
            conf: the session's conf; it chooses the store.
            led_by: the `traceparent` of `register`'s call.

        Raises:
            DeltaAnalysisError: something that this API can't do; names the call that can.
            SchemaMismatchError: data and table differ, and nothing allows the table to change.
        """
        # It travels to the executors and back, so it carries no secrets of other storages.
        of_catalog = keys_of_name(path, conf)
        self._conf = travelling_conf(conf, None if of_catalog else path, of_catalog)
        self._given, self._data = data, without_void(data)
        self._options, self._led_by = options, led_by
        log = DeltaLog.for_table(path, self._conf)
        self._table = log.table
        # Another process commits, maybe in another folder.
        self._opened_by = lasting(path, self._conf)
        check_holds_rows(self._data, self._data, log.table)
        write = TableWrite(log.start_transaction(), self._options)
        self._settle(write)
        txn = write.txn
        self._schema_string = txn.metadata.schema_string
        self._partitions = list(txn.metadata.partition_columns)
        self._check(txn, log)
        layout = txn.changes.file_layout
        self._schema = layout.schema
        plan = layout.plan(
            log.store,
            log.table,
            **options.file_options(),
        )
        self._plan = replace(plan, filesystem=for_workers(plan.filesystem))

    def _settle(self, write: TableWrite, planned: StructType | None = None) -> None:
        write.settle_schema(self._given, planned=planned)
        if self._options.mode == "overwrite" and self._options.data_change:
            write.txn.changes.assert_removable()

    def _check(self, txn: OptimisticTransaction, log: DeltaLog) -> None:
        for each in table_constraints(txn.metadata):
            if each.kind != "not_null":
                raise DeltaAnalysisError(
                    f"{log.table} has the constraint {each.name} ({each.sql}), which "
                    f'format("lakelog") can\'t check: use {_MAIN_PATH}',
                    table=log.table,
                    constraint=each.name,
                )
        for field in StructType.from_json(self._schema_string):
            if generation_of(field) or (is_filled(field) and self._given.get(field.name) is None):
                raise DeltaAnalysisError(
                    f"{log.table} generates, numbers or fills its column {field.name}, which "
                    f'format("lakelog") can\'t: use {_MAIN_PATH}',
                    table=log.table,
                    column=field.name,
                )
        missing_identities(StructType.from_json(self._schema_string), self._given, log.table)
        if log.store.filesystem.type_name.endswith("memory"):
            raise DeltaAnalysisError(
                f'{log.table} is in the memory of one process, but format("lakelog") writes '
                f"from others: use {_MAIN_PATH}",
                table=log.table,
            )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, on an executor."""
        from pyspark import TaskContext

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        with marked(), partition_errors(self._table):
            # Including void columns: the plan leaves out what no file can hold.
            schema = StructType.from_json(self._schema_string)
            rows = (rows for batch in iterator for rows in cast_batch(batch, schema))
            return _Written(write_batches(rows, self._plan, part=part))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote, as one version."""
        with marked():
            results = [r for m in messages if isinstance(m, _Written) for r in m.results]
            try:
                observing(
                    self._conf,
                    COMMAND,
                    self._table,
                    lambda _: self._commit(results),
                    link=self._led_by,
                    command="write",
                )
            finally:
                # Spark ends this process as it likes.
                flush(self._conf)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete nothing: Spark calls this after a failed commit too, which may have landed.

        A commit that is known to have failed has deleted its files by itself. Other files that no
        commit names are not part of the table; `VACUUM` deletes it eventually.
        """

    def _commit(self, results: list[tuple[Any, ...]]) -> None:
        log = DeltaLog.for_table(self._opened_by, self._conf)
        write = TableWrite(log.start_transaction(), self._options)
        with AttemptFiles(write.txn) as files:
            files.at(path for path, *_ in results)
            self._settle(write, StructType.from_json(self._schema_string))
            self._commit_files(write, results)

    def _commit_files(self, write: TableWrite, results: list[tuple[Any, ...]]) -> None:
        txn, options = write.txn, self._options
        planned = (self._schema_string, self._partitions)
        if (txn.metadata.schema_string, list(txn.metadata.partition_columns)) != planned:
            raise MetadataChangedException(
                f"another writer changed the schema or the partitioning of {self._table} while the "
                "data files were being written. Run the write again",
                table=self._table,
                version=txn.reads.version,
            )
        if write.is_done():
            return
        adds = txn.changes.file_layout.add_files(results, data_change=options.data_change)
        removed, now = write.replaced_before(), txn.delta_log.clock.now_ms()
        removes = (each.remove(now, data_change=options.data_change) for each in removed)
        operation = write.operation(adds, removed)
        end_command(txn, [*removes, *adds], operation, batch=options.batch)
