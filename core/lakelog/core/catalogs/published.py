"""Ratified commits under their published names: copied there in order, whoever made them.

The file of a version may lie there already: by another client, or by one that was stopped midway.
It is the version only where it holds what the catalog ratified. While the staged file is there,
both are compared; once that is gone, its size and its time are compared with the catalog's record.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from lakelog.core.errors import LogGapError
from lakelog.core.forks import lock_of
from lakelog.core.log.file_names import commit_path, log_path
from lakelog.logstores.lines import decode_lines

if TYPE_CHECKING:
    from lakelog.core.catalogs.contract import CatalogTable, RatifiedCommit
    from lakelog.core.catalogs.renewed_store import Storage
    from lakelog.logstores import LogStore

STAGED_FOLDER: Final = "_staged_commits"


class PublishedCommits:
    """The published files of one table's log. Safe for threads."""

    def __init__(self, table: CatalogTable, location: str, storage: Storage) -> None:
        """Take what does not change.

        Args:
            table: as it was loaded.
            location: its URI, normalised.
            storage: gives the store of the folder.
        """
        self._name = table.name
        self._location = location
        self._storage = storage
        self._newest = table.latest - len(table.commits)
        """The newest version whose file is known to be in the log, with all before it."""
        self._lock = lock_of(self)

    def note(self, table: CatalogTable) -> None:
        """Take what a later reply says: of what it doesn't name, the publishing was reported."""
        self._note(table.latest - len(table.commits))

    def reportable(self, table: CatalogTable) -> int | None:
        """The newest published version that the catalog still waits for."""
        known = self._newest
        return known if table.commits.get(known) is not None else None

    def copy(self, table: CatalogTable, version: int) -> None:
        """Publish the ratified commits up to a version, in order.

        Raises:
            LogGapError: a published file is another one; nothing from that version on was copied.
            FileNotFoundError: neither file of a version is there; likewise.
        """
        inner = self._storage()
        for each in sorted(table.commits):
            if each > version:
                return
            if each > self._newest:
                self._copy(inner, table.commits[each])
                self._note(each)

    def staged_path(self, file_name: str) -> str:
        """Where a file is that the catalog names."""
        return log_path(self._location, f"{STAGED_FOLDER}/{file_name}")

    def read(self, commit: RatifiedCommit) -> bytes:
        """The published file of a commit whose staged file is gone.

        Raises:
            LogGapError: it is another one.
            FileNotFoundError: there is none.
        """
        path = commit_path(self._location, commit.version)
        found = self._storage().read_bytes(path)
        if not (fits(len(found), commit) and _is_whole(found) and _is_of_its_time(found, commit)):
            raise self._other(path, commit)
        return found

    def _note(self, version: int) -> None:
        with self._lock:
            self._newest = max(self._newest, version)

    def _copy(self, inner: LogStore, commit: RatifiedCommit) -> None:
        path = commit_path(self._location, commit.version)
        try:
            lines = list(inner.read(self.staged_path(commit.file_name)))
        except FileNotFoundError:
            self.read(commit)  # another client has published it, and removed the staged file
            return
        try:
            inner.write(path, lines)
        except FileExistsError:
            # By another client, or by a write of ours whose reply was lost. It is only reported
            # where it is the commit: the catalog then forgets the staged file.
            found = inner.read_bytes(path)
            if list(decode_lines(found.splitlines(keepends=True))) == lines:
                return
            if not "".join(f"{line}\n" for line in lines).encode().startswith(found):
                raise self._other(path, commit) from None
            inner.write(path, lines, overwrite=True)  # by one that was stopped midway

    def _other(self, path: str, commit: RatifiedCommit) -> LogGapError:
        return LogGapError(
            f"{path} is not what the catalog {self._name.catalog} ratified as version "
            f"{commit.version} of {self._name}, which is {commit.file_name} of "
            f"{commit.size:,} bytes. It is neither read nor reported. Find out who wrote it, and "
            "copy the staged file over it; where that is gone, the storage's own history of "
            "versions may have it.",
            path=path,
            version=commit.version,
        )


def fits(size: int, commit: RatifiedCommit) -> bool:
    """Whether a published file of so many bytes may be a commit; the last line end may lack."""
    return abs(size - commit.size) <= 1


def _is_whole(data: bytes) -> bool:
    return data.rstrip(b"\r\n").endswith(b"}")


def _is_of_its_time(data: bytes, commit: RatifiedCommit) -> bool:
    """Whether it has the commit's inCommitTimestamp, which is in its first line."""
    try:
        info = json.loads(data.split(b"\n", 1)[0])["commitInfo"]
        found: object = info["inCommitTimestamp"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return found == commit.timestamp
