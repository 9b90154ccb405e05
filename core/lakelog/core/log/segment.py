"""Which files of the log make up a version: one checkpoint, and the commits after it.

    list from the hint ──► newest complete checkpoint <= V ──► commits checkpoint+1 .. V
          │ none there              │ none: version 0                 │ a gap
          ▼                         ▼                                 ▼
    list from the start       all commits from 0                LogGapError

Everything is found through `LogStore.list_from`. Names that the protocol does not have, files
of subfolders, empty checkpoints and multi-part checkpoints with a part missing are ignored.
Where a store's listings may lag behind its writes (`consistent_listing=False`), the commits around
a listing are read as well, because a read always sees what was written.
"""

from __future__ import annotations

import logging
import posixpath
import re
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from lakelog.core.errors import (
    LogGapError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lakelog.core.log.budget import LogBudget, read_log_file
from lakelog.core.log.file_names import (
    LOG_FOLDER,
    STAGED_FOLDER,
    LogFileKind,
    LogFileName,
    commit_name,
    commit_path,
    is_nearly_log_name,
    log_path,
    parse_log_name,
)
from lakelog.core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint
from lakelog.logstores import FileStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from lakelog.logstores.contract import LogStore

_log = logging.getLogger("lakelog")

# A stray commit of the far future makes a gap of billions.
_SHOWN_MISSING = 10_000
_CATALOG_NAME = re.compile(r"\w+\.\w+(\.\w+)?")


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """A checkpoint that is complete, as far as a listing can tell."""

    version: int
    files: tuple[FileStatus, ...]
    """One file, or all parts in order; of a V2 checkpoint its top level."""
    is_v2: bool = False
    """Whether its name is that of a V2 checkpoint; a classic name says nothing."""

    @property
    def is_json(self) -> bool:
        """Whether the top level is JSON lines."""
        return self.files[0].name.endswith(".json")

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all files."""
        return sum(each.length for each in self.files)


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """A log compaction file: the reconciled actions of several commits."""

    first: int
    last: int
    file: FileStatus


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files whose replay gives one version of a table."""

    table: str
    version: int
    checkpoint: CheckpointFiles | None
    commits: tuple[FileStatus, ...]
    """Ascending and without gaps, from the checkpoint's version + 1, or from 0."""
    last_file: FileStatus
    """The commit of `version`; the checkpoint where that commit is gone."""
    checksum: FileStatus | None = None
    """The version checksum of `version`."""
    compacted: tuple[CompactedFile, ...] = ()
    """Log compaction files, of these commits and of others."""
    hint: LastCheckpoint | None = None
    """What `_last_checkpoint` says of the checkpoint, if it speaks of this one."""

    @property
    def timestamp(self) -> int:
        """When the version was committed, by the storage: milliseconds since the epoch."""
        return self.last_file.modification_time


@dataclass(slots=True)
class Listing:
    """What one listing of the log showed."""

    commits: dict[int, FileStatus] = field(default_factory=dict)
    checkpoints: list[CheckpointFiles] = field(default_factory=list)
    """The complete ones, ascending; of one version, the one that is to be preferred last."""
    checksums: dict[int, FileStatus] = field(default_factory=dict)
    compacted: list[CompactedFile] = field(default_factory=list)

    def earliest(self) -> int | None:
        """The oldest version that can be rebuilt; `None` if none can."""
        if 0 in self.commits:
            return 0
        return self.checkpoints[0].version if self.checkpoints else None

    def latest(self) -> int | None:
        """The newest version there is; `None` in an empty log."""
        newest = [max(self.commits)] if self.commits else []
        if self.checkpoints:
            newest.append(self.checkpoints[-1].version)
        return max(newest, default=None)


def list_log(store: LogStore, table: str, start: int = 0, end: int | None = None) -> Listing:
    """List the log's files of the versions `start` to `end`, both included.

    No commit that was acknowledged before the call is left out, however unreliable the store's
    listings are, and none that came while it ran is left out where the one after it is there.

    Raises:
        FileNotFoundError: there is no log.
    """
    listing = Listing()
    if store.capabilities.consistent_listing:
        _list_into(listing, store, table, start, end)
        if _has_hole(listing, start):
            # No listing is of one moment: of two commits that came meanwhile, a folder may show the
            # later one alone. Now that it is there, so was the earlier one before this call.
            highest = max(listing.commits)
            listing = Listing()
            _list_into(listing, store, table, start, highest)
        return listing
    try:
        _list_into(listing, store, table, start, end)
    except (FileNotFoundError, NotADirectoryError):
        _add_unlisted_commits(listing, store, table, start, end)
        if not listing.commits:
            raise
    else:
        _add_unlisted_commits(listing, store, table, start, end)
    return listing


def _has_hole(listing: Listing, start: int) -> bool:
    """Whether commits are missing: between those that are there, or between the newest checkpoint,
    or the start, and the first of them.
    """
    commits = listing.commits
    if not commits:
        return False
    begin = listing.checkpoints[-1].version + 1 if listing.checkpoints else start
    return max(commits) + 1 - min(begin, min(commits)) > len(commits)


def _list_into(listing: Listing, store: LogStore, table: str, start: int, end: int | None) -> None:
    parts: dict[tuple[int, int], dict[int, FileStatus]] = {}
    v2: list[CheckpointFiles] = []
    for status, name in log_files(store.list_from(log_path(table, f"{start:020d}."))):
        if end is not None and name.version > end:
            # A compaction file lies where its first version is and counts as its last one; so only
            # a commit shows that the listing has passed the end.
            if name.kind is LogFileKind.COMMIT:
                break
            continue
        match name.kind:
            case LogFileKind.COMMIT:
                listing.commits[name.version] = status
            # An empty file is a writer's who died on storage that shows what is not whole; no
            # checkpoint is empty.
            case LogFileKind.CHECKPOINT | LogFileKind.MULTIPART if status.length:
                key = (name.version, -1 if name.kind is LogFileKind.CHECKPOINT else name.parts)
                parts.setdefault(key, {})[name.part] = status
            case LogFileKind.COMPACTED if status.length and name.first is not None:
                listing.compacted.append(CompactedFile(name.first, name.version, status))
            case LogFileKind.CRC if status.length:
                listing.checksums[name.version] = status
            case LogFileKind.V2 if status.length:
                v2.append(CheckpointFiles(name.version, (status,), is_v2=True))
    listing.checkpoints = sorted([*_complete(parts), *v2], key=_preference)


def _add_unlisted_commits(
    listing: Listing, store: LogStore, table: str, start: int, end: int | None
) -> None:
    """Find by reading the commits that a stale listing does not show.

    Upwards from the newest version that was listed, and downwards wherever one is not listed, each
    way until a commit is really missing: what log cleanup has removed costs a single read.
    """
    latest = listing.latest()
    found = listing.commits

    def is_there(version: int) -> bool:
        if version not in found:
            status = _status_by_reading(store, commit_path(table, version))
            if status is None:
                return False
            found[version] = status
        return True

    above = start if latest is None else latest + 1
    while (end is None or above <= end) and is_there(above):
        above += 1
    if latest is not None:
        below = latest
        while below >= start and is_there(below):
            below -= 1
    listing.commits = dict(sorted(found.items()))


def _status_by_reading(store: LogStore, path: str) -> FileStatus | None:
    try:
        length = len(read_log_file(store, path, LogBudget.from_store(store)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    written = store.filesystem.get_file_info(store.filesystem_path(path)).mtime_ns
    # The file system may lag too; what is not listed yet has only just been written.
    return FileStatus(path, length, (time.time_ns() if written is None else written) // 1_000_000)


def log_files(statuses: Iterable[FileStatus]) -> Iterator[tuple[FileStatus, LogFileName]]:
    """The entries of a listing that are files of a log, with what their names say.

    A file with a similar name is logged, once, and ignored: to count it would turn a log with a
    stray export into one with a gap of billions of versions.
    """
    for status in statuses:
        name = None if status.is_directory else parse_log_name(status.name)
        # A store that lists recursively must not make commits of files in subfolders.
        if name is not None and status.path.endswith(f"/{LOG_FOLDER}/{status.name}"):
            yield status, name
        elif name is None and not status.is_directory and is_nearly_log_name(status.name):
            _tell_stray(status.path)


@lru_cache(maxsize=1000)
def _tell_stray(path: str) -> None:
    _log.warning(
        "%s is not a log file: versions have 20 digits and are less than 2^63. It is ignored; "
        "move it out of the folder.",
        path,
    )


def _complete(
    parts: dict[tuple[int, int], dict[int, FileStatus]],
) -> Iterator[CheckpointFiles]:
    for (version, count), found in parts.items():
        # Parts come one by one: until the last is there, readers use what is older.
        if len(found) == max(count, 1):
            yield CheckpointFiles(version, tuple(found[part] for part in sorted(found)))


def _preference(checkpoint: CheckpointFiles) -> tuple[int, int, int, str]:
    """Sorts the checkpoints of one version: parts of two writers may have mixed, so those are
    the last resort, and one file needs fewer reads than a top level with sidecars.
    """
    files = checkpoint.files
    return checkpoint.version, -len(files), -checkpoint.is_v2, files[0].name


def find_segment(
    store: LogStore,
    table: str,
    version: int | None = None,
    *,
    rejected: Collection[CheckpointFiles] = (),
) -> LogSegment:
    """Find the files of a version.

    Args:
        store: the store of the log.
        table: the table's URI.
        version: which one; the newest if `None`.
        rejected: checkpoints that turned out to be unreadable.

    Raises:
        TableNotFoundError: no log, or nothing in it.
        VersionNotFoundError: the version is newer than the newest, or too old to be rebuilt.
        LogGapError: commits are missing.
    """
    # It only shortens the listing. What it says may be old or wrong; the listing decides which
    # checkpoint is used.
    hint = read_last_checkpoint(store, table)
    start = hint.version if hint and not rejected else 0
    if version is not None and start > version:
        start = 0
    listing = _listing(store, table, start, version)
    if start and _newest(listing, rejected) is None:
        # The hint points at nothing. Only the whole log can say what there is.
        listing = _listing(store, table, 0, version)
    latest = listing.latest()
    if latest is None:
        raise _not_found(store, table, version)
    # Not the newest one instead: who asks for a version must not get another unnoticed.
    if version is not None and latest < version:
        raise version_not_found(store, table, version)
    version = latest if version is None else version
    segment = _segment(store, table, listing, version, rejected)
    if hint and segment.checkpoint and segment.checkpoint.version == hint.version:
        return replace(segment, hint=hint)
    return segment


def _listing(store: LogStore, table: str, start: int, end: int | None) -> Listing:
    try:
        return list_log(store, table, start, end)
    except TableNotFoundError:
        raise  # a catalog's word, which says more than the folder
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise TableNotFoundError(_what_is_there(store, table, exc), table=table) from exc


def _newest(listing: Listing, rejected: Collection[CheckpointFiles]) -> CheckpointFiles | None:
    return next((each for each in reversed(listing.checkpoints) if each not in rejected), None)


def _segment(
    store: LogStore,
    table: str,
    listing: Listing,
    version: int,
    rejected: Collection[CheckpointFiles],
) -> LogSegment:
    checkpoint = _newest(listing, rejected)
    first = 0 if checkpoint is None else checkpoint.version + 1
    missing = _missing(listing.commits, first, version)
    if missing:
        raise _gap(store, table, listing, version, checkpoint, missing)
    commits = tuple(listing.commits[v] for v in range(first, version + 1))
    last = listing.commits.get(version)
    # Log cleanup may have removed the commit of a checkpoint's own version: the checkpoint holds
    # its state, though not who made it.
    if last is None:
        assert checkpoint is not None  # `commits` would hold the version otherwise
        last = checkpoint.files[0]
    return LogSegment(
        table,
        version,
        checkpoint,
        commits,
        last,
        listing.checksums.get(version),
        tuple(listing.compacted),
    )


def _missing(commits: Collection[int], first: int, last: int) -> list[int]:
    """The versions that are not there: up to `_SHOWN_MISSING` from below, and the highest."""
    found = list(islice((v for v in range(first, last + 1) if v not in commits), _SHOWN_MISSING))
    if len(found) == _SHOWN_MISSING:
        found.append(next(v for v in range(last, first, -1) if v not in commits))
    return found


def _gap(
    store: LogStore,
    table: str,
    listing: Listing,
    version: int,
    checkpoint: CheckpointFiles | None,
    missing: list[int],
) -> Exception:
    if checkpoint is None and missing[-1] < min(listing.commits, default=version):
        newest = list_log(store, table)
        earliest = newest.earliest()
        if earliest is not None and earliest > version:
            return version_not_found(store, table, version)
    shown = _ranges(missing)
    base = "no complete checkpoint" if checkpoint is None else f"checkpoint {checkpoint.version}"
    return LogGapError(
        f"the log of {table} has gaps: to rebuild version {version} there is {base}, but the "
        f"commits {shown} are missing. Restore {log_path(table, commit_name(missing[0]))} and "
        "the others from a backup or from the object store's versions."
        f"{_staged_hint(store, table)}",
        table=table,
        path=log_path(table, commit_name(missing[0])),
        version=version,
        missing=missing,
    )


def _staged_hint(store: LogStore, table: str) -> str:
    """Say that a catalog may know more; called only when an error is due anyway."""
    try:
        # By attribute, as `catalogs.refusals.governed`: this is below it.
        if getattr(store, "as_governed", None) is not None or not any(
            store.list_from(log_path(table, f"{STAGED_FOLDER}/"))
        ):
            return ""
    except OSError:
        return ""
    return (
        f" There are commits in {STAGED_FOLDER}, for a catalog to decide on: if one governs the "
        "table, open it by its name, catalog.schema.table."
    )


def _ranges(versions: list[int]) -> str:
    """`3, 5-9`: consecutive numbers as ranges, and no more than ten of these."""
    spans: list[list[int]] = []
    for each in versions:
        if spans and spans[-1][1] == each - 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in spans[:10]]
    return ", ".join(texts) + (" and more" if len(spans) > 10 else "")


def version_not_found(store: LogStore, table: str, version: int) -> VersionNotFoundError:
    """The error for a version that can't be had, with those that can."""
    listing = list_log(store, table)
    earliest, latest = listing.earliest(), listing.latest()
    there = (
        f"versions {earliest} to {latest} can be read"
        if earliest is not None
        else "no version can be rebuilt from the rest of the log"
    )
    return VersionNotFoundError(
        f"[DELTA_VERSION_NOT_FOUND] version {version} of {table} can't be read: {there}",
        table=table,
        version=version,
        earliest=earliest,
        latest=latest,
    )


def _not_found(store: LogStore, table: str, version: int | None) -> Exception:
    # Nothing up to `version`; perhaps something after it.
    if version is not None and list_log(store, table).latest() is not None:
        return version_not_found(store, table, version)
    return TableNotFoundError(
        f"no Delta table at {table}: its {LOG_FOLDER} folder holds no commits", table=table
    )


def _what_is_there(store: LogStore, table: str, missing: OSError) -> str:
    """Say what is at the path; called only when an error is due anyway."""
    from pyarrow.fs import FileSelector, FileType

    try:
        filesystem, path = store.filesystem, store.filesystem_path(table)
        kind = filesystem.get_file_info(path).type
        if kind == FileType.NotFound:
            # Where the bucket is missing, the store says that, and not that the folder is.
            why = "" if LOG_FOLDER in str(missing) else f" ({missing})"
            seen = f"nothing is there{why}{_catalog_hint(posixpath.basename(table))}"
        elif kind == FileType.File:
            seen = "it is a file, and a table is a folder"
        else:
            names = [e.base_name for e in filesystem.get_file_info(FileSelector(path))]
            parquet = sum(name.endswith(".parquet") for name in names)
            hint = f", {parquet} of them Parquet files" if parquet else ""
            seen = f"the folder has {len(names)} entries{hint}, but no {LOG_FOLDER}"
    except OSError as exc:
        seen = f"and it can't be looked at ({exc})"
    return f"no Delta table at {table}: {seen}. Check the path, or create the table."


def _catalog_hint(name: str) -> str:
    if not _CATALOG_NAME.fullmatch(name):
        return ""
    return (
        f", and if {name} is a name in a catalog, the conf does not say where that is: set "
        "spark.sql.catalog.<catalog>.uri, give the table's location, or ask Spark's table() or SQL"
    )
