"""The log of a table that a catalog governs, as a store shows it.

The core reads and makes versions by the name `<v>.json`. Here that name means what the catalog
says: for a ratified commit that is not published yet, the staged file; for an older one, the
published file; above the catalog's newest version, nothing, whatever lies in the folder.

    write <v>.json   stage ──► ratify     and, once nobody waits: publish in order ──► report
    read  <v>.json   the catalog's file if it names one, else the published one
    list             published files merged with the catalog's, capped at its newest version

A create whose outcome is not known is looked at: first by the name of the staged file, here; then
by the commit's txnId, by the core's loop, which reads `<v>.json` as it does of any store.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.catalogs.contract import (
    NameTakenError,
    RatifiedCommit,
    TooManyUnpublishedError,
    UnansweredError,
    VersionTakenError,
)
from lakelog.core.catalogs.one_call import forget_loads, said
from lakelog.core.catalogs.published import REACHING, PublishedCommits
from lakelog.core.catalogs.renewed_store import RenewedStore
from lakelog.core.catalogs.staged_lines import StagedLines
from lakelog.core.errors import (
    CatalogError,
    CommitOutcomeUnknownError,
    DeltaError,
    LogGapError,
    StorageUnavailableError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelog.core.forks import lock_of
from lakelog.core.log.file_names import (
    STAGED_FOLDER,
    LogFileKind,
    commit_name,
    commit_path,
    log_path,
    parse_log_name,
)
from lakelog.logstores import FileStatus, Scope
from lakelog.logstores.lines import decode_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow.fs

    from lakelog.core.catalogs.contract import (
        Catalog,
        CatalogTable,
        CommitMetrics,
        StagedTable,
    )
    from lakelog.core.catalogs.renewed_store import Storage
    from lakelog.core.clock import Clock
    from lakelog.logstores import Capabilities

_log = logging.getLogger("lakelog")
_LISTED: Final = 1000
_NEVER: Final = (None, -math.inf)
_TRUSTED_SECONDS: Final = 5.0
"""How long a thread may take from a load to its look, where others have the log too."""
_TRIES: Final = 3
"""Of one proposal, where others have to be published first."""


class GovernedStore(RenewedStore):
    """One table's log, below the names that the core uses. Safe for threads; not pickled."""

    def __init__(
        self,
        catalog: Catalog,
        table: CatalogTable,
        location: str,
        inner: Storage,
        clock: Clock,
        unmade: StagedTable | None = None,
    ) -> None:
        """Take what does not change.

        Args:
            catalog: that governs the table.
            table: as it was loaded; of version -1 where it is not made yet.
            location: the table's URI, normalised.
            inner: gives the store of the folder, with credentials that hold for now.
            clock: dates staged files.
            unmade: what the catalog set aside for a table that this store is to make.
        """
        super().__init__(inner)
        self._catalog = catalog
        self._table = table
        self._location = location
        self._clock = clock
        self._published = PublishedCommits(table, location, inner)
        self._listed: dict[int, int] = {}
        """Version -> when its file was written, as was listed before it was published."""
        self._gone: TableNotFoundError | None = None
        self._trusted: tuple[int | None, float] = _NEVER
        """The thread whose next look may take the table as it was loaded, any if None; until when
        (monotonic seconds)."""
        self._unmade = unmade
        self._was_asked_for = False
        """Whether a request to make the table may be on its way."""
        self._has_written = False
        """Whether the table's first commit may have been written by this store."""
        self._lock = lock_of(self)

    @property
    def as_governed(self) -> GovernedStore:
        """This one; `refusals.governed` asks for it."""
        return self

    @property
    def catalog(self) -> Catalog:
        """The catalog that governs the table."""
        return self._catalog

    @property
    def table(self) -> CatalogTable:
        """The table as it was known last. Asks nothing."""
        return self._table

    @property
    def unmade(self) -> StagedTable | None:
        """What the table has to have that is made by the next commit; None where there is one."""
        return self._unmade

    def trust_load(self) -> None:
        """Let the next look not ask again: the call that loaded the table is the one that looks.

        Whoever has had a log for a while must see what was committed since.
        """
        self._trusted = (None, math.inf)

    def take_load(self, of: GovernedStore) -> bool:
        """Take what this call has loaded for another store of the table; `trust_load` for a store
        that others have too.

        Returns:
            False where this store has met the table's end, and is no use any more.
        """
        if self._gone is not None:
            return False
        self._take(of.table)
        self._trusted = (threading.get_ident(), self._clock.monotonic() + _TRUSTED_SECONDS)
        return True

    def _is_trusted(self) -> bool:
        """Whether this look may take the table as it was loaded; that holds for one look.

        Or for all looks of a call, until it commits.
        """
        now = said(self._catalog, self._table.name, self._clock)
        if self._gone is None and now is not None and now.table_id == self._table.table_id:
            return now.latest <= self._table.latest
        thread, until = self._trusted
        if thread not in (None, threading.get_ident()):
            return False
        self._trusted = _NEVER
        return self._clock.monotonic() < until

    # -- reading --------------------------------------------------------------------------------

    def read(self, path: str) -> Iterator[str]:
        """As of any store; of a commit, the file that the catalog means."""
        if self._version_of(path) is None:
            yield from self._inner().read(path)
        else:
            yield from decode_lines(self.read_bytes(path).splitlines(keepends=True))

    def read_bytes(self, path: str) -> bytes:
        """As of any store; of a commit, the file that the catalog means."""
        version = self._version_of(path)
        if version is None:
            return self._inner().read_bytes(path)
        table = self._table
        if self._gone is not None or version > table.latest:
            if self._gone is not None or not self._is_trusted():
                table = self.refresh()
            if version > table.latest:
                raise FileNotFoundError(f"{table.name} has no version {version}: {path}")
        commit = table.commits.get(version)
        place = path if commit is None else self._published.staged_path(commit.file_name)
        try:
            # The catalog names a staged file until the publishing was reported; it may go before.
            return (
                self._inner().read_bytes(path) if commit is None else self._published.read(commit)
            )
        except FileNotFoundError as exc:
            if commit is None and self._is_cleaned_up(version):
                raise
            raise LogGapError(self._lost(version, place), path=place, version=version) from exc

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """As of any store, without what lies above the catalog's newest version.

        Raises:
            LogGapError: once all is listed; the log does not reach up to that version, and would
                be taken for that of an older one.
        """
        folder, _, start = path.rpartition("/")
        if folder != log_path(self._location):
            yield from self._inner().list_from(path)
            return
        table = self._table if self._is_trusted() else self.refresh()
        waiting = sorted(
            (commit_name(v), commit)
            for v, commit in table.commits.items()
            if commit_name(v) >= start
        )
        reaches = table.latest in table.commits or commit_name(max(table.latest, 0)) < start
        for status in self._inner().list_from(path):
            while waiting and waiting[0][0] <= status.name:
                yield self._status(waiting.pop(0)[1])
            name = parse_log_name(status.name)
            if name is not None and name.kind in REACHING:
                self._published.saw(name.version)
                reaches = reaches or name.version == table.latest
            if name is not None and (
                name.version > table.latest
                or (name.kind is LogFileKind.COMMIT and name.version in table.commits)
            ):
                continue
            # A copy is younger than what it was made from, and the version is the same.
            listed = self._listed.get(name.version) if name else None
            if name is None or name.kind is not LogFileKind.COMMIT or listed is None:
                yield status
            else:
                yield replace(status, modification_time=listed)
        for _, commit in waiting:
            yield self._status(commit)
        if not reaches and table.latest >= 0:
            place = commit_path(self._location, table.latest)
            raise LogGapError(self._lost(table.latest, place), path=place, version=table.latest)

    def _status(self, commit: RatifiedCommit) -> FileStatus:
        path = commit_path(self._location, commit.version)
        if len(self._listed) >= _LISTED:
            self._listed.pop(next(iter(self._listed)), None)
        self._listed[commit.version] = commit.modification_time
        return FileStatus(path, commit.size, commit.modification_time)

    def refresh(self) -> CatalogTable:
        """Ask the catalog what the table is now.

        Raises:
            TableNotFoundError: it is gone, or another table has its name.
            CatalogError: the catalog can't be asked.
        """
        if self._gone is not None:
            raise self._gone.with_traceback(None)
        if self._unmade is not None:
            return self._sought()
        with self._noting_the_end():
            return self._take(self._catalog.load(self._table.name))

    def _sought(self) -> CatalogTable:
        """Look whether a table was made after all.

        Raises:
            NameTakenError: another one was.
        """
        if not self._was_asked_for:
            return self._table
        try:
            found = self._catalog.load(self._table.name)
        except TableNotFoundError:
            return self._table
        if found.table_id != self._table.table_id:
            raise NameTakenError(
                f"another writer has made {found.name} a moment ago. Nothing was written there; "
                "open it by its name, and try again.",
                table=self._location,
            )
        made, self._unmade = self._take(found), None
        return made

    @contextlib.contextmanager
    def _noting_the_end(self) -> Iterator[None]:
        try:
            yield
        except TableNotFoundError as exc:
            self._gone = exc
            raise

    def _take(self, table: CatalogTable) -> CatalogTable:
        """Keep what a reply says, unless a later one was kept already."""
        known = self._table
        if table.table_id != known.table_id:
            raise TableNotFoundError(
                f"{known.name} is no more what was opened: it was dropped, and another table has "
                f"its name (id {table.table_id}, before {known.table_id}). Open it again by its "
                "name.",
                table=self._location,
            )
        if not table.is_governed:
            raise TableNotFoundError(
                f"the catalog no longer governs {known.name}. Open it again by its name.",
                table=self._location,
            )
        with self._lock:
            if table.latest >= self._table.latest:
                self._table = table
            return self._table

    def _version_of(self, path: str) -> int | None:
        """Which version a path is the commit of; None for any other file."""
        folder, _, name = path.rpartition("/")
        if folder != log_path(self._location):
            return None
        parsed = parse_log_name(name)
        return parsed.version if parsed and parsed.kind is LogFileKind.COMMIT else None

    def _is_cleaned_up(self, version: int) -> bool:
        """Whether a checkpoint stands for a commit that is not there."""
        table, checkpoints = self._table, (LogFileKind.CHECKPOINT, LogFileKind.MULTIPART)
        for status in self._inner().list_from(commit_path(self._location, version)):
            name = parse_log_name(status.name)
            if name and name.kind in (*checkpoints, LogFileKind.V2):
                return version <= name.version <= table.latest
        return False

    def _lost(self, version: int, place: str) -> str:
        return (
            f"the catalog {self._catalog.name} counts version {version} of {self._table.name} as "
            f"published, but {place} does not exist, and no checkpoint stands for it. A client "
            "reported a file that it had not written. Look for the version's file in "
            f"{log_path(self._location, STAGED_FOLDER)}, and copy it to that name."
        )

    # -- writing --------------------------------------------------------------------------------

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        """As of any store; a commit is staged, and the catalog decides.

        Raises:
            FileExistsError: another commit has the version, or an earlier file of this one.
            CommitOutcomeUnknownError: the catalog did not say, and does not show the version.
            TableNotFoundError: the table is gone. Nothing was committed.
            CatalogError: the catalog refused. Nothing was committed.
        """
        version = self._version_of(path)
        if version is None:
            self._publish_before(path)
            self._inner().write(path, lines, overwrite=overwrite)
            return
        if overwrite:
            raise UnsupportedFeatureError(
                f"version {version} of {self._table.name} can't be written again: the catalog "
                f"{self._catalog.name} decides what its versions are.",
                table=self._location,
            )
        if version <= self._table.latest:
            # Whoever has it, the lines are asked for by nobody; as of any name that is taken.
            raise FileExistsError(f"{path} exists: {self._table.name} has that version")
        forget_loads()
        if self._unmade is not None:
            self._create(path, self._unmade, StagedLines(lines))
        else:
            self._commit(path, version, StagedLines(lines))

    def _create(self, path: str, unmade: StagedTable, lines: StagedLines) -> None:
        """Write version 0 where nobody looks yet, and let the catalog show it."""
        self._write_first(path, lines)
        first, timestamp = lines.change, lines.timestamp
        try:
            if first is None or timestamp is None:
                raise CatalogError(
                    f"{unmade.name} can't be made: its first commit has no metadata or no "
                    "inCommitTimestamp.",
                    table=self._location,
                )
            made = self._catalog.create_table(unmade, first, timestamp)
        except UnansweredError as exc:
            # The core looks, by `refresh`, and has it sent again: of the same place it is the same.
            self._was_asked_for = True
            raise CommitOutcomeUnknownError(path, f"the catalog replied: {exc}") from exc
        except NameTakenError as exc:
            self._look_who_made_it(path, exc)
            return
        except (TableNotFoundError, CatalogError) as exc:
            # A proxy may refuse what the server has done: files go only where no table has them.
            found = self._made_all_the_same(path, exc)
            if found is None:
                raise
            made = found
        except BaseException:
            # Nothing that a catalog may raise: whether it asked before that is not known.
            self._was_asked_for = True
            raise
        try:
            self._take(made)
        except TableNotFoundError as exc:
            self._was_asked_for = True
            raise CommitOutcomeUnknownError(path, str(exc)) from exc
        self._unmade = None

    def _made_all_the_same(self, path: str, said: Exception) -> CatalogTable | None:
        """The table, where the catalog shows it although it refused to make it.

        Raises:
            CommitOutcomeUnknownError: the catalog can't be asked.
        """
        try:
            found = self._catalog.load(self._table.name)
        except TableNotFoundError:
            found = None
        except (CatalogError, OSError) as exc:
            evidence = f"the catalog replied: {said}; and looking at the table failed: {exc}"
            raise CommitOutcomeUnknownError(path, evidence) from exc
        if found is not None and found.table_id == self._table.table_id:
            return found
        if not self._was_asked_for:
            self._drop([path])
        return None

    def _look_who_made_it(self, path: str, said: NameTakenError) -> None:
        """Return where a table that has the name is this one, by an earlier request.

        Raises:
            NameTakenError: it is another one, or gone again.
            CommitOutcomeUnknownError: the catalog does not show it.
        """
        was_asked_for, self._was_asked_for = self._was_asked_for, True
        try:
            if self.refresh().latest >= 0:
                return
            raise said
        except NameTakenError:
            if not was_asked_for:
                self._drop([path])
            raise
        except OSError as exc:
            evidence = f"the catalog replied: {said}; and looking at the table failed: {exc}"
            raise CommitOutcomeUnknownError(path, evidence) from exc

    def _write_first(self, path: str, lines: StagedLines) -> None:
        inner = self._inner()
        # Other clients look for no place for their commits before they write there.
        inner.create_folder(log_path(self._location, STAGED_FOLDER))
        is_again, self._has_written = self._has_written, True
        try:
            inner.write(path, lines)
        except FileExistsError:
            # Nobody else should know the place: it is what was written here before.
            if list(inner.read(path)) != list(lines):
                if not is_again:
                    raise CatalogError(
                        f"{self._table.name} can't be made: the catalog {self._catalog.name} set "
                        f"{self._location} aside for it, and {path} is there already, of another "
                        "table. Nothing was written.",
                        table=self._location,
                    ) from None
                if self._was_asked_for:
                    raise CommitOutcomeUnknownError(path, "it holds an earlier attempt") from None
                inner.write(path, lines, overwrite=True)
        except CommitOutcomeUnknownError as exc:
            raise StorageUnavailableError(f"writing {path} failed: {exc.evidence}") from exc

    def _commit(self, path: str, version: int, lines: StagedLines) -> None:
        file_name = f"{version:020d}.{uuid.uuid4()}.json"
        self._stage(file_name, lines)
        if lines.timestamp is None:
            # No server looks, and no client could order the version among the others.
            self._drop_staged(file_name)
            raise CatalogError(
                f"a commit to {self._table.name} must have an inCommitTimestamp, as a catalog "
                "governs the table: keep delta.enableInCommitTimestamps = true.",
                table=self._location,
            )
        now = self._clock.now_ms()
        commit = RatifiedCommit(
            version=version,
            file_name=file_name,
            size=lines.size,
            timestamp=lines.timestamp,
            modification_time=now,
        )
        try:
            with self._noting_the_end():
                self._propose(commit, lines)
        except (VersionTakenError, UnansweredError) as exc:
            self._look(path, commit, exc)
        except (TableNotFoundError, CatalogError):
            self._drop_staged(file_name)
            raise

    def _stage(self, file_name: str, lines: StagedLines) -> None:
        inner, path = self._inner(), self._published.staged_path(file_name)
        try:
            try:
                inner.write(path, lines)
            except FileNotFoundError:
                inner.create_folder(log_path(self._location, STAGED_FOLDER))
                inner.write(path, lines)
        except CommitOutcomeUnknownError as exc:
            # Whatever became of it, nobody was asked to make a version of it.
            raise StorageUnavailableError(f"staging {path} failed: {exc.evidence}") from exc

    def _propose(self, commit: RatifiedCommit, lines: StagedLines) -> None:
        most = self._catalog.capabilities.most_unpublished
        stopped: Exception | None = None
        for _ in range(_TRIES):
            if len(self._table.commits) >= most:
                stopped = self.publish(report=True)
            table = self._table
            try:
                made = self._catalog.commit(
                    table, commit, lines.change, self._published.reportable(table)
                )
            except TooManyUnpublishedError:
                self.refresh()
                stopped = self.publish(report=True)
                continue
            found = made.commits.get(commit.version)
            if made.latest < commit.version or (found and found.file_name != commit.file_name):
                raise UnansweredError(f"{made.latest} is the newest version, and it was taken")
            try:
                self._take(made)
            except TableNotFoundError as exc:
                # It was taken all the same, and its file has to stay.
                raise UnansweredError(str(exc)) from exc
            return
        raise CatalogError(
            f"{self._table.name} has {len(self._table.commits)} commits that are not published, "
            f"and the catalog {self._catalog.name} takes no more. "
            + (
                f"Publishing them failed: {stopped}"
                if stopped
                else "They are published, and other writers add to them: commit again."
            ),
            table=self._location,
        ) from stopped

    def _look(self, path: str, commit: RatifiedCommit, said: CatalogError) -> None:
        """Find out who has a version, where the reply was no answer.

        Raises:
            FileExistsError: another file is the version; the core goes by its txnId then.
            CommitOutcomeUnknownError: the catalog does not show it, or does not name its file.
        """
        try:
            table = self.refresh()
        except OSError as exc:
            evidence = f"the catalog replied: {said}; and looking at the table failed: {exc}"
            raise CommitOutcomeUnknownError(path, evidence) from exc
        if table.latest < commit.version:
            raise CommitOutcomeUnknownError(
                path,
                f"the catalog replied: {said}; its newest version is {table.latest}, so the "
                f"request for {commit.file_name} may still be on its way",
            ) from said
        found = table.commits.get(commit.version)
        if found is not None and found.file_name == commit.file_name:
            return
        if found is not None:
            self._drop_staged(commit.file_name)
            raise FileExistsError(f"{path} exists: it is {found.file_name}") from said
        # It was published, and the catalog has forgotten whose it is. The file says it.
        try:
            self._inner().read_bytes(path)
        except FileNotFoundError:
            raise CommitOutcomeUnknownError(path, self._lost(commit.version, path)) from said
        except OSError as exc:
            evidence = f"the catalog replied: {said}; and reading {path} failed: {exc}"
            raise CommitOutcomeUnknownError(path, evidence) from exc
        raise FileExistsError(f"{path} exists and is published") from said

    def _drop_staged(self, file_name: str) -> None:
        self._drop([self._published.staged_path(file_name)])

    def _drop(self, paths: list[str]) -> None:
        """Remove files that no version can be made of any more. One that stays is ignored."""
        with contextlib.suppress(OSError, DeltaError):
            self._inner().delete_files(paths)

    def end_commit(self, metrics: CommitMetrics | None = None) -> None:
        """Publish what is ratified, after a commit; the core lets no caller wait for it.

        Args:
            metrics: what the commit did; None where that is not known.
        """
        # Where this writer goes on, the next commit reports this one; what others left would wait.
        self.publish(report=len(self._table.commits) > 1)
        if metrics is None:
            return
        try:
            self._catalog.report_metrics(self._table, metrics)
        except (OSError, DeltaError) as exc:
            _log.info("%s: the catalog took no metrics: %s", self._table.name, exc)

    # -- publishing -----------------------------------------------------------------------------

    def publish(self, *, report: bool = False) -> Exception | None:
        """Copy ratified commits to their published names, whoever made them, in order.

        A failure stops it and is logged: whoever comes next goes on. Nothing is lost meanwhile.

        Args:
            report: whether to tell the catalog now; else the next commit does.

        Returns:
            What stopped it, if anything did.
        """
        try:
            self._published.copy(self._table, self._table.latest)
            table = self._table
            version = self._published.reportable(table)
            if report and version is not None:
                self._take(self._catalog.report(table, version))
        except TableNotFoundError as exc:
            _log.info("%s is gone, and nothing of it is published", self._table.name)
            return exc
        except (OSError, DeltaError, CommitOutcomeUnknownError) as exc:
            _log.warning("%s: publishing a commit failed: %s", self._table.name, exc)
            return exc
        return None

    def _publish_before(self, path: str) -> None:
        """Publish what a checkpoint stands for: readers by name of the log must find its commit."""
        name = parse_log_name(path.rpartition("/")[2])
        if name is None or name.kind in (LogFileKind.CRC, LogFileKind.COMMIT):
            return
        self._published.copy(self._table, name.version)

    # -- the rest -------------------------------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        """Those of the storage, but for what the catalog decides."""
        return replace(
            super().capabilities,
            exclusive_create=Scope.CLUSTER,
            partial_write_visible=False,
            min_commit_interval=0.0,
        )

    def is_partial_write_visible(self, path: str) -> bool:
        """Of no commit: a version is ratified once its file is whole."""
        return self._version_of(path) is None and super().is_partial_write_visible(path)

    def filesystem_path(self, path: str) -> str:
        """As the storage spells it; of a commit, the file that the catalog means."""
        version = self._version_of(path)
        commit = None if version is None else self._table.commits.get(version)
        place = path if commit is None else self._published.staged_path(commit.file_name)
        return super().filesystem_path(place)

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        """In the storage; what a checkpoint stands for is published before."""
        self._publish_before(path)
        with super().staged(path) as given:
            yield given

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse, as the catalog does.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"the log of {self._table.name} can't be pickled: open it there by name")
