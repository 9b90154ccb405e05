"""The way of a stream through the versions of a table: offsets, limits, and what is between two.

Delta's own rules: a query begins with all live files of the newest version, in the order of their
modification times and paths, and goes on with the files of each later commit. A batch ends
anywhere in between, by the limits; that place is its offset.

Where a catalog governs the table, its newest version never goes back. So an answer below what the
stream has read already is an old one, as a replica or a cache gives: there is nothing new then, and
the stream waits. Of a table at a path it means that another log is there, and is an error.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.actions.file_table import FILE_SCHEMA
from lakelog.core.catalogs.refusals import governed
from lakelog.core.change_feed.versions import first_version_since
from lakelog.core.errors import (
    CatalogError,
    DeltaAnalysisError,
    DeltaError,
    LogGapError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakelog.core.log.file_names import commit_path
from lakelog.core.log.segment import list_log
from lakelog.core.streaming.offsets import BASE_INDEX, SourceOffset
from lakelog.core.streaming.pending import Pending, Room
from lakelog.core.streaming.schema_changes import check_same_columns
from lakelog.core.streaming.tracking.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from lakelog.core.actions import Metadata
    from lakelog.core.change_feed.commits import ChangeCommit
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.streaming.stream_options import StreamOptions

_log = logging.getLogger("lakelog")
_NOTHING = Pending(())
_BEFORE, _BEHIND = 1, 2
"""Sides of a change of metadata, as `SourceOffset.barrier` has them."""


class TableStream(ABC):
    """One query's view of a table. It holds the columns that the table had when it was made.

    What was read of the log stays in memory from `latest_offset` until `forget`.
    """

    def __init__(self, log: DeltaLog, options: StreamOptions) -> None:
        """Read the newest version.

        Args:
            log: the table's.
            options: where to begin, how much to take, what to pass over.

        Raises:
            TableNotFoundError: there is no table.
        """
        self._log = log
        self._options = options
        newest = log.update()
        self._tracker = Tracker.open(log, options)
        self.snapshot: Snapshot = newest if self._tracker is None else self._tracker.snapshot
        """The version whose columns the stream has."""
        self._last: int | None = None
        self._commits: dict[int, Pending] = {}
        self._state: tuple[int, Pending] | None = None
        self._begun = False
        self._is_behind = False
        """Whether the catalog's last answer was older than the stream, which was logged then."""
        self._refused: tuple[SourceOffset, DeltaError] | None = None
        """Where a query can't begin, and why; one with a checkpoint goes on elsewhere."""

    def initial_offset(self) -> SourceOffset:
        """Where a query without a checkpoint begins.

        Raises:
            TimestampOutOfRangeError: `startingTimestamp` is after the latest version.
            VersionNotFoundError: `startingVersion` is.
        """
        try:
            return self._named_offset()
        except (TimestampOutOfRangeError, VersionNotFoundError) as exc:
            # Spark asks on a restart as well. The catalog's answer may be older than the stream.
            if governed(self._log.store) is None:
                raise
            begin = SourceOffset(self._log.snapshot.version + 1, BASE_INDEX)
            self._refused = begin, exc
            return begin

    def _named_offset(self) -> SourceOffset:
        options, newest = self._options, self._log.snapshot
        # The next version and not this one: what is there already was there before the query.
        if options.starting_version == "latest":
            return SourceOffset(newest.version + 1, BASE_INDEX)
        lenient = self._log.conf.read(keys.FEED_LENIENT)
        if options.starting_version is not None:
            if options.starting_version > newest.version and not lenient:
                raise self._not_there(options.starting_version, newest.version)
            return SourceOffset(options.starting_version, BASE_INDEX)
        if options.starting_timestamp is None:
            return SourceOffset(self.snapshot.version, BASE_INDEX, is_starting=True)
        first = first_version_since(newest, options.starting_timestamp)
        if first is None:
            if not lenient:
                raise TimestampOutOfRangeError(
                    "[DELTA_TIMESTAMP_GREATER_THAN_COMMIT] the startingTimestamp of the stream is "
                    f"after the latest version of {newest.table}, {newest.version}",
                    table=newest.table,
                    timestamp=options.starting_timestamp,
                )
            first = newest.version + 1
        return SourceOffset(first, BASE_INDEX)

    def stop_at_newest(self) -> None:
        """Take nothing that is committed from now on."""
        self._last = self._update().version

    def end_of_newest(self) -> SourceOffset:
        """Behind the newest version, whatever the limits."""
        return SourceOffset(self._update().version + 1, BASE_INDEX)

    def latest_offset(self, start: SourceOffset, *, limited: bool = True) -> SourceOffset:
        """Where the batch that begins at an offset ends; the same offset where nothing is new.

        Args:
            start: where it begins.
            limited: whether the limits of the options hold.

        Raises:
            DeltaAnalysisError: a commit that the options don't allow to pass over, or columns that
                the stream does not have.
            VersionNotFoundError: the start is after the newest version of a table at a path.
            LogGapError: a commit that the stream needs is gone.
        """
        # Once for a batch: what is committed while it is planned belongs to the next one.
        newest = self._update().version
        if self._waits(start, newest):
            return start
        self._track(start, newest)
        self._check_begin(start)
        last = newest if self._last is None else min(self._last, newest)
        room = Room(self._options, limited=limited)
        if start.is_starting:
            state = self._pending_state(start.version)
            done = start.index + 1 + room.take(state, start.index + 1)
            # The batch after it begins with the next commit: none is mixed with the state.
            if done < len(state.files):
                return SourceOffset(start.version, done - 1, is_starting=True)
            return SourceOffset(start.version + 1, BASE_INDEX)
        if start.version > newest + 1 and not self._log.conf.read(keys.FEED_LENIENT):
            raise self._not_there(start.version, newest)
        # An empty batch: Spark writes its end to the checkpoint, and only then may the columns
        # change, so that a restart on either side knows which it has.
        if start.barrier == _BEFORE:
            return replace(start, barrier=_BEHIND)
        at = start
        # Commit by commit, since limits and changes of metadata may end the batch anywhere; what is
        # read here is kept for the read of the batch itself.
        while at.version <= last:
            pending = self._pending_commit(at.version, newest)
            if self._stops_at(at, pending):
                return replace(at, barrier=_BEFORE)
            done = at.index + 1 + room.take(pending, at.index + 1)
            if done < len(pending.files):
                return SourceOffset(at.version, done - 1)
            at = SourceOffset(at.version + 1, BASE_INDEX)
        return at

    def committed(self, end: SourceOffset) -> None:
        """Note that a batch is done, and drop what no later one needs.

        Raises:
            DeltaAnalysisError: the stream's metadata has changed there; see `Tracker.evolve`.
        """
        self.forget(end)
        if end.barrier:
            self._go_past(end, self._update().version)

    def forget(self, end: SourceOffset) -> None:
        """Drop what was read of the log before an offset, which no batch needs any more."""
        self._commits = {v: files for v, files in self._commits.items() if v >= end.version}
        if self._state is not None and (not end.is_starting or self._state[0] != end.version):
            self._state = None

    def _between(
        self, start: SourceOffset, end: SourceOffset
    ) -> Iterator[tuple[int, Pending, range]]:
        """What a batch reads: versions, what they have, and which of their files.

        Args:
            start: where it begins.
            end: where it ends.

        Raises:
            DeltaAnalysisError: the end is before the start; and what `latest_offset` raises.
            VersionNotFoundError: the version that the query began with can't be rebuilt any more.
            LogGapError: a commit that the stream needs is gone.
        """
        begin = _begin(start, end)
        self._check_begin(begin)
        # Spark plans a batch again by the offsets in its checkpoint, whatever the table looks like
        # by then.
        if (begin.version, begin.index) > (end.version, end.index):
            raise DeltaAnalysisError(
                f"the stream from {self._log.table} can't go back from {start} to {end}. With "
                "startingVersion=latest this is a query that ended before its first batch was "
                f"done: start a new query, with another checkpointLocation.{self._back_advice()}",
                table=self._log.table,
            )
        at = begin
        if begin.is_starting:
            state = self._pending_state(begin.version)
            yield begin.version, state, _chosen(begin.index + 1, end, state, end.is_starting)
            at = SourceOffset(begin.version + 1, BASE_INDEX)
        if end.is_starting:
            return
        newest = self._update().version if at.version <= end.version else end.version
        for version in range(at.version, end.version + 1):
            if version == end.version and end.index == BASE_INDEX:
                break
            pending = self._pending_commit(version, newest)
            if (version, at.barrier) != (at.version, _BEHIND) and self._changes(version, pending):
                raise DeltaAnalysisError(
                    "[DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA] We could not "
                    "initialize the Delta streaming source schema log because we detected an "
                    "incompatible schema or protocol change while serving a streaming batch from "
                    f"table version {begin.version} to {end.version} of {self._log.table}: version "
                    f"{version} makes one. Let the batch end without schemaTrackingLocation first.",
                    table=self._log.table,
                    version=version,
                )
            first = at.index + 1 if version == at.version else 0
            yield version, pending, _chosen(first, end, pending, version == end.version)

    def _waits(self, start: SourceOffset, newest: int) -> bool:
        """Whether the catalog's answer is older than the stream; said in the log once."""
        was_behind, self._is_behind = self._is_behind, False
        store = governed(self._log.store)
        if store is None or _read_already(start) <= newest:
            return False
        self._check_refused(start)
        self._is_behind = True
        if not was_behind:
            _log.warning("%s. The stream waits for a newer one.", self._old_answer(start, newest))
        return True

    def _old_answer(self, at: SourceOffset, newest: int) -> str:
        store = governed(self._log.store)
        assert store is not None
        return (
            f"the catalog {store.catalog.name} says that {newest} is the newest version of "
            f"{store.table.name}, of which this stream has version {_read_already(at)} by its "
            "checkpoint: the answer is an old one, or the catalog has lost commits"
        )

    def _back_advice(self) -> str:
        # Spark before 4.2 asks for the end of a batch without saying where it begins.
        if governed(self._log.store) is None:
            return ""
        return (
            " With PySpark before 4.2 it may be that the catalog gave an old answer: then remove "
            "the newest file of the checkpoint's folder offsets, which has none of its name in "
            "commits, and start the query again."
        )

    def _check_refused(self, start: SourceOffset) -> None:
        """Refuse the beginning that `initial_offset` could not refuse.

        Raises:
            DeltaError: the query does begin there.
        """
        if self._refused is not None and start == self._refused[0]:
            raise self._refused[1].with_traceback(None)

    @abstractmethod
    def _state_pending(self, snapshot: Snapshot, files: pa.Table) -> Pending:
        """What a version has that is read as a whole.

        Args:
            snapshot: the version.
            files: its live files, in the order in which a stream reads them.
        """

    @abstractmethod
    def _commit_pending(self, commit: ChangeCommit) -> Pending:
        """What a commit has.

        Raises:
            DeltaAnalysisError: the stream can't go past it.
        """

    @abstractmethod
    def _read_commit(self, path: str, version: int, newest: int) -> ChangeCommit:
        """Read a commit.

        Raises:
            FileNotFoundError: it is gone.
        """

    def _not_there(self, version: int, latest: int) -> VersionNotFoundError:
        table = self._log.table
        return VersionNotFoundError(
            f"[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version {version}: the "
            f"stream from {table} begins there, and the latest version is {latest}",
            table=table,
            version=version,
            latest=latest,
        )

    def _check_begin(self, start: SourceOffset) -> None:
        """Refuse, once, to go on from a version whose columns the stream can't show.

        The commits from there on say only what changes after it: rows could be read as what they
        are not. A version that is read as a whole is checked where it is opened.
        """
        stream = self.snapshot
        if not self._begun:
            self._check_refused(start)
        if not self._begun and start == SourceOffset(self._named_start, BASE_INDEX):
            self._check_named()
        if (
            self._begun
            or self._tracker is not None
            or start.is_starting
            or start.version >= stream.version
        ):
            self._begun = True
            return
        try:
            there = self._log.snapshot_at(start.version)
        except DeltaError as exc:
            # Of a version that can't be rebuilt only the names are known, from its files.
            if stream.properties.column_mapping_mode == "none":
                self._begun = True
                return
            raise DeltaAnalysisError(
                "[DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT] Failed to obtain Delta log "
                f"snapshot for the start version {start.version} of the stream from "
                f"{stream.table} when checking column mapping schema changes: {exc}. Please "
                "choose a different start version.",
                table=stream.table,
                version=start.version,
            ) from exc
        self._compare(there.metadata, there.version)
        self._begun = True

    @property
    def _named_start(self) -> int:
        """The version that the options name; -1 where they name none."""
        named = self._options.starting_version
        return named if isinstance(named, int) else -1

    def _check_named(self) -> None:
        """Refuse to begin with a version that is gone, even where data may be lost on the way."""
        log = self._log
        commits = list_log(log.store, log.table, 0, log.snapshot.version).commits
        first = min(commits, default=0)
        if self._named_start < first:
            raise VersionNotFoundError(
                f"[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version "
                f"{self._named_start}: the stream from {log.table} begins there, and the commits "
                f"before {first} are gone. Available versions: [{first}, {log.snapshot.version}].",
                table=log.table,
                version=self._named_start,
                earliest=first,
                latest=log.snapshot.version,
            )

    def _compare(self, then: Metadata, version: int) -> None:
        """Refuse a version whose rows the stream's columns can't show."""
        stream, options = self.snapshot, self._options
        check_same_columns(
            stream.metadata,
            then,
            version,
            self._log.table,
            past=version < stream.version,
            start_is_named=(options.starting_version, options.starting_timestamp) != (None, None),
        )

    def _track(self, start: SourceOffset, newest: int) -> None:
        """Begin the stream's log of metadata, or go past the change that the offset is at."""
        if self._tracker is None:
            if start.barrier:
                raise DeltaAnalysisError(
                    f"the checkpoint of this stream from {self._log.table} is at a change of the "
                    f"table's metadata, in version {start.version}, which the stream tracks: give "
                    "it the option schemaTrackingLocation that it had",
                    table=self._log.table,
                    version=start.version,
                )
            return
        if self._tracker.is_new:
            self._tracker.begin(self._log.snapshot_at(min(start.version, newest)))
        if start.barrier == _BEHIND:
            self._go_past(start, newest)

    def _go_past(self, at: SourceOffset, newest: int) -> None:
        pending = self._pending_commit(at.version, newest)
        if self._tracker is not None and self._changes(at.version, pending):
            self._tracker.evolve(at.version, pending.metadata, pending.protocol)

    def _stops_at(self, at: SourceOffset, pending: Pending) -> bool:
        """Whether a batch ends here because the metadata changes."""
        return at.index == BASE_INDEX and not at.barrier and self._changes(at.version, pending)

    def _changes(self, version: int, pending: Pending) -> bool:
        return self._tracker is not None and self._tracker.stops_at(
            version, pending.metadata, pending.protocol
        )

    def _update(self) -> Snapshot:
        newest = self._log.update()
        # Versions of a table that was made again at the path begin at 0 as well: offsets would go
        # on in the middle of another log.
        if newest.metadata.id != self.snapshot.metadata.id:
            raise DeltaAnalysisError(
                "[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] The streaming query was reading "
                f"from an unexpected Delta table (id = '{newest.metadata.id}'). It used to read "
                f"from another Delta table (id = '{self.snapshot.metadata.id}'): {newest.table} "
                "was deleted and made again while the stream ran. Start a new query, with "
                "another checkpointLocation.",
                table=newest.table,
                expected=self.snapshot.metadata.id,
                found=newest.metadata.id,
            )
        return newest

    def _pending_state(self, version: int) -> Pending:
        """What a version has that is read as a whole."""
        if self._state is None or self._state[0] != version:
            snapshot = self.snapshot
            if snapshot.version != version:
                if version > self._log.snapshot.version:
                    self._check_known(version, self._update().version)
                snapshot = self._log.snapshot_at(version)
                self._compare(snapshot.metadata, version)
            # The offset is a number in this order, so a restart, in another process or of another
            # client, must find the same. Times alone may be equal.
            order = [("modification_time", "ascending"), ("path", "ascending")]
            files = snapshot.file_table.select(FILE_SCHEMA.names).sort_by(order)
            self._state = version, self._state_pending(snapshot, files.cast(FILE_SCHEMA))
        return self._state[1]

    def _pending_commit(self, version: int, newest: int) -> Pending:
        """What one commit has, in its order."""
        found = self._commits.get(version)
        if found is None:
            commit = self._read(version, newest)
            found = self._commits[version] = _NOTHING if commit is None else self._checked(commit)
        return found

    def _checked(self, commit: ChangeCommit) -> Pending:
        if self._tracker is not None:
            pending = self._commit_pending(commit)
            return replace(pending, metadata=commit.metadata, protocol=commit.protocol)
        # Before the files of the commit, which are written for it.
        if commit.metadata is not None:
            self._compare(commit.metadata, commit.version)
        return self._commit_pending(commit)

    def _check_known(self, version: int, newest: int) -> None:
        """Refuse to take a version for lost that the catalog's answer is too old to have.

        A batch that was planned before a restart can't be empty now: its rows would be passed over.

        Raises:
            CatalogError: the answer is older than the version.
        """
        if version > newest and governed(self._log.store) is not None:
            said = self._old_answer(SourceOffset(version + 1, BASE_INDEX), newest)
            raise CatalogError(
                f"{said}. Nothing was read. Start the stream again once the catalog is up to date.",
                table=self._log.table,
                version=version,
                latest=newest,
            )

    def _read(self, version: int, newest: int) -> ChangeCommit | None:
        log = self._log
        try:
            return self._read_commit(commit_path(log.table, version), version, newest)
        except FileNotFoundError as exc:
            self._check_known(version, newest)
            # Lost rows would be lost unnoticed: the user has to say that this is acceptable.
            if not self._options.fail_on_data_loss:
                return None
            commits = list_log(log.store, log.table, 0, newest).commits
            later = min((each for each in commits if each > version), default=newest)
            raise LogGapError(
                f"[DELTA_MISSING_FILES_UNEXPECTED_VERSION] Delta stream cannot resume from version "
                f"{version} of {log.table}: its commit is gone, and the next one is {later}. Log "
                "files may have been deleted by log retention. Start a new query, with another "
                "checkpointLocation, and consider a longer delta.logRetentionDuration; or skip "
                "the missing versions with the option failOnDataLoss=false.",
                table=log.table,
                missing=[version],
            ) from exc


def _read_already(at: SourceOffset) -> int:
    """The newest version of which a stream has read something, by its offset."""
    is_before = at.index == BASE_INDEX and not at.is_starting and not at.barrier
    return at.version - 1 if is_before else at.version


def _chosen(first: int, end: SourceOffset, pending: Pending, is_last: bool) -> range:
    """The files from number `first` on, in the last version up to where the batch ends.

    A version that is lost has none, whatever the batch was planned to take of it.
    """
    count = len(pending.files)
    stop = min(end.index + 1, count) if is_last else count
    return range(first, max(first, stop))


def _begin(start: SourceOffset, end: SourceOffset) -> SourceOffset:
    """Where the batch begins; a first batch that was planned before a restart knows it better.

    A query begins with the version that was the newest then, which is not in its checkpoint. The
    end of its first batch shows it: it lies in that version, or right after it.
    """
    if not start.is_starting or start.index != BASE_INDEX:
        return start
    if end.is_starting:
        return SourceOffset(end.version, BASE_INDEX, is_starting=True)
    if end.index == BASE_INDEX and end.version > 0:
        return SourceOffset(end.version - 1, BASE_INDEX, is_starting=True)
    return start
