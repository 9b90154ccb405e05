"""The streaming half of `format("lakelog")`: offsets in a planner's process, rows on executors."""

# pyright: reportPossiblyUnboundVariable=false
# What the import may not have given is used where `_WITH_LIMITS` says that it has.

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from lakelog.core.engine.streams import ChangeSource, SourceOffset, StreamSource, change_readers
from lakelog.core.engine.values import array_of
from lakelog.core.errors import DataFileMissingError
from lakelog.spark.reading.arrow_scan import ArrowScan
from lakelog.spark.reading.changes import change_job
from lakelog.spark.workers.marked_errors import marked

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # PySpark before 4.2 has no limits: each batch takes all that is new
    _WITH_LIMITS = False
else:
    _WITH_LIMITS = True

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType as SparkStructType

    from lakelog.core import DeltaLog
    from lakelog.core.engine.streams import StreamOptions
    from lakelog.spark.reading.arrow_scan import ScanJob
    from lakelog.spark.reading.changes import ChangeJob

_Job: TypeAlias = "ScanJob | ChangeJob"


def stream_reader(
    log: DeltaLog, options: StreamOptions, schema: SparkStructType, *, changes: bool
) -> DataSourceStreamReader:
    """The reader of one query, with what the running Spark can do.

    Args:
        log: the table's.
        options: where to begin, how much to take, what to pass over.
        schema: the columns to read.
        changes: whether it reads the change data feed instead of rows.
    """
    reader = _LimitedReader if _WITH_LIMITS else _WholeReader
    jobs: _Jobs = (
        _ChangeJobs(ChangeSource(log, options), schema)
        if changes
        else _RowJobs(StreamSource(log, options), schema)
    )
    return reader(jobs, options)


class _RowJobs:
    """The tasks of a batch of rows."""

    def __init__(self, source: StreamSource, schema: SparkStructType) -> None:
        self.source = source
        self._schema = schema

    def between(self, start: SourceOffset, end: SourceOffset) -> Iterator[ScanJob]:
        """One after the other, each with all that it takes to read its files."""
        # One piece, from which tasks take theirs: commits have a piece each.
        files = self.source.files_between(start, end).combine_chunks()
        if files.num_rows:
            job = ArrowScan(self.source.snapshot, files, self._schema).job
            yield from (_alone(job, number) for number in range(job.tasks))


class _ChangeJobs:
    """The tasks of a batch of changes."""

    def __init__(self, source: ChangeSource, schema: SparkStructType) -> None:
        self.source = source
        self._columns = schema.names
        self._reader, _ = change_readers(source.snapshot, self._columns)

    def between(self, start: SourceOffset, end: SourceOffset) -> Iterator[ChangeJob]:
        """One after the other, each with all that it takes to read its files."""
        files = self.source.changes_between(start, end, self._reader)
        if files:
            job = change_job(self.source.snapshot, files, self._columns)
            yield from (job.alone(number) for number in range(job.tasks))


_Jobs: TypeAlias = _RowJobs | _ChangeJobs


class _Reader(DataSourceStreamReader):
    """What all versions of Spark ask for. Offsets are dicts, which Spark stores as JSON."""

    def __init__(self, jobs: _Jobs, options: StreamOptions) -> None:
        self._jobs = jobs
        self._source = jobs.source
        self._options = options

    @property
    def table(self) -> str:
        """The URI of the table, for errors."""
        return self._source.snapshot.table

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        """Where a query begins. Spark also asks on a restart, and then continues elsewhere."""
        with marked():
            return self._stored(self._source.initial_offset())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One task for some files, each with all that it takes to read them."""
        with marked():
            jobs: Iterator[_Job] = self._jobs.between(self._parsed(start), self._parsed(end))
            return [InputPartition(job) for job in jobs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        with marked():
            try:
                yield from (each for each in partition.value.batches(0) if each.num_rows)
            except DataFileMissingError as exc:
                said = str(exc).rstrip(".")
                raise DataFileMissingError(
                    f"{said}. A query that reads the table as a stream goes no further then: start "
                    "a new one, with another checkpointLocation and a startingVersion after that "
                    "version. VACUUM keeps files for delta.deletedFileRetentionDuration, which "
                    "should be longer than any query stands still.",
                    **exc.fields,
                ) from exc

    def commit(self, end: dict[str, Any]) -> None:
        """Forget what no later batch needs; go past a change of the table's metadata."""
        with marked():
            self._source.committed(self._parsed(end))

    def __getstate__(self) -> dict[str, Any]:
        """Executors read what their partitions hold, and need nothing of the log."""
        return {}

    def _parsed(self, offset: dict[str, Any]) -> SourceOffset:
        snapshot = self._source.snapshot
        return SourceOffset.from_json_value(offset, snapshot.metadata.id, snapshot.table)

    def _stored(self, offset: SourceOffset) -> dict[str, Any]:
        return offset.to_json_value(self._source.snapshot.metadata.id)


class _WholeReader(_Reader):
    """For Spark 4.0 and 4.1, which pass no start and no limit: a batch takes all that is new."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802  # as in 4.0
        """After the newest version."""
        with marked():
            return self._stored(self._source.end_of_newest())


if _WITH_LIMITS:

    class _LimitedReader(_Reader, SupportsTriggerAvailableNow):
        """For Spark 4.2 and later."""

        def getDefaultReadLimit(self) -> Any:  # noqa: N802  # PySpark's name
            """The limit of files; that of bytes goes with it, as Spark passes only one."""
            most = self._options.max_files
            if most is None and self._options.max_bytes is None:
                return ReadAllAvailable()
            return ReadMaxFiles((1 << 31) - 1 if most is None else most)

        def latestOffset(  # noqa: N802  # PySpark's name
            self, start: dict[str, Any], limit: Any
        ) -> dict[str, Any]:
            """Where the next batch ends. `Trigger.Once` lifts the limits."""
            with marked():
                limited = not isinstance(limit, ReadAllAvailable)
                begin = self._parsed(start)
                return self._stored(self._source.latest_offset(begin, limited=limited))

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
            """Take nothing that is committed from now on."""
            with marked():
                self._source.stop_at_newest()


def _alone(job: ScanJob, number: int) -> ScanJob:
    """One task of a job, with its files only."""
    first, end = job.starts[number : number + 2]
    pieces = job.pieces.slice(first, end - first)
    rows = pieces["file"].to_pylist()
    held = sorted(set(rows))
    numbers = {row: at for at, row in enumerate(held)}
    renumbered = array_of([numbers[row] for row in rows], pieces.schema.field("file").type)
    column = pieces.schema.get_field_index("file")
    return replace(
        job,
        files=job.files.take(array_of(held, pa.int64())).combine_chunks(),
        pieces=pieces.set_column(column, "file", renumbered).combine_chunks(),
        starts=[0, len(rows)],
    )
