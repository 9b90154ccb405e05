"""The log of one table: its newest state, older ones, and what keeps it short."""

from __future__ import annotations

import contextlib
import logging
import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.arguments import read_arguments
from lakelog.core.catalogs.names import known_catalogs, table_name
from lakelog.core.catalogs.refusals import governed, may_maintain, refuse_path
from lakelog.core.clock import Clock, SystemClock
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError, DeltaError
from lakelog.core.features.protocol import check_readable, check_writable
from lakelog.core.forks import reentrant_lock_of
from lakelog.core.log.budget import LogBudget
from lakelog.core.log.commit_identity import is_identifiable
from lakelog.core.log.news import read_news
from lakelog.core.log.segment import list_log
from lakelog.core.paths import normalize_table_uri
from lakelog.core.progress import progress_callback
from lakelog.core.state.replay import State, advance, load_state, read_commits
from lakelog.core.state.snapshot import Snapshot
from lakelog.core.telemetry.catalogue import CHECKPOINT
from lakelog.core.telemetry.switch import observing
from lakelog.logstores.limits import log_limit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import Any, Self

    from lakelog.core.actions import Protocol
    from lakelog.core.log.commit_file import Commit
    from lakelog.core.log.commit_history import HistoryEntry
    from lakelog.core.progress import GivenProgress
    from lakelog.core.state.checksums import VersionChecksum
    from lakelog.core.state.replayer import Replayer
    from lakelog.core.telemetry.switch import Seen
    from lakelog.logstores.contract import LogStore

_logger = logging.getLogger("lakelog")

# After this many new commits found one by one, a listing is cheaper than further probes.
_PROBES = 8
# This far behind, a checkpoint is likely to be nearer than all the commits.
_FAR_BEHIND = 100
# With so many unread commits in memory, a checkpoint is read instead.
_BEARABLE = 1000
# For this many seconds after a commit was seen in remote storage it is assumed to be there still: a
# writer that commits again and again would pay for a look each time. Local storage is always read.
_TRUSTED_SECONDS = 1.0
# For so long after another writer's commit was met one more is to be expected.
_COMPANY_SECONDS = 5.0
# After so many commits behind what was known by itself, the next one looks: a writer that never
# does is a round trip ahead of all others, who would never meet a version that is free.
_BLIND_COMMITS = 8
# Of a commit that took long, as the first of a process does, it is not known when in that time the
# storage made it.
_LONGEST_CREATE = 0.1


class TableLog:
    """The reading half of `DeltaLog`: one table, by its path. It need not exist yet.

    Safe for threads. There is no cache beyond this object: two of them know nothing about each
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
        """Internal, for the core: of the newest version committed here, if it was computed."""
        self.run_bins: Callable[[int, Callable[[], Any]], Any] | None = None
        """Internal, for engines: `RunBins` of OPTIMIZE, by which any command on this log rewrites
        bins; `None` for threads of this process."""
        self._seen_at = 0.0
        """When the snapshot's commit was last known to be in the log; of the monotonic clock."""
        self._met_others_at = -math.inf
        """When another writer's commit was met last, or a commit failed; of the monotonic clock."""
        self._blind = 0
        """Transactions that have begun at the known version since the last look."""
        self._made: tuple[int, float] = (-1, -math.inf)
        """The version that was created here last, and until when that counts as a look at it."""
        self._bearable = _BEARABLE
        self._looks = self._looked = 0
        """How often `update` has begun to look for what is new, and the last that went well."""
        self._lock = reentrant_lock_of(self)

    @classmethod
    def for_table(
        cls,
        uri: str | os.PathLike[str],
        conf: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        replayer: Replayer | None = None,
    ) -> Self:
        """Open the log of a table; nothing is read yet.

        Args:
            uri: where the table is, or will be.
            conf: the user's whole Spark conf; it chooses the store.
            clock: the machine's if `None`.
            replayer: replays logs that are too large for this process; `None` for no such help.

        Raises:
            LogStoreConfError: the conf does not lead to a store.
        """
        from lakelog.logstores import log_store_for

        settings = DeltaConf.from_mapping(conf)
        log_limit(settings)
        time = clock or SystemClock()
        name = table_name(uri, settings.derived(known_catalogs))
        if name is not None:
            from lakelog.core.catalogs.resolution import governed_store

            table, store = governed_store(name, settings, time)
            return cls(table, store, settings, time, replayer)
        table = normalize_table_uri(uri, settings)
        return cls(table, log_store_for(table, settings), settings, time, replayer)

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

    @cached_property
    def is_governed(self) -> bool:
        """Internal, for the core: whether a catalog governs the table."""
        return governed(self._store) is not None

    @cached_property
    def decides_afar(self) -> bool:
        """Internal, for the core: see `Capabilities`."""
        return self._store.capabilities.decides_afar

    @property
    def clock(self) -> Clock:
        """The clock used for timestamps and waits."""
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

    @property
    def known_snapshot(self) -> Snapshot | None:
        """Internal, for the core: what is known, even while another thread reads what is new."""
        return self._snapshot

    def update(self) -> Snapshot:
        """Read what was committed since, and nothing else; return the newest snapshot.

        Where the path now holds another table, or log cleanup has removed the version that was
        known, everything is read again. Threads that ask while one of them is reading are all
        served by the next look.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: reading the table needs a feature that we don't have.
            CorruptLogError: the log is damaged.
        """
        before = self._looks
        with self._lock:
            known = self._snapshot
            if known is not None and self._looked > before:
                # Another thread began to look after this one had asked, and is done.
                return known
            self._looks = now = self._looks + 1
            found = self._look()
            self._looked = now
            return found

    def _look(self) -> Snapshot:
        self._blind = 0
        known = self._snapshot
        if known is None:
            return self.snapshot
        if self._is_doubted and not is_identifiable(known.commit_info, known.state.timestamp):
            self._snapshot = None
            return self.snapshot
        commits, is_current = self._news(known)
        if commits:
            self._met_others_at = self._clock.monotonic()
        if not is_current:
            self._snapshot = None
            return self.snapshot
        state = advance(known.state, commits)
        if len(commits) == _PROBES:
            state = self._catch_up(state)
        if state.files.held >= self._bearable:
            state = self._lighter(state)
        if state is known.state:
            return known
        self._snapshot = self._wrap(state, known)
        return self._snapshot

    def known_alone(self) -> Snapshot | None:
        """Internal, for the core: what is known, where nothing newer is to be expected.

        That is on remote storage, a moment after the version was seen there, where no other writer
        was met for a while. Asks nothing; `None` where a look is due.
        """
        known, now = self._snapshot, self._clock.monotonic()
        is_due = (
            not self.decides_afar
            or now - self._seen_at >= _TRUSTED_SECONDS
            or now - self._met_others_at < _COMPANY_SECONDS
            or self._blind >= _BLIND_COMMITS
        )
        if known is None or is_due:
            return None
        self._blind += 1
        return known

    def note_commit(self, made: tuple[int, float] | None) -> None:
        """Internal, for the core: note how a commit through this log went.

        Args:
            made: the version that its create made, and how many seconds that took; `None` where
                another writer's commit was met, or it failed.
        """
        now = self._clock.monotonic()
        if made is None:
            self._met_others_at = now
        else:
            self._made = made[0], now + min(made[1], _LONGEST_CREATE)

    @read_arguments
    def was_just_made(self, version: int) -> bool:
        """Internal, for the core: whether this process created a version a moment ago.

        A moment is what the create took. A look takes as long, and what it saw is then as old.
        """
        made, until = self._made
        return made == version and self._clock.monotonic() < until

    def doubt(self) -> None:
        """Internal, for engines: let the next `update` look whether the table is still the same.

        It does so by itself unless it looked a moment ago: opening a table again must never give
        its old state.
        """
        with self._lock:
            self._seen_at = -math.inf

    @property
    def _is_doubted(self) -> bool:
        return self._seen_at == -math.inf

    @property
    def held_files(self) -> int:
        """Internal, for engines: how many files of the known version are in memory."""
        known = self._snapshot
        return 0 if known is None else known.held_files

    def _load(self, version: int | None = None) -> State:
        use = self._conf.read(keys.COMPACTION)
        return load_state(
            self._store, self._table, version, use_compacted=use, replayer=self._replayer
        )

    def _news(self, known: Snapshot) -> tuple[list[Commit], bool]:
        """The commits since, and whether the known version is still in the log."""
        now = self._clock.monotonic()
        commits, seen = read_news(
            self._store,
            self._table,
            known.version,
            known.commit_info,
            modified=known.state.timestamp,
            most=_PROBES,
            trusted=self.decides_afar and now - self._seen_at < _TRUSTED_SECONDS,
            at_once=self.decides_afar,
        )
        if seen is None:
            return commits, True
        self._seen_at = now
        return commits, seen

    def _catch_up(self, state: State) -> State:
        listing = list_log(self._store, self._table, state.version + 1)
        latest = listing.latest()
        if latest is None or latest <= state.version:
            return state
        newer = range(state.version + 1, latest + 1)
        whole = all(version in listing.commits for version in newer)
        if not whole or (len(newer) > _FAR_BEHIND and listing.checkpoints):
            return self._load()
        LogBudget.from_store(self._store).check_files(listing.commits[version] for version in newer)
        paths = {version: listing.commits[version].path for version in newer}
        commits = read_commits(self._store, self._table, paths)
        return advance(state, commits, listing.commits[latest].modification_time)

    def _lighter(self, state: State) -> State:
        """The same state, read from the newest checkpoint.

        Who only goes from version to version, as a stream does, never asks for the files: without
        this the commits of all versions would stay in memory.
        """
        files = state.files
        # Only memory is at stake: what is known stays right.
        with contextlib.suppress(DeltaError, OSError):
            # Without a checkpoint among the commits that are held, the same ones would be read.
            first = state.version - files.held + 1
            if list_log(self._store, self._table, first, state.version).checkpoints:
                reloaded = self._load(state.version)
                # The path may have become another table's since the commits were read.
                if reloaded.metadata.id == state.metadata.id:
                    files = files.lighter(reloaded.files)
        # A log without checkpoints is not listed again and again.
        self._bearable = max(_BEARABLE, 2 * files.held)
        return replace(state, files=files)

    def after_commit(self, commit: Commit) -> None:
        """Take over a commit that this process made, without reading it back.

        Internal, for the core. Does nothing unless it follows the known snapshot directly;
        `update` then finds it.
        """
        with self._lock:
            known = self._snapshot
            if known is not None and known.version + 1 == commit.version:
                self._snapshot = self._wrap(advance(known.state, [commit]), known)
                self._seen_at = self._clock.monotonic()

    def may_hold(self, txn_id: str, versions: range) -> bool:  # noqa: ARG002
        """Internal, for the core: whether one of some versions may hold a transaction.

        None does before this process has committed it.
        """
        return False

    def table_exists(self) -> bool:
        """Whether there is a table at all, whatever features it has."""
        try:
            return list_log(self._store, self._table).latest() is not None
        except (FileNotFoundError, NotADirectoryError):
            return False

    @read_arguments
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
            DeltaAnalysisError: both are given, or neither, or the text is not a time.
        """
        if (version is None) == (timestamp is None):
            raise DeltaAnalysisError(
                "give either version or timestamp to read an older state of "
                f"{self._table}, not {'both' if version is not None else 'neither'}",
                table=self._table,
            )
        if timestamp is not None:
            from lakelog.core.state.version_at_time import version_at

            version = version_at(self.update(), timestamp)
        assert version is not None
        known = self._snapshot
        if known is not None and known.version == version:
            return known
        return self._wrap(self._load(version))

    @read_arguments
    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What was done to the table, newest first.

        Args:
            limit: no more entries than this.

        Raises:
            TableNotFoundError: there is no table.
        """
        from lakelog.core.log.commit_history import read_history

        newest = self.update()
        since = newest.terms.in_commit_since
        # Where they are off, the times that older commits carry are ignored.
        first = newest.version + 1 if since is None else since[0]
        return read_history(self._store, self._table, newest.version, limit, times_since=first)

    @read_arguments
    def checkpoint(self, version: int | None = None, progress: GivenProgress = None) -> None:
        """Write a checkpoint, so that opening the table needs no older commits.

        After a checkpoint of the newest version, expired files of the log are deleted
        (`lakelog.core.checkpoints.log_cleanup`); a failure to do so is logged.

        Args:
            version: of which version; the newest if `None`.
            progress: called now and then with how many actions are written; or `auto` for a bar.

        Raises:
            OSError: it could not be written. The table is unchanged.
        """
        observing(
            self._conf,
            CHECKPOINT,
            self._table,
            lambda seen: self._checkpoint(seen, version, progress),
        )

    def _checkpoint(self, seen: Seen, version: int | None, progress: GivenProgress) -> None:
        from lakelog.core.checkpoints.write_checkpoint import write_checkpoint

        with progress_callback(progress) as report:
            newest = self.update()
            snapshot = newest if version in (None, newest.version) else self.snapshot_at(version)
            seen.note(version=snapshot.version)
            write_checkpoint(snapshot, self._clock, report)
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
            OSError: the storage refused; some of the manifests may still be old ones.
        """
        from lakelog.core.checkpoints.symlink_manifest import generate_symlink_manifest

        return generate_symlink_manifest(self.update())

    def _clean(self, snapshot: Snapshot) -> None:
        from lakelog.core.checkpoints.log_cleanup import clean_log

        if not may_maintain(self._store):
            return
        try:
            clean_log(snapshot, self._clock)
        except (OSError, DeltaError):
            _logger.warning("%s: cleaning up the log failed", self._table, exc_info=True)

    def protocol_read(self, protocol: Protocol | None = None) -> None:
        """Check that this client may read the table. Opening a snapshot does it by itself.

        Args:
            protocol: one to check instead of the table's; the metadata is the table's either way.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: a reader version or feature that we do not have; names it,
                and says what to do.
            CorruptLogError: the versions do not match the lists of features.
        """
        snapshot = self.snapshot
        check_readable(protocol or snapshot.protocol, self._table, snapshot.metadata)

    def protocol_write(self, protocol: Protocol | None = None) -> None:
        """Check that this client may write the table. A commit does it by itself, and first.

        Args:
            protocol: one to check instead of the table's; the metadata is the table's either way.

        Raises:
            TableNotFoundError: there is no table.
            UnsupportedFeatureError: a version or feature that we do not have, or that the
                metadata has enabled; names it, and says what to do.
            CorruptLogError: the versions do not match the lists of features.
        """
        snapshot = self.snapshot
        check_writable(protocol or snapshot.protocol, snapshot.metadata, self._table)

    def _wrap(self, state: State, known: Snapshot | None = None) -> Snapshot:
        same = known is not None and (
            state.protocol is known.protocol and state.metadata is known.metadata
        )
        terms = known.terms if known is not None and same else None
        snapshot = Snapshot(self._table, self._store, self._conf, self._clock, state, terms)
        if not same:
            try:
                check_readable(state.protocol, self._table, state.metadata)
            except DeltaError:
                raise
            except (ValueError, KeyError, TypeError):
                # Which features are in use depends on the schema; say so if that is the reason.
                _ = snapshot.schema
                raise
            refuse_path(self._store, state.protocol, state.metadata, self._table)
        return snapshot

    def __repr__(self) -> str:
        """`DeltaLog(/lake/flights)`."""
        return f"{type(self).__name__}({self._table})"
