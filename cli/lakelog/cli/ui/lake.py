"""What the pages are about: tables below some places, read when they are asked for."""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakelog.cli.files.live_numbers import row_counts, total
from lakelog.cli.report.facts import doctor_facts, facts
from lakelog.cli.secrets import Scrubber
from lakelog.cli.table_options import later, looked_at, open_log, refuse_governed, table_uri
from lakelog.cli.ui.walk import walk
from lakelog.cli.ui.work import Shelf, Work
from lakelog.core.engine.log import commit_times, find_segment, list_log
from lakelog.core.engine.shown import time_text
from lakelog.core.errors import DeltaError
from lakelog.logstores.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from lakelog.core import DeltaLog, Snapshot
    from lakelog.core.engine.log import LogSegment

DAYS: Final = 30
"""Over which versions are counted."""
_DAY: Final = 24 * 60 * 60 * 1000
_FRESH: Final = 10.0
"""Seconds for which the list of tables is taken as it is, at least."""
_REST: Final = 20
"""The same, in the times that a look took."""
_REPORTS: Final = 16
_FILES: Final = 1_000_000
"""Files of all versions that are held."""
_GATHERED: Final = 2
"""Reports that are gathered at a time."""
_LARGE: Final = 64 << 20
"""Bytes of a log from which on it is read alone: replaying takes several times as much memory."""
READING_ERRORS: Final = (DeltaError, LogStoreError, OSError, ValueError)
"""What a table that is broken, gone or out of reach raises."""


class Known(NamedTuple):
    """A table that was found."""

    key: str
    """Its name in addresses: a digest of its URI, which may be long and hold anything."""
    uri: str
    """Or its name in a catalog."""
    name: str
    """Its URI from the place on where it was found; its whole name in a catalog."""


@dataclass(slots=True)
class Row:
    """A table in the list; numbers are None until they were looked at."""

    table: Known
    newest: Hashable = None
    """Which version the numbers are of."""
    version: int | None = None
    time: str | None = None
    rows: int | None = None
    rows_at_least: bool = False
    """Some files have no row count."""
    files: int | None = None
    size: int | None = None
    by_day: list[int] = field(default_factory=list)
    """Versions on each of the last days, the last of which is today (UTC)."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    trouble: str | None = None
    looked_at: bool = False


@dataclass(slots=True)
class TableList:
    """The tables, and how far the look at them is."""

    rows: list[Row]
    left_out: list[str]
    doing: str | None
    """What is being done; None when all tables were looked at."""


class _Stamp(NamedTuple):
    identity: Hashable
    """What tells a version from that of another table, which took the place of the first."""
    turn: AbstractContextManager[Any]
    """Within it the version may be read."""
    segment: LogSegment | None


class Gathered(NamedTuple):
    """A report, and of which version it is."""

    identity: Hashable
    work: Work[dict[str, Any]]
    older: dict[str, Any] | None
    """The report before it, to show meanwhile."""


class Lake:
    """The tables below some places. Safe for threads; nothing in it writes to a table."""

    def __init__(self, places: Sequence[str], conf: Mapping[str, str]) -> None:
        """Look at nothing yet.

        Args:
            places: URIs of tables, or of folders that hold tables; names of catalogs, of their
                schemas and tables.
            conf: the user's; chooses the stores.
        """
        self.places: list[str] = list(places)
        self.conf: dict[str, str] = dict(conf)
        self.scrubber: Scrubber = Scrubber(conf)
        self._rows: dict[str, Row] = {}
        self._left_out: list[str] = []
        self._look: Work[None] | None = None
        self._looked = self._took = 0.0
        self._lock, self._large = threading.Lock(), threading.Lock()
        self._gathering = threading.BoundedSemaphore(_GATHERED)
        self._reports: Shelf[Gathered] = Shelf(_REPORTS)
        self._snapshots: Shelf[Snapshot] = Shelf(_FILES)
        self._of_paths: set[str] = set()
        """Tables that no catalog governs, which no commit changes."""

    def require_places(self) -> None:
        """Make sure that the places are there; what is below them is not looked at.

        Raises:
            click.UsageError: one is no URI.
            LogStoreError: the conf does not lead to a store, or its storage can't be reached.
            OSError: nothing is there.
            DeltaError: a catalog has no such schema or table, or can't be asked.
        """
        for place in self.places:
            walk(place, self.conf, lambda _: None).require()

    def tables(self, seconds: float) -> TableList:
        """The tables as they were looked at last; a new look begins if that was long ago.

        Args:
            seconds: how long to wait for the look to end, at most.
        """
        with self._lock:
            work = self._look
            # A look at many tables of a remote storage is not repeated as often.
            rest = max(_FRESH, _REST * self._took)
            if work is None or (work.is_done() and time.monotonic() - self._looked > rest):
                work = self._look = Work(self._look_around)
        done = work.is_done(seconds)
        with self._lock:
            rows = sorted(self._rows.values(), key=lambda each: each.table.name)
            return TableList(rows, list(self._left_out), None if done else work.doing)

    def table(self, key: str) -> Known | None:
        """The table of a key in an address, if it was found."""
        with self._lock:
            row = self._rows.get(key)
        if row is None:
            # After a restart an address may be older than the first look.
            self.tables(_FRESH)
            with self._lock:
                row = self._rows.get(key)
        return None if row is None else row.table

    def log(self, table: Known) -> DeltaLog:
        """The log of a table; nothing is read yet."""
        return open_log(table.uri, self.conf)

    def newest(self, log: DeltaLog) -> int:
        """The newest version, also of a log with holes.

        Raises:
            TableNotFoundError: there is no table, or no longer.
            UnsupportedFeatureError: it is a path, and a catalog governs the table: what lies in
                the folder is not what its versions are.
        """
        try:
            version = find_segment(log.store, log.table).version
        except FileNotFoundError:
            raise
        except DeltaError:
            latest = list_log(log.store, log.table).latest()
            if latest is None:
                raise
            version = latest
        if log.table not in self._of_paths:
            refuse_governed(log.store, log.table, version)
            self._of_paths.add(log.table)
        return version

    def snapshot(self, log: DeltaLog, version: int, earlier: Snapshot | None = None) -> Snapshot:
        """A version of a table, also of one whose rows lakelog can't read.

        Args:
            log: the table.
            version: which one.
            earlier: an older version; where few commits are between, no more is read.

        Raises:
            DeltaError: there is no such version, or its log is damaged.
        """
        stamp = self._stamp(log, version)
        key = (log.table, version, stamp.identity)
        found = self._snapshots.get(key)
        if found is None:
            with stamp.turn:
                # Another page may have had the turn before.
                found = self._snapshots.get(key)
                if found is None and earlier is not None and stamp.segment is not None:
                    found = later(log, earlier, stamp.segment)
                found = found or looked_at(log, version, None)
                self._snapshots.put(key, found, found.num_files + 1)
        return found

    def report(self, log: DeltaLog, version: int) -> Gathered:
        """The report of a table's newest version: gathered, or being gathered.

        While one is gathered no other is begun, however many versions come.
        """
        stamp = self._stamp(log, version)
        identity = (version, stamp.identity)

        def gather(tell: Callable[[str], None]) -> dict[str, Any]:
            with stamp.turn:
                found: dict[str, Any] = self.scrubber.data(facts(log, (), tell))
            return found

        with self._lock:
            held = self._reports.get(log.table)
            if held is not None and not held.work.is_done():
                return held
            failed = held is None or held.work.error is not None
            if held is None or failed or held.identity != identity:
                older = None if held is None or failed else held.work.value()
                held = Gathered(identity, Work(gather, self._gathering), older)
                self._reports.put(log.table, held)
        return held

    def _stamp(self, log: DeltaLog, version: int) -> _Stamp:
        try:
            segment = find_segment(log.store, log.table, version)
        except DeltaError:
            return _Stamp(None, nullcontext(), None)
        checkpoint, last = segment.checkpoint, segment.last_file
        size = sum(each.length for each in segment.commits)
        size += checkpoint.size_in_bytes if checkpoint else 0
        identity = (last.modification_time, last.length)
        turn = self._large if size > _LARGE else nullcontext()
        return _Stamp(identity, turn, segment)

    def _look_around(self, tell: Callable[[str], None]) -> None:
        began = time.monotonic()
        seen, left_out, gone = list[Row](), list[str](), True
        for place in self.places:
            try:
                look = walk(place, self.conf, tell)
                seen += [self._row(place, uri) for uri in look.tables()]
                left_out += look.left_out
                gone = gone and not look.left_out
            except READING_ERRORS as error:
                left_out.append(f"{place}: {error}")
                gone = False
        with self._lock:
            self._left_out = [self.scrubber.text(each) for each in left_out]
            if gone:
                self._rows = {each.table.key: each for each in seen}
        for at, row in enumerate(seen, 1):
            tell(f"looking at {row.table.name}: table {at:,} of {len(seen):,}")
            try:
                self._look_at(row)
            except READING_ERRORS as error:
                row.trouble = self.scrubber.text(str(error))
            row.looked_at = True
        ended = time.monotonic()
        self._looked, self._took = ended, ended - began

    def _row(self, place: str, uri: str) -> Row:
        key = hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        below = uri.removeprefix(table_uri(place)).strip("/")
        name = self.scrubber.text(below or uri.rpartition("/")[2] or uri)
        with self._lock:
            return self._rows.setdefault(key, Row(Known(key, uri, name)))

    def _look_at(self, row: Row) -> None:
        log = self.log(row.table)
        version, today = self.newest(log), int(time.time() * 1000) // _DAY
        stamp = self._stamp(log, version)
        identity = (version, today, stamp.identity)
        if row.newest == identity:
            return
        listing = list_log(log.store, log.table)
        days = [today - each // _DAY for each in commit_times(listing).values()]
        row.by_day = [days.count(age) for age in reversed(range(DAYS))]
        row.version, row.trouble = version, None
        try:
            with stamp.turn:
                snapshot = looked_at(log, None, None)
                row.rows, unknown = total(row_counts(snapshot.file_table))
                row.rows_at_least = bool(unknown)
                row.files, row.size = snapshot.num_files, snapshot.size_in_bytes
                row.time = time_text(snapshot.timestamp)
        finally:
            row.findings = self.scrubber.data(doctor_facts(log, lambda _: None)["findings"])
        row.newest = identity
