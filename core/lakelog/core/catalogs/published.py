"""Ratified commits under their published names: copied there in order, whoever made them.

The file of a version may lie there already: by another client, or by one that was stopped midway.
It is the version only where it holds what the catalog ratified. While the staged file is there,
both are compared; once that is gone, its size and its time are compared with the catalog's record,
as those of the staged file are before it is read or copied.

What a reply no longer names counts as published. It is asked for once before more is: a reply that
was cut off would else have the catalog forget commits that nobody published.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from lakelog.core.errors import LogGapError
from lakelog.core.forks import lock_of
from lakelog.core.log.file_names import (
    STAGED_FOLDER,
    LogFileKind,
    commit_path,
    log_path,
    parse_log_name,
)
from lakelog.logstores.lines import decode_lines

if TYPE_CHECKING:
    from lakelog.core.catalogs.contract import CatalogTable, RatifiedCommit
    from lakelog.core.catalogs.renewed_store import Storage
    from lakelog.logstores import LogStore

REACHING: Final = (LogFileKind.COMMIT, LogFileKind.CHECKPOINT, LogFileKind.V2)
"""Files of which one shows that the log reaches up to its version."""


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
        self._copied = -1
        """The newest version that was copied here, or compared, with all before it."""
        self._listed = range(0)
        """Versions whose files were seen there, without gaps."""
        self._lock = lock_of(self)

    def saw(self, version: int) -> None:
        """Note that the log has a file that a version needs: its commit, or a checkpoint of it."""
        with self._lock:
            known = self._listed
            if version in known:
                return
            first = known.start if version == known.stop else version
            self._listed = range(first, version + 1)

    def reportable(self, table: CatalogTable) -> int | None:
        """The newest published version that the catalog still waits for."""
        known = self._copied
        return known if known in table.commits and known in self._listed else None

    def copy(self, table: CatalogTable, version: int) -> None:
        """Publish the ratified commits up to a version, in order.

        Raises:
            LogGapError: a file is not what was ratified, or one before it is missing; nothing from
                that version on was copied.
            FileNotFoundError: neither file of a version is there; likewise.
        """
        inner = self._storage()
        for each in sorted(table.commits):
            if each > version:
                return
            if each > self._copied:
                self._look_before(inner, each)
                self._copy(inner, table.commits[each])
                self._note(each)

    def _note(self, version: int) -> None:
        with self._lock:
            self._copied = max(self._copied, version)
        self.saw(version)

    def _look_before(self, inner: LogStore, version: int) -> None:
        """Make sure that the log reaches up to a version which is to be published.

        Raises:
            LogGapError: the one before is missing.
        """
        before = version - 1
        if before < 0 or before in self._listed:
            return
        path = commit_path(self._location, before)
        for status in inner.list_from(path):
            name = parse_log_name(status.name)
            if name is not None and name.kind in REACHING:
                if name.version == before:
                    self.saw(before)
                    return
                break
        raise LogGapError(
            f"the catalog {self._name.catalog} no longer names version {before} of {self._name} "
            f"as one to be published, but {path} does not exist. Nothing after it is published or "
            "reported. Look for the version's file in "
            f"{log_path(self._location, STAGED_FOLDER)}, and copy it to that name.",
            path=path,
            version=before,
        )

    def staged_path(self, file_name: str) -> str:
        """Where a file is that the catalog names."""
        return log_path(self._location, f"{STAGED_FOLDER}/{file_name}")

    def read(self, commit: RatifiedCommit) -> bytes:
        """What a commit holds: its staged file, or the published one where that is gone or damaged.

        Raises:
            LogGapError: neither is what was ratified, of those that are there.
            FileNotFoundError: neither is there.
        """
        inner = self._storage()
        places = self.staged_path(commit.file_name), commit_path(self._location, commit.version)
        wrong: str | None = None
        for path in places:
            try:
                found = inner.read_bytes(path)
            except FileNotFoundError:
                continue
            if _is_it(found, commit):
                return found
            wrong = wrong or path
        if wrong is None:
            raise FileNotFoundError(places[0])
        raise self._other(wrong, commit)

    def _copy(self, inner: LogStore, commit: RatifiedCommit) -> None:
        path = commit_path(self._location, commit.version)
        # Where another client has published it, and removed the staged file, it is the same.
        lines = list(decode_lines(self.read(commit).splitlines(keepends=True)))
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
            f"{commit.size:,} bytes, of {commit.timestamp} (inCommitTimestamp). It is neither read "
            "nor reported. Find out who wrote it, and put the right file there; the staged one is "
            f"in {log_path(self._location, STAGED_FOLDER)}, and where that is gone or damaged, the "
            "storage's own history of versions may have it.",
            path=path,
            version=commit.version,
        )


def _is_it(data: bytes, commit: RatifiedCommit) -> bool:
    """Whether a file is what was ratified, as far as the catalog's record tells."""
    return fits(len(data), commit) and _is_whole(data) and _is_of_its_time(data, commit)


def fits(size: int, commit: RatifiedCommit) -> bool:
    """Whether a file of so many bytes may be a commit; the last line end may lack."""
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
