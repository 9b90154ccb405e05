"""A table's change data feed as the source of a stream: which changes a batch reads.

A query begins with all rows of the newest version, as inserted, or with the changes of the version
that its options name. Which files count, and by which number an offset names them, is Delta's: a
commit's change data files where it has any, else what it added and removed, in its order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.arrays import array_of
from lakelog.core.change_feed.changed_files import ChangedFile, changed_files
from lakelog.core.change_feed.commits import ChangeCommit, read_change_commit
from lakelog.core.change_feed.feed import no_feed
from lakelog.core.change_feed.removed import RemovedFiles
from lakelog.core.log.commit_history import commit_times
from lakelog.core.log.segment import list_log
from lakelog.core.streaming.pending import Pending
from lakelog.core.streaming.version_walk import TableStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import AddCDCFile
    from lakelog.core.data.file_reader import TableFileReader
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.streaming.offsets import SourceOffset
    from lakelog.core.streaming.stream_options import StreamOptions

_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64())])


class ChangeSource(TableStream):
    """The rows that the versions of a table inserted, deleted and updated."""

    def __init__(self, log: DeltaLog, options: StreamOptions) -> None:
        """See `TableStream`."""
        super().__init__(log, options)
        self._times: dict[int, int] = {}
        self._feed_since: tuple[int, bool] | None = None
        self._state_time: int = 0

    def changes_between(
        self, start: SourceOffset, end: SourceOffset, files: TableFileReader
    ) -> list[ChangedFile]:
        """What changed in a batch, by files, in the order of versions.

        Args:
            start: where the batch begins.
            end: where it ends.
            files: finds them.

        Raises:
            DeltaAnalysisError: the end is before the start; a version without a feed; and what
                `latest_offset` raises.
            VersionNotFoundError: the version that the query began with can't be rebuilt any more.
            LogGapError: a commit that the stream needs is gone.
            CorruptLogError: the log does not say where a file or its deletion vector is.
        """
        found: list[ChangedFile] = []
        before = RemovedFiles(self._log, self.snapshot, files.columns).of
        for version, pending, chosen in self._between(start, end):
            counted = pending.files
            if isinstance(counted, tuple):
                continue  # a lost version, which has none
            rows = [row for row in chosen if self._wants(counted["path"][row].as_py())]
            if not rows:
                continue
            if pending.commit is None:
                whole = files.find(counted.take(array_of(rows, pa.int64())))
                at = version, self._state_time
                found += (ChangedFile(file, "insert", *at) for file in whole)
            else:
                part = _with_files(pending.commit, rows)
                found += changed_files(part, files, self._log.table, before)
        return found

    def _wants(self, path: str) -> bool:
        pattern = self._options.exclude
        return pattern is None or pattern.search(path) is None

    def _state_pending(self, snapshot: Snapshot, files: pa.Table) -> Pending:
        if not snapshot.properties.change_data_feed:
            raise no_feed(snapshot.table, snapshot.version, snapshot.version, snapshot.version)
        self._state_time = snapshot.timestamp
        return Pending(files)

    def _commit_pending(self, commit: ChangeCommit) -> Pending:
        version = commit.version
        if commit.switches_feed is not None:
            on = commit.switches_feed
        elif self._feed_since is not None and self._feed_since[0] == version - 1:
            on = self._feed_since[1]
        else:
            on = self._version(version).properties.change_data_feed
        if not on:
            raise no_feed(self._log.table, version, version, version)
        self._feed_since = version, on
        counted = _files_that_count(commit)
        columns = {
            "path": [each.path for each in counted],
            # A removed file may be without one.
            "size": [each.size or 0 for each in counted],
        }
        # Both images of an updated row, or a file's remove and its add with another vector, mean
        # something together only.
        whole = bool(commit.changes) or any(
            each.deletion_vector is not None for each in commit.files
        )
        return Pending(pa.table(columns, _SCHEMA), whole=whole, commit=commit)

    def _version(self, version: int) -> Snapshot:
        newest = self._log.snapshot
        return newest if newest.version == version else self._log.snapshot_at(version)

    def _read_commit(self, path: str, version: int, newest: int) -> ChangeCommit:
        log = self._log
        if version not in self._times:
            self._times = commit_times(list_log(log.store, log.table, version, newest))
        return read_change_commit(log.store, path, version, self._times.get(version, 0))


def _files_that_count(commit: ChangeCommit) -> Sequence[AddFile | RemoveFile | AddCDCFile]:
    return commit.changes or commit.files


def _with_files(commit: ChangeCommit, rows: list[int]) -> ChangeCommit:
    """The same commit with some of the files that count."""
    part = ChangeCommit(commit.version, commit.timestamp, metadata=commit.metadata)
    if commit.changes:
        part.changes = [commit.changes[row] for row in rows]
        return part
    chosen = [commit.files[row] for row in rows]
    part.adds = [each for each in chosen if isinstance(each, AddFile)]
    part.removes = [each for each in chosen if isinstance(each, RemoveFile)]
    return part
