"""The files that the newest version, or one that the retention covers, still needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.file_keys import canonical_paths
from lakelog.core.arrays import array_of
from lakelog.core.compute import pc
from lakelog.core.log.segment import list_log
from lakelog.core.maintain.vacuum.from_log import files_taken_out
from lakelog.core.maintain.vacuum.protected import ProtectedFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.maintain.vacuum.from_log import Taken
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.logstores import FileStatus


class KeptFiles:
    """Of one table, for one cutoff.

    A file that was taken out stays if that happened at or after the cutoff, by either of two
    clocks: that of the writer, in the tombstone, and that of the storage, as the time of the
    commit. So a writer whose clock is behind can't make a file look older than it is, and a
    tombstone that was forgotten too early does no harm.
    """

    def __init__(self, log: DeltaLog, cutoff: int, known: Mapping[int, Taken]) -> None:
        """Take the newest version that is known.

        Args:
            log: of the table.
            cutoff: milliseconds since 1970-01-01 UTC.
            known: version -> what it has taken out, of commits that need not be read once more.
        """
        self._log = log
        self._cutoff = cutoff
        self._known = known
        self.snapshot: Snapshot = log.snapshot
        self.live: ProtectedFiles = ProtectedFiles(log.table)
        """The files of the newest version."""
        self.live.add(self.snapshot.file_table)
        self.taken: ProtectedFiles = ProtectedFiles(log.table)
        """Those taken out since the cutoff, once `settle` was called."""
        self.is_sure: bool = True
        """Whether both clocks agree, once `settle` was called."""
        self._commits: list[tuple[int, FileStatus]] | None = None

    @property
    def commits(self) -> list[tuple[int, FileStatus]]:
        """The commits that the log still has, ascending; listed at the first use."""
        if self._commits is None:
            listing = list_log(self._log.store, self._log.table)
            self._commits = sorted(listing.commits.items())
        return self._commits

    @property
    def outside(self) -> list[tuple[int, FileStatus]]:
        """The commits from the first on that were all made before the cutoff."""
        for index, (_, status) in enumerate(self.commits):
            if status.modification_time >= self._cutoff:
                return self.commits[:index]
        return self.commits

    def settle(self) -> None:
        """Take in what was committed since, and what was taken out since the cutoff.

        Called once the candidates are known, so that none of them is newer than what is read here.

        Raises:
            DeltaError: the log can't be read.
        """
        before, self.snapshot = self.snapshot, self._log.update()
        if self.snapshot is not before:
            self.live.add(self.snapshot.file_table)
        tombstones = self.snapshot.tombstones
        late = pc.fill_null(pc.greater_equal(tombstones["deletion_timestamp"], self._cutoff), False)
        late = tombstones.filter(late)
        self.taken.add(late)
        self._commits = None
        recent = [each for each in self.commits if each[1].modification_time >= self._cutoff]
        named = []
        for each in self.taken_out(recent):
            # Most commits only add.
            if each.removed.num_rows:
                self.taken.add(each.removed)
                named += each.removed["path"].chunks
            if each.change_files:
                self.taken.add_paths(pa.chunked_array([array_of(each.change_files, pa.string())]))
        gone = self._canonical(late["path"])
        self.is_sure = gone <= self._canonical(pa.chunked_array(named, pa.string()))

    def taken_out(self, commits: Sequence[tuple[int, FileStatus]]) -> Iterator[Taken]:
        """See `files_taken_out`."""
        return files_taken_out(self._log.store, self._log.table, commits, self._known)

    def _canonical(self, paths: pa.ChunkedArray[Any]) -> set[str]:
        return set(canonical_paths(self._log.table, paths).to_pylist())

    def may_go(self, paths: list[str]) -> set[str]:
        """Those of some relative paths that no version needs; `settle` comes first."""
        return self.taken.without_doubt(self.live.without_doubt(paths))

    def needs_folder(self, folder: str) -> bool:
        """Whether a file that stays is in a folder, or should be."""
        return self.live.needs_folder(folder) or self.taken.needs_folder(folder)
