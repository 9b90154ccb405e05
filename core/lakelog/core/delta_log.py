"""The log of one table: its newest state, older ones, and the way to write."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, TypeVar

from lakelog.core.clock import Clock, SystemClock
from lakelog.core.commit_file import read_commit
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError, DeltaError, TableNotFoundError
from lakelog.core.log_budget import LogBudget
from lakelog.core.log_identity import still_there
from lakelog.core.log_segment import list_log
from lakelog.core.paths import normalize_table_uri
from lakelog.core.protocol import check_readable
from lakelog.core.protocol_access import ProtocolAccess
from lakelog.core.replay import State, advance, load_state, read_commits
from lakelog.core.snapshot import Snapshot
from lakelog.logstores import Scope
from lakelog.logstores._log_limit import log_limit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

    from lakelog.core.checksums import VersionChecksum
    from lakelog.core.commit_file import Commit
    from lakelog.core.history import HistoryEntry
    from lakelog.core.replayer import Replayer
    from lakelog.core.transaction import OptimisticTransaction
    from lakelog.logstores._contract import LogStore

__all__ = ["DeltaLog"]

_logger = logging.getLogger(__name__)
T = TypeVar("T")

# After so many new commits found one by one, a listing is cheaper than further probes.
_PROBES = 8
# So far behind, a checkpoint is likely to be nearer than all the commits.
_FAR_BEHIND = 100
# Within so many seconds of seeing a commit in far storage, it is taken to be there still: a writer
# that commits again and again would pay for a look each time. Near storage is always looked at.
_TRUSTED_SECONDS = 1.0


class DeltaLog(ProtocolAccess):
    """One table, by its path. It need not exist yet.

    Safe for threads. There is no cache beyond this object: two of them know nothing of each
    other, as if in two processes.
    """

    def __init__(
        self,
        table: str,
        store: LogStore,
        conf: DeltaConf,
        clock: Clock,
        replayer: Replayer | None = None,
    ) -> None:
        """Put the parts together; `for_table` is the usual way."""
        self._table = table
        self._store = store
        self._conf = conf
        self._clock = clock
        self._replayer = replayer
        self._snapshot: Snapshot | None = None
        self.last_checksum: tuple[int, VersionChecksum] | None = None
        """Of the newest version that was committed here, if it was computed; for the core."""
        self._seen_at = 0.0
        """When the snapshot's commit was last known to be in the log; of the monotonic clock."""
        self._lock = threading.RLock()

    @classmethod
    def for_table(
        cls,
        uri: str | os.PathLike[str],
        conf: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        replayer: Replayer | None = None,
    ) -> DeltaLog:
        """Open the log of a table; nothing is read yet.

        Args:
            uri: where the table is, or shall be.
            conf: the user's whole Spark conf; it chooses the store.
            clock: the machine's if `None`.
            replayer: who replays logs that are too large for this process; nobody if `None`.

        Raises:
            LogStoreConfError: the conf does not lead to a store.
        """
        from lakelog.logstores import log_store_for

        table = normalize_table_uri(uri)
        settings = DeltaConf.of(conf)
        log_limit(settings)
        store = log_store_for(table, settings)
        return cls(table, store, settings, clock or SystemClock(), replayer)

    @property
    def table(self) -> str:
        """The table's URI, normalised."""
        return self._table

    @property
    def store(self) -> LogStore:
        """The store of the log."""
        return self._store

    @property
    def conf(self) -> DeltaConf:
        """The conf it was opened with."""
        return self._conf

    @property
    def clock(self) -> Clock:
        """The time it goes by."""
        return self._clock

    @property
    def snapshot(self) -> Snapshot:
        """The newest version that is known here; loaded on first use, then only by `update`.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: reading the table needs a feature that we don't have.
            CorruptLogError: the log is damaged.
        """
        with self._lock:
            if self._snapshot is None:
                began = self._clock.monotonic()
                self._snapshot = self._wrap(self._load())
                self._seen_at = began
            return self._snapshot

    @property
    def known_version(self) -> int | None:
        """The newest version that is known here; None before anything was read. Reads nothing."""
        with self._lock:
            return None if self._snapshot is None else self._snapshot.version

    def update(self) -> Snapshot:
        """Read what was committed since, and nothing else; give the newest snapshot.

        Where another table stands at the path by now, or log cleanup has removed the version that
        was known, everything is read anew.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: reading the table needs a feature that we don't have.
            CorruptLogError: the log is damaged.
        """
        with self._lock:
            known = self._snapshot
            if known is None:
                return self.snapshot
            commits = self._probe(known.version + 1)
            # Looked at after the probe: what was read before belongs to the same log.
            if not self._is_current(known, has_news=bool(commits)):
                self._snapshot = None
                return self.snapshot
            if not commits:
                return known
            state = advance(known.state, commits)
            if len(commits) == _PROBES:
                state = self._catch_up(state)
            self._snapshot = self._wrap(state, checked=known.state)
            return self._snapshot

    def _load(self, version: int | None = None) -> State:
        use = self._conf.get_bool("deltaLog.minorCompaction.useForReads", True)
        return load_state(
            self._store, self._table, version, use_compacted=use, replayer=self._replayer
        )

    def _is_current(self, known: Snapshot, *, has_news: bool) -> bool:
        """Whether the known version is still in the log, so that what follows it is ours."""
        now = self._clock.monotonic()
        far = self._store.capabilities.exclusive_create == Scope.CLUSTER
        if far and not has_news and now - self._seen_at < _TRUSTED_SECONDS:
            return True
        self._seen_at = now
        return still_there(self._store, self._table, known.version, known.commit_info)

    def _probe(self, version: int) -> list[Commit]:
        """Read commits from `version` on until one is missing, or until listing is cheaper."""
        commits: list[Commit] = []
        while len(commits) < _PROBES:
            try:
                commits.append(read_commit(self._store, self._table, version + len(commits)))
            except FileNotFoundError:
                break
        return commits

    def _catch_up(self, state: State) -> State:
        listing = list_log(self._store, self._table, state.version + 1)
        latest = listing.latest()
        if latest is None or latest <= state.version:
            return state
        newer = range(state.version + 1, latest + 1)
        whole = all(version in listing.commits for version in newer)
        if not whole or (len(newer) > _FAR_BEHIND and listing.checkpoints):
            return self._load()
        LogBudget.of(self._store).check_files(listing.commits[version] for version in newer)
        paths = {version: listing.commits[version].path for version in newer}
        commits = read_commits(self._store, self._table, paths)
        return advance(state, commits, listing.commits[latest].modification_time)

    def after_commit(self, commit: Commit) -> None:
        """Take over a commit that this process made, without reading it back.

        Does nothing unless it follows the known snapshot directly; `update` then finds it.
        """
        with self._lock:
            known = self._snapshot
            if known is not None and known.version + 1 == commit.version:
                self._snapshot = self._wrap(advance(known.state, [commit]), checked=known.state)
                self._seen_at = self._clock.monotonic()

    def table_exists(self) -> bool:
        """Whether there is a table that can be read at all, of whatever features."""
        try:
            return list_log(self._store, self._table).latest() is not None
        except (FileNotFoundError, NotADirectoryError):
            return False

    def snapshot_at(
        self, version: int | None = None, timestamp: int | str | datetime | None = None
    ) -> Snapshot:
        """The table as it was.

        Args:
            version: which version.
            timestamp: or the newest version that was committed at or before this time: epoch
                milliseconds, a datetime (UTC where it has no zone), or ISO 8601 text (likewise).

        Raises:
            VersionNotFoundError: no such version, or it can't be rebuilt any more.
            TimestampOutOfRangeError: the time is before the first commit or after the last.
            DeltaAnalysisError: both are given, neither, or the text is no time.
        """
        if (version is None) == (timestamp is None):
            raise DeltaAnalysisError(
                "give either version or timestamp to read an older state of "
                f"{self._table}, not {'both' if version is not None else 'neither'}",
                table=self._table,
            )
        if timestamp is not None:
            from lakelog.core.history import version_at

            version = version_at(self.update(), timestamp)
        if not isinstance(version, int):
            raise DeltaAnalysisError(
                f"{version!r} is no version of {self._table}: give an int", table=self._table
            )
        known = self._snapshot
        if known is not None and known.version == version:
            return known
        return self._wrap(self._load(version))

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What was done to the table, newest first.

        Args:
            limit: no more entries than this.

        Raises:
            TableNotFoundError: there is no table.
        """
        from lakelog.core.history import read_history
        from lakelog.core.in_commit_time import in_commit_since

        newest = self.update()
        since = in_commit_since(newest.metadata)
        # Where they are off, the times that older commits carry count for nothing.
        first = newest.version + 1 if since is None else since[0]
        return read_history(self._store, self._table, newest.version, limit, times_since=first)

    def checkpoint(self, version: int | None = None) -> None:
        """Write a checkpoint, so that opening the table needs no older commits.

        After one of the newest version, what has expired of the log is deleted
        (`lakelog.core.log_cleanup`); where that fails, it is logged.

        Args:
            version: of which version; the newest if `None`.

        Raises:
            OSError: it could not be written. The table is as it was.
        """
        from lakelog.core.checkpoints import write_checkpoint

        newest = self.update()
        snapshot = newest if version in (None, newest.version) else self.snapshot_at(version)
        write_checkpoint(snapshot, self._clock)
        if snapshot is newest:
            self._clean(snapshot)

    def generate_symlink_manifest(self) -> list[str]:
        """Write lists of the data files of the newest version, for Presto, Athena and the like.

        With the table property `delta.compatibility.symlinkFormatManifest.enabled` commits keep
        them up to date.

        Returns:
            The manifests, relative to the table's folder, sorted.

        Raises:
            TableNotFoundError: there is no table.
            DeltaAnalysisError: the table has deletion vectors or column mapping.
            OSError: the storage refused; some of the manifests may be old ones still.
        """
        from lakelog.core.symlink_manifest import generate_symlink_manifest

        return generate_symlink_manifest(self.update())

    def _clean(self, snapshot: Snapshot) -> None:
        from lakelog.core.log_cleanup import clean_log

        try:
            clean_log(snapshot, self._clock)
        except (OSError, DeltaError):
            _logger.warning("%s: cleaning up the log failed", self._table, exc_info=True)

    def start_transaction(self) -> OptimisticTransaction:
        """Begin a transaction on the newest version; on none, where the table is to be made."""
        from lakelog.core.transaction import OptimisticTransaction

        try:
            snapshot: Snapshot | None = self.update()
        except TableNotFoundError:
            snapshot = None
        return OptimisticTransaction(self, snapshot)

    def with_new_transaction(self, work: Callable[[OptimisticTransaction], T]) -> T:
        """Run something with a new transaction, which is the thread's active one meanwhile.

        Args:
            work: reads, changes and commits the transaction; without a commit nothing happens.

        Returns:
            What `work` returned.

        Raises:
            DeltaAnalysisError: a transaction is active in this thread already.
        """
        from lakelog.core.active_transaction import run_active

        return run_active(self.start_transaction(), work)

    @property
    def is_commit_lock_enabled(self) -> bool:
        """Whether commits take a lock of the process or of the host.

        `spark.databricks.delta.commitLock.enabled` where it is set, else what the store needs.

        Raises:
            UnsafeLogStoreError: the store excludes nobody.
        """
        from lakelog.core.commit_lock import LockKind, lock_for

        return lock_for(self._store, self._table, self._conf).kind is not LockKind.NONE

    def lock_commit_if_enabled(self) -> AbstractContextManager[None]:
        """The lock that a commit takes: to hold while doing what no commit may interrupt.

        Not reentrant: a transaction that commits inside waits for itself.

        Raises:
            UnsafeLogStoreError: the store excludes nobody.
        """
        from lakelog.core.commit_lock import held, lock_for

        return held(lock_for(self._store, self._table, self._conf), self._table)

    def _wrap(self, state: State, checked: State | None = None) -> Snapshot:
        snapshot = Snapshot(self._table, self._store, self._conf, self._clock, state)
        same = checked is not None and (
            state.protocol is checked.protocol and state.metadata is checked.metadata
        )
        if not same:
            try:
                check_readable(state.protocol, self._table, state.metadata)
            except DeltaError:
                raise
            except (ValueError, KeyError, TypeError):
                # Which features are in use depends on the schema; say so if that is the reason.
                _ = snapshot.schema
                raise
        return snapshot

    def __repr__(self) -> str:
        """`DeltaLog(/lake/flights)`."""
        return f"DeltaLog({self._table})"
