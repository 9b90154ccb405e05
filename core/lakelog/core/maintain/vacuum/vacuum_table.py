"""VACUUM: what may go is found, recorded, and deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arguments import read_arguments
from lakelog.core.arrays import array_of
from lakelog.core.catalogs.refusals import refuse_maintenance
from lakelog.core.delta_log import log_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.protocol import check_writable
from lakelog.core.log.file_names import commit_path
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.maintain.vacuum.candidates import Search, find_candidates
from lakelog.core.maintain.vacuum.inventory import INVENTORY_SCHEMA, written_paths
from lakelog.core.maintain.vacuum.protected import ProtectedFiles
from lakelog.core.maintain.vacuum.recorded_runs import History, keep_watermark
from lakelog.core.maintain.vacuum.retention import cutoff_of, retention_of
from lakelog.core.progress import Progress, progress_callback
from lakelog.core.shown.notebook import ShownFields
from lakelog.core.state.replay import read_commits
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.maintain.vacuum.candidates import Candidates
    from lakelog.core.maintain.vacuum.found import FoundFile, FoundFolder
    from lakelog.core.maintain.vacuum.from_log import Taken
    from lakelog.core.progress import GivenProgress, ProgressCallback
    from lakelog.core.state.snapshot import Snapshot

_BATCH: Final = 8_000
"""Files that are deleted between two looks at the log."""
_MODES: Final = ("FULL", "LITE")
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVacuumed(ShownFields):
    """What a VACUUM has deleted or, as a dry run, would have deleted."""

    table: str
    mode: str
    """`FULL` or `LITE`."""
    dry_run: bool
    cutoff: int
    """Only files last changed before this time went: milliseconds since 1970-01-01 UTC."""
    files: pa.Table = field(repr=False)
    """Files and empty folders, sorted by path, in the columns of Delta's inventories: `path` (a
    full URI, percent-encoded), `length`, `isDir`, `modificationTime`. May be given as `inventory`
    of another run."""
    num_files: int
    num_folders: int
    """Empty folders."""
    size_in_bytes: int
    """Of the files."""
    version: int | None
    """Of the commit `VACUUM END`; `None` where the history does not show the run."""
    files_seen: int
    """Files of the table's folder, or of the inventory or the log, that were looked at."""


@read_arguments
@command("vacuum")
def vacuum(
    uri: TableOrLog,
    retention_hours: float | None = None,
    *,
    dry_run: bool = False,
    mode: str = "FULL",
    inventory: Any = None,
    conf: Mapping[str, str] | None = None,
    progress: GivenProgress = None,
) -> TableVacuumed:
    """Delete the files in a table's folder that no version within the retention needs.

    A file goes only if all of this holds:

    - it is in the table's folder, and neither hidden (a name that begins with `_` or `.`, other
      than `_change_data` and the folders of partition columns), nor a symbolic link, nor in the
      folder of another table. Nothing in `_delta_log` is ever looked at;
    - it was last written before the cutoff: now, by the storage's clock, minus the retention;
    - the newest version does not need it, nor does any version that was the newest one at any time
      since the cutoff;
    - no transaction that is open in this process began before it was written;
    - no commit made while VACUUM runs adds it: the log is read again between batches.

    Empty folders go where they were not changed since the cutoff, on storage that has folders.
    `VACUUM START` and `VACUUM END` appear in the history as in Delta.

    Args:
        uri: where the table is, or its `DeltaLog`.
        retention_hours: how long files stay after they were taken out of the table; a fraction is
            fine. `None` for the table's `delta.deletedFileRetentionDuration` (a week). Less than
            that needs the conf `spark.databricks.delta.retentionDurationCheck.enabled=false`.
        dry_run: only find what would go. Nothing is written, so it goes by this machine's clock.
        mode: `FULL` lists the folder; `LITE` reads the log alone, finds what versions have taken
            out since the last run, and no files of failed writes.
        inventory: a list of the folder's files, instead of listing it: an Arrow table, or the path
            of a Parquet file, in the columns of `TableVacuumed.files`. The storage is asked about
            each file that would go.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.
        progress: called now and then with how many files are listed, and then with how many are
            deleted; or `auto` for a bar.

    Returns:
        What went.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: a retention that is too short, an unknown mode, an unusable inventory;
            or `LITE` where the log no longer has the commits since the last run.
        UnsupportedFeatureError: the table has a feature that this version can't write.
        OSError: the storage refused; the message lists files that could not be deleted. All
            others were.
    """
    log = log_of(uri, conf)
    kind = _checked_mode(mode, inventory, log)
    with progress_callback(progress) as report:
        return _vacuumed(log, kind, retention_hours, inventory, report, dry_run=dry_run)


def vacuum_outlook(log: DeltaLog, mode: str, known: Mapping[int, Taken]) -> TableVacuumed:
    """A dry run for whoever has read commits of the table already.

    Args:
        log: the table.
        mode: see `vacuum`, which says what is raised.
        known: version -> what it has taken out, of those commits.
    """
    kind = _checked_mode(mode, None, log)
    return _vacuumed(log, kind, None, None, lambda _: None, dry_run=True, known=known)


def _vacuumed(
    log: DeltaLog,
    kind: str,
    retention_hours: float | None,
    inventory: Any,
    report: ProgressCallback,
    *,
    dry_run: bool,
    known: Mapping[int, Taken] = MappingProxyType({}),
) -> TableVacuumed:
    snapshot = log.update()
    refuse_maintenance(log.store, log.table, "VACUUM")
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    retention = retention_of(snapshot, retention_hours)
    cutoff = cutoff_of(log, retention, asks_storage=not dry_run)
    search = Search(log, cutoff, kind == "LITE", inventory, known)

    def listed(count: int) -> None:
        report(Progress(text="listing", done=count, unit="files"))

    found = find_candidates(search, listed)
    version = None
    if not dry_run:
        history = History(log, retention)
        history.start(len(found.files) + len(found.folders), sum(f.size for f in found.files))
        try:
            found = _delete(log, found, report)
        except BaseException:
            history.failed()
            raise
        version = history.end(len(found.files) + len(found.folders), found.folders_seen + 1)
        keep_watermark(log, found.watermark)
    return TableVacuumed(
        table=log.table,
        mode=kind,
        dry_run=dry_run,
        cutoff=cutoff,
        files=_table_of(log.table, found.files, found.folders),
        num_files=len(found.files),
        num_folders=len(found.folders),
        size_in_bytes=sum(each.size for each in found.files),
        version=version,
        files_seen=found.files_seen,
    )


def _checked_mode(mode: Any, inventory: Any, log: DeltaLog) -> str:
    kind = mode.upper() if isinstance(mode, str) else mode
    if kind not in _MODES:
        raise DeltaAnalysisError(
            f"{mode!r} is not a mode of VACUUM: use 'FULL' or 'LITE'", table=log.table
        )
    if kind == "LITE" and inventory is not None:
        raise DeltaAnalysisError(
            f"VACUUM of {log.table} in mode LITE reads the log and takes no inventory: leave one "
            "of the two out.",
            table=log.table,
        )
    return kind


def _delete(log: DeltaLog, found: Candidates, report: ProgressCallback) -> Candidates:
    """Delete in batches, each after a look at what was committed in the meantime.

    Raises:
        OSError: some could not be deleted.
    """
    news, own = _News(log, found.snapshot), OwnFiles(log.store, log.table)
    base = f"{log.table.rstrip('/')}/"
    gone: list[FoundFile] = []
    failed: dict[str, Exception] = {}
    for start in range(0, len(found.files), _BATCH):
        report(Progress(text="deleting", done=start, total=len(found.files), unit="files"))
        news.look()
        names = news.protected.without_doubt(f.path for f in found.files[start : start + _BATCH])
        batch = [each for each in found.files[start : start + _BATCH] if each.path in names]
        refused = own.delete([base + each.path for each in batch])
        failed |= refused
        gone += [each for each in batch if base + each.path not in refused]
        _delete_checksums(own, base, found, batch, refused)
    count = len(found.files)
    report(Progress(text="deleting", done=count, total=count, unit="files"))
    if failed:
        raise _incomplete(log.table, failed, len(found.files))
    return found._replace(files=gone, folders=_deleted_folders(own, base, found.folders))


class _News:
    """What other writers have added since a snapshot was taken."""

    def __init__(self, log: DeltaLog, snapshot: Snapshot) -> None:
        self._log = log
        self._id = snapshot.metadata.id
        self._version = snapshot.version
        self.protected = ProtectedFiles(log.table)

    def look(self) -> None:
        """Read the commits since the last look.

        Raises:
            DeltaAnalysisError: the table is another one by now.
        """
        newest = self._log.update()
        if newest.metadata.id != self._id or newest.version < self._version:
            raise DeltaAnalysisError(
                f"{self._log.table} was replaced by another table while VACUUM ran. What is in its "
                "folder now belongs to that one; run VACUUM again.",
                table=self._log.table,
            )
        versions = range(self._version + 1, newest.version + 1)
        paths = {version: commit_path(self._log.table, version) for version in versions}
        for commit in read_commits(self._log.store, self._log.table, paths):
            self.protected.add(commit.added())
            self.protected.add(commit.removed())
        self._version = newest.version


def _delete_checksums(
    own: OwnFiles,
    base: str,
    found: Candidates,
    batch: Sequence[FoundFile],
    refused: Mapping[str, Exception],
) -> None:
    """Delete Hadoop's checksums of deleted files, as its own file system does."""
    if not found.checksums:
        return
    names = []
    for each in batch:
        folder, slash, name = each.path.rpartition("/")
        checksum = f"{folder}{slash}.{name}.crc"
        if checksum in found.checksums and base + each.path not in refused:
            names.append(base + checksum)
    if names:
        # Of no use, and no reason to fail.
        own.delete(names)


def _deleted_folders(own: OwnFiles, base: str, folders: Sequence[FoundFolder]) -> list[FoundFolder]:
    """Delete empty folders, the deepest first; one that is not empty by now stays."""
    deepest_first = sorted(folders, key=lambda folder: -folder.path.count("/"))
    return [each for each in deepest_first if own.delete_empty_folder(base + each.path)]


def _incomplete(table: str, failed: Mapping[str, Exception], count: int) -> OSError:
    shown = [f"{path} ({error})" for path, error in list(failed.items())[:_SHOWN]]
    more = len(failed) - len(shown)
    if more:
        shown.append(f"and {more:,} more")
    return OSError(
        f"VACUUM of {table} could not delete {len(failed):,} of {count:,} files: "
        f"{'; '.join(shown)}. The others are gone, and no version within the retention needs any "
        "of them. Make the storage let this user delete files, and run VACUUM again."
    )


def _table_of(table: str, files: Sequence[FoundFile], folders: Sequence[FoundFolder]) -> pa.Table:
    rows = sorted(
        [(each.path, each.size, False, each.modified) for each in files]
        + [(each.path, 0, True, each.modified) for each in folders]
    )
    columns = zip(*rows, strict=True) if rows else [()] * len(INVENTORY_SCHEMA)
    paths, *others = columns
    arrays = [written_paths(table, paths), *others]
    return pa.table(
        [array_of(each, kind) for each, kind in zip(arrays, INVENTORY_SCHEMA.types, strict=True)],
        schema=INVENTORY_SCHEMA,
    )
