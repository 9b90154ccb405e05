"""The change data feed as a DataFrame: `option("readChangeFeed", "true")`.

The commits are read here; the rows by the executors' Python workers with pyarrow, whatever the
storage: rows that a deletion vector removed are in no file that Spark's own reader would open.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelog.core.engine.scan import DataStores, read_ahead, storage_root
from lakelog.core.engine.streams import (
    ChangeBounds,
    ChangeFeed,
    change_readers,
    with_commit_columns,
)
from lakelog.core.errors import DataFileMissingError, DeltaAnalysisError
from lakelog.logstores.threads import DECODERS
from lakelog.spark.reading.joined import joined_batches
from lakelog.spark.reading.spark_scan import readable_schema
from lakelog.spark.reading.stated import with_known_nulls
from lakelog.spark.reading.task_files import most_files
from lakelog.spark.reading.time_travel import no_timestamp
from lakelog.spark.reading.variants import for_spark
from lakelog.spark.replay.logs import session_log
from lakelog.spark.workers.executor_tasks import rows_on_executors, task_numbers
from lakelog.spark.workers.filesystems import for_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping

    import pyarrow as pa
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import DeltaConf, Snapshot
    from lakelog.core.engine.scan import DataFile, RowReader
    from lakelog.core.engine.streams import ChangedFile

_BOUNDS = {
    "starting": ("startingVersion", "startingTimestamp"),
    "ending": ("endingVersion", "endingTimestamp"),
}
_OF_STATES = ("versionAsOf", "timestampAsOf")
_TASK_BYTES = 64 << 20


def changes_df(
    spark: SparkSession,
    path: str,
    options: Mapping[str, str],
    conf: DeltaConf,
    millis: Callable[[str], int],
) -> DataFrame:
    """The rows that some versions changed; see `lakelog.core.table_changes`.

    Args:
        spark: a session, classic or Connect.
        path: the table.
        options: names in lower case; the bounds are among them.
        conf: the session's conf; it chooses the store.
        millis: turns the text of a time into epoch milliseconds, by the session's zone.

    Raises:
        DeltaAnalysisError: invalid bounds, and what `table_changes` raises.
    """
    for name in _OF_STATES:
        if name.lower() in options:
            raise DeltaAnalysisError(
                f"{name} reads the rows of one version, but readChangeFeed the changes of several: "
                "use startingVersion and endingVersion, or leave out readChangeFeed",
                option=name,
            )
    feed = ChangeFeed(session_log(spark, path, conf), _bounds(options, millis))
    schema = readable_schema(feed.schema)
    if feed.snapshot.store.filesystem.type_name.endswith("memory"):
        # The executors can't read the memory of this process, so the rows are sent instead.
        found = spark.createDataFrame(feed.to_batches().read_all(), schema)
        return with_known_nulls(found, feed.snapshot.read_schema)
    job = change_job(feed.snapshot, feed.files(), feed.schema.names)
    if job.tasks:
        size = sum(each.file.size for _, each in job.files)
        found = rows_on_executors(task_numbers(spark, job.tasks, size), job, schema)
    else:
        found = spark.createDataFrame([], schema)
    return with_known_nulls(found, feed.snapshot.read_schema)


def _bounds(options: Mapping[str, str], millis: Callable[[str], int]) -> ChangeBounds:
    found: dict[str, int | None] = {}
    for word, (version, time) in _BOUNDS.items():
        text = options.get(version.lower())
        found[f"{word}_version"] = None if text is None else _whole(version, text)
        text = options.get(time.lower())
        found[f"{word}_timestamp"] = None if text is None else _moment(time, text, millis)
    return ChangeBounds(**found)


def _whole(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DeltaAnalysisError(
            f"{option} is {text!r}, which is not a version", option=option, value=text
        ) from None


def _moment(option: str, text: str, millis: Callable[[str], int]) -> int:
    try:
        return millis(text)
    except DeltaAnalysisError:
        raise no_timestamp(text, option) from None


@dataclass(frozen=True)
class ChangeJob:
    """What is sent to the executors."""

    table: str
    rows: RowReader
    typed: RowReader
    """Reads files of change data, which say for each row what happened to it."""
    filesystems: Mapping[str, FileSystem]
    """By scheme and authority."""
    files: list[tuple[str, ChangedFile]]
    """Each with its path as the file system spells it."""
    starts: list[int]
    """Task -> its first file; one entry more at the end."""
    columns: list[str]
    """Those that come out."""

    @property
    def tasks(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        first, end = self.starts[number : number + 2]
        streams = (partial(self._changed, *each) for each in self.files[first:end])
        with closing(read_ahead(streams, workers=min(end - first, DECODERS))) as tables:
            yield from joined_batches(tables)

    def alone(self, number: int) -> ChangeJob:
        """One task, with its files only."""
        first, end = self.starts[number : number + 2]
        return replace(self, files=self.files[first:end], starts=[0, end - first])

    def deleted(self, file: DataFile) -> Callable[[int], pa.BooleanArray] | None:
        """Which rows the deletion vector has, given the number of the file's rows."""
        if file.vector is None:
            return None
        root = storage_root(file.vector.path or file.path)
        return partial(file.vector.deleted, self.filesystems[root])

    def _changed(self, place: str, changed: ChangedFile) -> Generator[pa.Table]:
        typed = changed.change is None
        file, reader = changed.file, self.typed if typed else changed.reader or self.rows
        try:
            found = reader.batches(
                self.filesystems[storage_root(file.path)],
                place,
                file.partition,
                file.partition_values,
                deleted=None if typed else changed.others(self),
            )
            for rows in found:
                yield for_spark(with_commit_columns(rows, changed).select(self.columns))
        except DataFileMissingError:
            raise
        except FileNotFoundError as exc:
            raise DataFileMissingError(
                f"the changes of version {changed.version} of {self.table} need the file "
                f"{file.path}, which does not exist. If VACUUM deleted it, the changes of that "
                "version can no longer be read: start from a later one.",
                path=file.path,
                table=self.table,
                version=changed.version,
            ) from exc


def change_job(snapshot: Snapshot, files: list[ChangedFile], columns: Collection[str]) -> ChangeJob:
    """Distribute changed files over tasks; nothing is opened yet.

    Args:
        snapshot: the version whose columns come out.
        files: what changed.
        columns: some of `change_schema`, in order.
    """
    stores = DataStores(snapshot)
    plain, typed = change_readers(snapshot, columns)
    filesystems: dict[str, FileSystem] = {}

    def place(path: str) -> str:
        store = stores.for_path(path)
        filesystems.setdefault(storage_root(path), for_workers(store.filesystem))
        return store.filesystem_path(path)

    placed = []
    for each in files:
        placed.append((place(each.file.path), each))
        for file in (each.file, each.only):
            if file is not None and file.vector is not None and file.vector.path is not None:
                place(file.vector.path)
    return ChangeJob(
        table=snapshot.table,
        rows=plain.reader,
        typed=typed.reader,
        filesystems=filesystems,
        files=placed,
        starts=_dealt([each.file.size for each in files], most_files(filesystems.values())),
        columns=list(columns),
    )


def _dealt(sizes: list[int], most: int) -> list[int]:
    """Where the files of each task begin, `most` of them in one, and where the last one ends."""
    starts: list[int] = []
    taken: Any = 0
    for row, size in enumerate(sizes):
        if not starts or taken + size > _TASK_BYTES or row - starts[-1] >= most:
            starts.append(row)
            taken = 0
        taken += size
    return [*starts, len(sizes)] if starts else [0]
