"""Reading the change data feed: which rows came, went and changed from version to version."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.arguments import read_arguments
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.change_feed.changed_files import (
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ChangedFile,
    changed_files,
    with_commit_columns,
)
from lakelog.core.change_feed.commits import ChangeCommit, read_change_commit
from lakelog.core.change_feed.removed import RemovedFiles
from lakelog.core.change_feed.versions import ChangeBounds, change_versions, commit_files
from lakelog.core.data.ahead import read_ahead
from lakelog.core.data.change_files import CHANGE_TYPE
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.delta_log import log_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.column_mapping import physical_schema
from lakelog.core.schema.diff import differences
from lakelog.core.schema.rules import as_nullable
from lakelog.logstores.threads import REQUESTS, in_order, readers

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Mapping
    from datetime import datetime

    from lakelog.core.actions import Metadata
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.state.snapshot import Snapshot


@read_arguments
def table_changes(
    uri: TableOrLog,
    starting_version: int | None = None,
    ending_version: int | None = None,
    *,
    starting_timestamp: int | str | datetime | None = None,
    ending_timestamp: int | str | datetime | None = None,
    conf: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """The rows that were changed in some versions, with what happened to each.

        table_changes("/lake/flights", 5).read_all()

    The columns are those of the last version, also of rows that went with other columns, then
    `_change_type` (`insert`, `delete`,
    `update_preimage`, `update_postimage`), `_commit_version` and `_commit_timestamp`. Versions
    come in order, the rows of one in none. Every version must have been written with
    `delta.enableChangeDataFeed`; `VACUUM` removes changes together with the files that held them.

    Args:
        uri: where the table is, or its `DeltaLog`.
        starting_version: the first version. Either this or `starting_timestamp` is needed.
        ending_version: the last one; the latest by default, or where there are fewer.
        starting_timestamp: instead, the first version committed at or after a time: epoch
            milliseconds, a datetime or ISO 8601 text (UTC where they have no zone).
        ending_timestamp: instead, the last version committed at or before a time.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
            `changeDataFeed.timestampOutOfRange.enabled` makes a start after the latest version
            an empty answer instead of an error.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: bounds that are not a range; a version without a feed; or a change of
            the schema in between, so that older rows don't fit the last version's columns.
        TimestampOutOfRangeError: a time after the latest version.
        LogGapError: commits of the range are gone.
        DataFileMissingError: a file is gone; raised when its rows are read.
    """
    bounds = ChangeBounds(
        starting_version=starting_version,
        ending_version=ending_version,
        starting_timestamp=starting_timestamp,
        ending_timestamp=ending_timestamp,
    )
    return ChangeFeed(log_of(uri, conf), bounds).to_batches()


class ChangeFeed:
    """One read of changes: planned when it is made, carried out by `to_batches`."""

    def __init__(self, log: DeltaLog, bounds: ChangeBounds) -> None:
        """Read the commits; see `table_changes`."""
        versions = change_versions(log, bounds)
        latest = log.snapshot
        self.snapshot: Snapshot = log.snapshot_at(versions[-1]) if versions else latest
        """Of the last version; it has the columns."""
        self._log = log
        self._commits = _read(log, versions) if versions else []
        if versions:
            first = log.snapshot_at(versions[0])
            _check_feed(first, self._commits, versions)
            _check_schemas(first, self._commits, self.snapshot)
        self.schema: StructType = change_schema(self.snapshot)
        """The columns that come out."""
        self.plain: TableFileReader
        self.typed: TableFileReader
        self.plain, self.typed = change_readers(self.snapshot, self.snapshot.read_schema.names)

    def files(self) -> list[ChangedFile]:
        """What was changed, in the order of versions.

        Raises:
            CorruptLogError: the log does not say where a file or its deletion vector is.
        """
        table, before = (
            self._log.table,
            RemovedFiles(self._log, self.snapshot, self.schema.names).of,
        )
        found = (changed_files(each, self.plain, table, before) for each in self._commits)
        return list(chain.from_iterable(found))

    def to_batches(self) -> pa.RecordBatchReader:
        """The changed rows; files are read by a few threads, in order, when they are asked for."""
        schema = to_arrow_schema(self.schema)
        return pa.RecordBatchReader.from_batches(schema, self._batches(self.files()))

    def _batches(self, files: list[ChangedFile]) -> Iterator[pa.RecordBatch]:
        streams = (partial(_rows, self, each) for each in files)
        with closing(read_ahead(streams, workers=min(len(files), readers()))) as tables:
            for table in tables:
                yield from table.to_batches()


_STRING = PrimitiveType("string")
_ADDED = (
    StructField(CHANGE_TYPE, _STRING),
    StructField(COMMIT_VERSION, PrimitiveType("long")),
    StructField(COMMIT_TIMESTAMP, PrimitiveType("timestamp")),
)


def change_schema(snapshot: Snapshot) -> StructType:
    """The columns of changes: a version's own, then what happened to the row, and when."""
    return StructType((*as_nullable(snapshot.read_schema), *_ADDED))


def change_readers(
    snapshot: Snapshot, columns: Collection[str]
) -> tuple[TableFileReader, TableFileReader]:
    """What reads files of data, and what reads files of change data.

    Older versions may have nulls where the snapshot's allows none.

    Args:
        snapshot: the version whose columns come out.
        columns: some of them.
    """
    rows = [each for each in as_nullable(snapshot.read_schema) if each.name in columns]
    typed = StructType((*rows, StructField(CHANGE_TYPE, _STRING)))
    return TableFileReader(snapshot, StructType(tuple(rows))), TableFileReader(snapshot, typed)


def _rows(feed: ChangeFeed, changed: ChangedFile) -> Generator[pa.Table]:
    if changed.change is None:
        found = feed.typed.batches_without(changed.file, None)
    else:
        others = changed.others(feed.plain)
        found = feed.plain.batches_without(changed.file, others, reader=changed.reader)
    for rows in found:
        yield with_commit_columns(rows, changed)


def _read(log: DeltaLog, versions: range) -> list[ChangeCommit]:
    def read(commit: tuple[int, str, int]) -> ChangeCommit:
        version, path, time = commit
        return read_change_commit(log.store, path, version, time)

    return list(in_order(read, commit_files(log, versions), REQUESTS, "lakelog-commits"))


def _check_feed(first: Snapshot, commits: list[ChangeCommit], versions: range) -> None:
    """Refuse a range with a version that was written without a feed."""
    on = first.properties.change_data_feed
    for commit in commits:
        if commit.switches_feed is not None:
            on = commit.switches_feed
        if not on:
            raise no_feed(first.table, commit.version, versions[0], versions[-1])


def no_feed(table: str, version: int, first: int, last: int) -> DeltaAnalysisError:
    """The error for a version that was written without a feed.

    Args:
        table: its URI.
        version: the version.
        first: of those that were to be read.
        last: of those that were to be read.
    """
    return DeltaAnalysisError(
        f"[DELTA_MISSING_CHANGE_DATA] the changes of {table} from version {first} to version "
        f"{last} can't be read: version {version} was written without a change data feed. The "
        "table's history shows when the feed was enabled; to enable it from now on, set the "
        "property delta.enableChangeDataFeed to true.",
        table=table,
        version=version,
        starting_version=first,
        ending_version=last,
    )


def _check_schemas(first: Snapshot, commits: list[ChangeCommit], last: Snapshot) -> None:
    """Refuse a range in which a column was dropped, or changed so that old values don't fit."""
    seen: list[tuple[int, Metadata]] = [(first.version, first.metadata)]
    seen += [(each.version, each.metadata) for each in commits if each.metadata is not None]
    now, (_, by) = physical_schema(last.read_schema), _as_stored(last.metadata)
    for version, metadata in seen:
        then, partitioning = _as_stored(metadata)
        found = differences(now, then)
        if any(each.blocks for each in found) or partitioning != by:
            columns = ", ".join(each.path for each in found if each.blocks) or "the partitioning"
            raise DeltaAnalysisError(
                f"[DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE] the changes of {last.table} "
                f"since version {first.version} don't fit the columns of version {last.version}, "
                f"which differs from version {version} in {columns}. Read the versions before that "
                "change and those from it on in two calls.",
                table=last.table,
                version=version,
            )


def _as_stored(metadata: Metadata) -> tuple[StructType, list[str]]:
    """Columns and partition columns, by the names that data files have for them."""
    schema = StructType.from_json(metadata.schema_string)
    found = [schema.get(name) for name in metadata.partition_columns]
    partitions = StructType(tuple(each for each in found if each is not None))
    if TableProperties(metadata.configuration).column_mapping_mode == "none":
        return schema, partitions.names
    return physical_schema(schema), physical_schema(partitions).names
