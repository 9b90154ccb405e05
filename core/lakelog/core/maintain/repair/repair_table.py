"""Mending a table: a dry run that says what is broken, the repair itself, and the way back.

What readers see changes by a commit alone: files that are gone leave the table, others get their
sizes and statistics, and a writer that was faster makes the repair look again. The rest are files
of the log that the state does not depend on (checkpoints, their hint, checksums, drafts), and one
that it does: a torn commit, after which no writer can commit, and which is moved away only where it
is the newest.

A gap in the log is never filled: the contents of a missing commit can't be known.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lakelog.core.actions.objects import AddFile
from lakelog.core.actions.operation import Operation
from lakelog.core.arguments import read_arguments
from lakelog.core.catalogs.refusals import refuse_maintenance
from lakelog.core.commit.retry import retry_on_conflict
from lakelog.core.compute import pc
from lakelog.core.data.file_layout import FileLayout
from lakelog.core.delta_log import log_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.protocol import check_writable
from lakelog.core.log.commit_identity import read_commit_info
from lakelog.core.log.file_names import (
    LAST_CHECKPOINT,
    LogFileKind,
    checksum_path,
    commit_path,
    log_path,
    parse_log_name,
)
from lakelog.core.log.last_checkpoint import read_last_checkpoint
from lakelog.core.log.own_files import CLAIM, REPAIR_FOLDER, OwnFiles
from lakelog.core.maintain.repair.backup import Backup, read_plan
from lakelog.core.maintain.repair.defects import TableRepaired
from lakelog.core.maintain.repair.file_defects import FileDefects, find_file_defects
from lakelog.core.maintain.repair.log_defects import find_log_defects
from lakelog.core.paths import data_path
from lakelog.core.state.checksums import checksum_of
from lakelog.core.state.replay import read_commits
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import Action
    from lakelog.core.delta_log import DeltaLog, TableOrLog
    from lakelog.core.maintain.repair.log_defects import LogDefects
    from lakelog.core.state.snapshot import Snapshot

_BACKUP = "backup"


@read_arguments
@command("repair")
def repair(
    uri: TableOrLog, *, dry_run: bool = True, conf: Mapping[str, str] | None = None
) -> TableRepaired:
    """Find what is broken in a table and, unless it is a dry run, mend it.

        repair("/lake/flights")                  # says what it would do
        repair("/lake/flights", dry_run=False)   # does it

    - A torn commit is moved to the backup, where it is the newest version, is not the first, and
      was not written to for a minute.
    - Where a checkpoint can't be read, or there is none of more commits than the table's
      `delta.checkpointInterval`, one of the newest version is written, and the broken one is moved
      to the backup.
    - A `_last_checkpoint` that lies, and a wrong checksum (`.crc`) of the newest version, are made
      again.
    - Data files that are gone are removed from the log, not as a change of data.
    - Files of another size than the log has, or without statistics, are read for both, where their
      rows are as many as the log says.
    - Drafts of killed writers are deleted, where a checkpoint has their version.

    Nothing is guessed: gaps in the log, damaged commits below the newest one, damaged data files
    and deletion vectors that are gone are named, and stay. All that is replaced or removed is kept
    in `_delta_log/_repair`, and `undo_repair` brings it back. It is safe beside writers; while a
    commit is torn, none of them can commit anyway. A repair that is killed can be run again.

    Args:
        uri: where the table is, or its `DeltaLog`.
        dry_run: only look.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The defects, what was done about each, and where the backup is.

    Raises:
        TableNotFoundError: there is no table.
        UnsupportedFeatureError: the table has a feature that this version can't read or write.
        DeltaConcurrentModificationException: other writers were faster ten times over.
        OSError: the storage failed. What was done so far is in the backup.
    """
    log = log_of(uri, conf)
    found = find_log_defects(log)
    files = FileDefects()
    if found.is_readable:
        files = _files(log, found)
    defects = (*found.defects, *files.defects)
    if dry_run or not any(each.mend for each in defects):
        return TableRepaired(table=log.table, dry_run=dry_run, defects=defects)
    refuse_maintenance(log.store, log.table, "REPAIR")
    replaced = [*found.broken, *filter(None, (found.torn, found.hint, found.checksum))]
    linked = OwnFiles(log.store, log.table).link_error(log_path(log.table))
    if linked is not None and (replaced or found.leftovers):
        raise linked
    backup = Backup.new(log)
    backup.begin(_newest(log, found).version, replaced, files.gone, files.before)
    if found.torn is not None:
        _move_torn(log, backup, found.torn)
    version = None
    if files.gone or files.after:
        planned = {each.path for each in (*files.gone, *files.before)}
        version = retry_on_conflict(lambda: _commit(log, planned, backup), clock=log.clock)
    _mend_log(log, found, backup)
    return TableRepaired(
        table=log.table, dry_run=False, defects=defects, version=version, backup=backup.folder
    )


def _files(log: DeltaLog, found: LogDefects) -> FileDefects:
    snapshot = _newest(log, found)
    layout = FileLayout.from_terms(snapshot.terms, log.conf, snapshot.domain_metadata)
    return find_file_defects(snapshot, layout)


def _newest(log: DeltaLog, found: LogDefects) -> Snapshot:
    if found.torn is None:
        return log.update()
    return log.snapshot_at(version_of(found.torn) - 1)


def version_of(path: str) -> int:
    """The version in the name of a file of the log."""
    name = parse_log_name(path.rpartition("/")[2])
    assert name is not None  # it was found by its name
    return name.version


def _commit(log: DeltaLog, planned: set[str], backup: Backup) -> int | None:
    """Take the defects of files, as they are now, out of the table; `None` where none is left."""
    txn = log.start_transaction()
    snapshot = txn.snapshot
    assert snapshot is not None  # it was read before
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    txn.reads.read_whole_table()
    # Looked for again: a writer may have been faster, and a listing wrong once.
    files = find_file_defects(snapshot, txn.changes.file_layout)
    gone = [each for each in files.gone if each.path in planned]
    after = [each for each in files.after if each.path in planned]
    if not gone and not after:
        return None
    now = log.clock.now_ms()
    actions: list[Action] = [each.remove(now, data_change=False) for each in gone]
    actions += after
    metrics = {"numRemovedFiles": len(gone), "numUpdatedFiles": len(after)}
    return txn.commit(actions, Operation("FSCK", {_BACKUP: backup.name}, metrics))


def _move_torn(log: DeltaLog, backup: Backup, path: str) -> None:
    """Move a torn commit away; once, whoever else repairs.

    Only the holder of the claim may delete it, so that no one deletes the good commit that another
    writer makes in its place.
    """
    claim = log_path(log.table, f"{REPAIR_FOLDER}/{path.rpartition('/')[2]}{CLAIM}")
    try:
        log.store.write(claim, [backup.folder])
    except FileExistsError:
        raise DeltaAnalysisError(
            f"{path} is being moved away by another repair of {log.table}, or was when that was "
            f"killed. If none is running, delete {claim} and repair again.",
            table=log.table,
            path=claim,
        ) from None
    own = OwnFiles(log.store, log.table)
    try:
        with contextlib.suppress(FileNotFoundError):
            kept = backup.keep(path)
            if _is_torn(log, path) and log.store.read_bytes(path) == kept:
                own.delete_file(path)
    finally:
        own.delete_file(claim)
    log.doubt()


def _is_torn(log: DeltaLog, path: str) -> bool:
    found = find_log_defects(log)
    return found.torn == path


def _mend_log(log: DeltaLog, found: LogDefects, backup: Backup) -> None:
    """What the state does not depend on."""
    own = OwnFiles(log.store, log.table)
    snapshot = log.update()
    kept = {path: _backed_up(backup, path) for path in found.broken}
    if found.hint is not None and _backed_up(backup, found.hint) is not None:
        hint = read_last_checkpoint(log.store, log.table)
        if hint is not None and hint.version > snapshot.version:
            # The new one would give way to it.
            with contextlib.suppress(FileNotFoundError):
                own.delete_file(found.hint)
    if found.wants_checkpoint:
        log.checkpoint()
    for path, data in kept.items():
        # Only now that another stands in for it, and only what was found: a file of that name may
        # be a good one by now.
        with contextlib.suppress(FileNotFoundError):
            if data is not None and log.store.read_bytes(path) == data:
                own.delete_file(path)
    if found.checksum is not None and _backed_up(backup, found.checksum) is not None:
        _mend_checksum(log, snapshot, found.checksum)
    for path in found.leftovers:
        with contextlib.suppress(FileNotFoundError):
            own.delete_file(path)


def _backed_up(backup: Backup, path: str) -> bytes | None:
    """A file of the log, copied; `None` where it is gone by now."""
    try:
        return backup.keep(path)
    except FileNotFoundError:
        return None


def _mend_checksum(log: DeltaLog, snapshot: Snapshot, path: str) -> None:
    own = OwnFiles(log.store, log.table)
    if path != checksum_path(log.table, snapshot.version):
        # A commit came after it, and has its own.
        with contextlib.suppress(FileNotFoundError):
            own.delete_file(path)
        return
    info = snapshot.commit_info
    text = checksum_of(snapshot.state, None if info is None else info.txn_id).to_json()
    own.replace(path, [text])


@command("undo repair")
def undo_repair(
    uri: TableOrLog, backup: str, *, conf: Mapping[str, str] | None = None
) -> int | None:
    """Take a repair back: what it removed or replaced is there again.

    Files of the log come back where nothing has their name: a torn commit only as long as its
    version was not made since. The hint and a checksum replace what is there. Files that were
    taken out of the table are added again in one commit, and others get the size and the
    statistics that they had. Where rows were deleted or replaced since, or columns changed, what
    was in those files may have had to go too: then nothing is put back.

    Args:
        uri: where the table is, or its `DeltaLog`.
        backup: the folder that `repair` returned.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version of the commit; `None` where none was needed.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: no such backup, or the table was changed since.
        DeltaConcurrentModificationException: other writers were faster ten times over.
        OSError: the storage failed; call it again.
    """
    log = log_of(uri, conf)
    refuse_maintenance(log.store, log.table, "REPAIR")
    plan, kept = read_plan(log, backup)
    done = None
    repaired = None
    if plan["gone"] or plan["before"]:
        repaired = _committed_as(log, plan["version"], backup)
    if repaired is not None:
        gone = [AddFile.from_json_value(each) for each in plan["gone"]]
        before = [AddFile.from_json_value(each) for each in plan["before"]]
        done = retry_on_conflict(
            lambda: _put_back(log, repaired, gone, before, backup), clock=log.clock
        )
    for name, data in kept.items():
        path, kind = log_path(log.table, name), _kind(name)
        if kind is LogFileKind.COMMIT:
            with contextlib.suppress(FileExistsError):
                # Never over the commit of a writer that is at it now.
                text = data.decode(errors="replace").removesuffix("\n")
                log.store.write(path, text.split("\n") if text else [])
        elif kind in (None, LogFileKind.CRC) or not _is_there(log, path):
            OwnFiles(log.store, log.table).put(path, data)
    log.doubt()
    return done


def _committed_as(log: DeltaLog, after: int, backup: str) -> int | None:
    """The repair's commit, if it came to it: it may have been killed before, or right after."""
    name = backup.rstrip("/").rpartition("/")[2]
    for version in range(after + 1, log.update().version + 1):
        try:
            info = read_commit_info(log.store, commit_path(log.table, version))
        except FileNotFoundError:
            raise DeltaAnalysisError(
                f"nothing was put back into {log.table}: version {version} is no longer in the "
                f"log, so what came after the repair of version {after} can't be determined. The "
                f"backup {backup} has what the repair took out.",
                table=log.table,
                version=version,
            ) from None
        said = info.get("operationParameters")
        if not isinstance(said, dict) or info.get("operation") != "FSCK":
            continue
        if name in str(said.get(_BACKUP)):
            return version
    return None


def _is_there(log: DeltaLog, path: str) -> bool:
    info = log.store.filesystem.get_file_info(log.store.filesystem_path(path))
    return bool(info.is_file)


def _kind(name: str) -> LogFileKind | None:
    """`None` for the hint, which has no version in its name."""
    found = None if name == LAST_CHECKPOINT else parse_log_name(name)
    return None if found is None else found.kind


def _put_back(
    log: DeltaLog, repaired: int, gone: list[AddFile], before: list[AddFile], backup: str
) -> int | None:
    txn = log.start_transaction()
    snapshot = txn.snapshot
    assert snapshot is not None  # it was read before
    txn.reads.read_whole_table()
    live = {data_path(log.table, each.path): each for each in snapshot.files()}
    actions = [each for each in gone if data_path(log.table, each.path) not in live]
    if actions:
        _check_unchanged(log, repaired, snapshot)
    for each in before:
        now = live.get(data_path(log.table, each.path))
        if now is not None and _is_other(each, now):
            actions.append(each)
    if not actions:
        return None
    # Not as new data: the rows were there before, as far as any reader knows.
    again = [
        AddFile.from_json_value(each.to_json_value() | {"dataChange": False}) for each in actions
    ]
    return txn.commit(again, Operation("FSCK", {"undo": backup}))


def _check_unchanged(log: DeltaLog, repaired: int, snapshot: Snapshot) -> None:
    """Refuse to add files again to a table that may have taken their rows out since."""
    versions = range(repaired + 1, snapshot.version + 1)
    paths = {version: commit_path(log.table, version) for version in versions}
    what = None
    for commit in read_commits(log.store, log.table, paths):
        if pc.any(commit.removed()["data_change"]).as_py():
            what = f"version {commit.version} deleted or replaced rows"
    if what is None and _shape(log.snapshot_at(repaired)) != _shape(snapshot):
        what = "its columns were changed"
    if what is not None:
        raise DeltaAnalysisError(
            f"nothing was put back into {log.table}: {what} since the repair (version {repaired}), "
            "and that may also concern the files that it took out. Where they exist again, RESTORE "
            f"to version {repaired - 1} brings them back, and takes back all that came after it.",
            table=log.table,
            version=repaired,
        )


def _shape(snapshot: Snapshot) -> tuple[str, str, list[str]]:
    metadata = snapshot.metadata
    return metadata.id, metadata.schema_string, list(metadata.partition_columns)


def _is_other(before: AddFile, now: AddFile) -> bool:
    same_rows = before.deletion_vector == now.deletion_vector
    return same_rows and (before.size, before.stats) != (now.size, now.stats)
