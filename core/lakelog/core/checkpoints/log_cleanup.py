"""Deleting the expired part of a log: commits, checkpoints and checksums beyond the retention.

A *boundary* is the version of a complete checkpoint. Everything below it is deleted, it and
everything above stays: so each version that is kept can be rebuilt from that checkpoint and the
commits after it. The newest boundary is taken for which all of this holds:

- everything below is older than `delta.logRetentionDuration`, counted in whole days (UTC);
- the same by the times that the commits carry themselves, where the table has them;
- the boundary's own time is not moved by an earlier commit (a commit that seems no later than the
  one before it counts as later; without that one its time would change), unless it carries it;
- the commits from the boundary on are there without a gap;
- its checkpoint was read completely and matches the older history, as long as that is there to
  compare. (History of more than 1000 commits, or damaged history, is not compared.)

Where the newest checkpoint is a V2 one, it gets a second top level under a classic name first, as
in Delta. Files are deleted in the order of their versions, and the first that can't be deleted ends
the round: what is left never has a hole. Drafts of killed writers are deleted with the versions
that they were meant for, and sidecars once no remaining checkpoint names them.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lakelog.core.actions.file_keys import file_keys, rows_without
from lakelog.core.checkpoints.write_checkpoint import write_under_classic_name
from lakelog.core.errors import CorruptCheckpointError, DeltaError
from lakelog.core.features.in_commit_timestamps import required_time
from lakelog.core.log.checkpoint_reader import CheckpointReader
from lakelog.core.log.commit_identity import read_commit_info
from lakelog.core.log.drafts import old_drafts
from lakelog.core.log.file_names import SIDECAR_FOLDER, LogFileKind, commit_path, log_path
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.log.segment import Listing, LogSegment, find_segment, list_log, log_files
from lakelog.core.state.replay import load_state
from lakelog.logstores.threads import WRITES, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from lakelog.core.clock import Clock
    from lakelog.core.log.checkpoint_reader import SmallActions
    from lakelog.core.log.segment import CheckpointFiles
    from lakelog.core.state.replay import State
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.logstores.contract import FileStatus, LogStore

_log = logging.getLogger("lakelog")

_DAY_MS = 86_400_000
_LONG_HISTORY = 1000
_AT_ONCE = 64
_PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


class _Old(NamedTuple):
    """A file that may go once the boundary lies above it."""

    version: int
    """The boundary must be higher."""
    path: str


def clean_log(
    snapshot: Snapshot, clock: Clock, *, keep_ms: int | None = None, unit_ms: int = _DAY_MS
) -> int:
    """Delete what has expired of a table's log; do nothing where the table forbids it.

    Args:
        snapshot: the newest version, of which a checkpoint was just written.
        clock: decides what is old.
        keep_ms: how long to keep what has expired; `delta.logRetentionDuration` if `None`.
        unit_ms: the age is counted in whole units of this length.

    Returns:
        How many files were deleted.

    Raises:
        OSError: the storage can't be listed. A file that can't be deleted is only logged.
    """
    if not snapshot.properties.enable_expired_log_cleanup:
        return 0
    own = OwnFiles(snapshot.store, snapshot.table)
    if _is_linked(own, log_path(snapshot.table)):
        return 0
    now = clock.now_ms()
    cutoff = now - (snapshot.properties.log_retention_ms if keep_ms is None else keep_ms)
    # Whole days, as Delta counts: writers on hosts whose clocks differ then clean the same
    # versions.
    cutoff -= cutoff % unit_ms
    store, table = snapshot.store, snapshot.table
    times = snapshot.terms.in_commit_since
    old, candidates = _expired(
        store, table, cutoff, snapshot.version, snapshot.version + 1 if times is None else times[0]
    )
    candidates = [version for version in candidates if version >= _protected_below(snapshot)]
    if not candidates:
        return 0
    listing = list_log(store, table, min(candidates))
    # From the newest down, and only until one holds: each look reads a whole checkpoint.
    boundary = next(
        (
            version
            for version in reversed(candidates)
            if _is_old_by_itself(snapshot, version - 1, cutoff)
            and _can_be_kept(store, table, listing, version)
        ),
        None,
    )
    if boundary is None:
        return 0
    # Before anything is deleted: from then on such a client would see a gap, and take the log for
    # damaged.
    _tell_old_clients(snapshot, listing)
    gone = _delete(own, [each.path for each in old if each.version < boundary])
    gone += _delete(own, [each.path for each in old_drafts(store, table, boundary, cutoff, now)])
    return gone + _delete_sidecars(own, store, table, listing, boundary, cutoff)


def _tell_old_clients(snapshot: Snapshot, listing: Listing) -> None:
    """Let a client that does not know V2 checkpoints find out why commits are missing."""
    found = [each for each in listing.checkpoints if each.version == snapshot.version]
    if not found or not all(each.is_v2 for each in found):
        return
    top = _reader(snapshot.store, snapshot.table, listing, found[-1]).top_level()
    if top.sidecars:
        write_under_classic_name(snapshot, top)


def _protected_below(snapshot: Snapshot) -> int:
    """No boundary below this: history up to it goes as a whole or stays (checkpointProtection)."""
    if "checkpointProtection" not in (snapshot.protocol.writer_features or ()):
        return 0
    return int(snapshot.properties.get(_PROTECTED))


def _is_old_by_itself(snapshot: Snapshot, version: int, cutoff: int) -> bool:
    """Whether a commit, and so everything before it, is old by the time that it carries."""
    since = snapshot.terms.in_commit_since
    if since is None or version < since[0]:
        return True
    path = commit_path(snapshot.table, version)
    try:
        info = read_commit_info(snapshot.store, path)
    except FileNotFoundError:
        return True  # the log begins with the boundary
    return required_time(info, snapshot.table, path, version) <= cutoff


def _expired(
    store: LogStore, table: str, cutoff: int, newest: int, times_since: int
) -> tuple[list[_Old], list[int]]:
    """The files from the start of the log on that have expired, and the boundaries among them.

    Stops at the first that has not, so that a listing reads little more than what may go. From the
    version `times_since` on commits carry their times, which no cleanup can move.
    """
    old: list[_Old] = []
    candidates: list[int] = []
    checkpoints: set[int] = set()
    last: int | None = None
    for status, name in log_files(store.list_from(log_path(table, f"{0:020d}."))):
        if name.version > newest and name.kind is not LogFileKind.COMPACTED:
            break
        if name.kind is LogFileKind.COMMIT:
            moved = last is not None and status.modification_time <= last
            time = last + 1 if moved and last is not None else status.modification_time
            stays = not moved or name.version >= times_since
            if name.version in checkpoints and stays and old:
                candidates.append(name.version)
            if time > cutoff:
                break
            last = time
        elif name.kind is LogFileKind.COMPACTED:
            # It is useless to a reader that starts at its first version.
            old.append(_Old(-1 if name.first is None else name.first - 1, status.path))
            continue
        else:
            if name.kind is not LogFileKind.CRC:
                checkpoints.add(name.version)
            if status.modification_time > cutoff:
                # A boundary may be here still, and none above.
                newest = min(newest, name.version)
                continue
        old.append(_Old(name.version, status.path))
    return old, candidates


def _can_be_kept(store: LogStore, table: str, listing: Listing, version: int) -> bool:
    """Whether that version and all after it can be rebuilt without anything older."""
    latest = listing.latest()
    found = [each for each in listing.checkpoints if each.version == version]
    if latest is None or any(v not in listing.commits for v in range(version, latest + 1)):
        _log.warning(
            "%s: log cleanup deletes nothing, because the commits after version %d are missing",
            table,
            version,
        )
        return False
    for checkpoint in reversed(found):
        reader = _reader(store, table, listing, checkpoint)
        try:
            small, files = reader.small_actions(), reader.files()
            reader.tombstones()
        except CorruptCheckpointError as exc:
            _log.warning("log cleanup does not rely on a checkpoint: %s", exc)
            continue
        history = _without(store, table, found)
        if history is None or _agree(table, history, small, files):
            return True
        _log.error(
            "%s: log cleanup deletes nothing, because the checkpoint %s does not match the older "
            "log. Compare the two before deleting anything.",
            table,
            checkpoint.files[0].path,
        )
    return False


def _without(store: LogStore, table: str, checkpoints: Sequence[CheckpointFiles]) -> State | None:
    """Rebuild the checkpoint's version from older files; `None` if that is impossible."""
    version = checkpoints[0].version
    try:
        segment = find_segment(store, table, version, rejected=checkpoints)
        if len(segment.commits) > _LONG_HISTORY:
            return None
        state = load_state(store, table, version, rejected=checkpoints)
        _ = state.files.live
    except DeltaError:
        return None
    return state


def _agree(table: str, state: State, small: SmallActions, files: pa.Table) -> bool:
    return (
        state.protocol == small.protocol
        and state.metadata == small.metadata
        and state.files.live.num_rows == files.num_rows
        and not rows_without(table, files, file_keys(table, state.files.live)).num_rows
    )


def _reader(
    store: LogStore, table: str, listing: Listing, checkpoint: CheckpointFiles
) -> CheckpointReader:
    last = listing.commits.get(checkpoint.version, checkpoint.files[0])
    return CheckpointReader(store, LogSegment(table, checkpoint.version, checkpoint, (), last))


def _delete(own: OwnFiles, paths: Sequence[str]) -> int:
    """Delete files in order, some at once, until one can't be; return how many were deleted."""
    gone = 0
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        done = at_once(partial(_deleted, own), some, WRITES, "lakelog-cleanup")
        gone += sum(done)
        # Oldest first, without skipping any: a gap in the middle would look the same as damage.
        if not all(done):
            break
    return gone


def _deleted(own: OwnFiles, path: str) -> bool:
    try:
        own.delete_file(path)
    except FileNotFoundError:
        return True  # another client cleans the same log
    except OSError as exc:
        _log.warning("log cleanup can't delete %s: %s", path, exc)
        return False
    return True


def _delete_sidecars(
    own: OwnFiles, store: LogStore, table: str, listing: Listing, boundary: int, cutoff: int
) -> int:
    """Delete the old sidecars that no checkpoint from the boundary on names."""
    if _is_linked(own, log_path(table, SIDECAR_FOLDER)):
        return 0
    old = [each.path for each in _sidecar_files(store, table) if each.modification_time <= cutoff]
    if not old:
        return 0
    named: set[str] = set()
    for checkpoint in listing.checkpoints:
        # Those below the boundary are gone by now, or will be; what they alone name may go with
        # them.
        if checkpoint.version >= boundary:
            try:
                named.update(_reader(store, table, listing, checkpoint).sidecars())
            except DeltaError as exc:
                # Not knowing what one checkpoint names is not knowing that a file is named by none.
                _log.warning("log cleanup keeps all sidecars: %s", exc)
                return 0
    return _delete(own, [path for path in old if path not in named and own.owns(path)])


def _is_linked(own: OwnFiles, folder: str) -> bool:
    error = own.link_error(folder)
    if error is not None:
        _log.warning("log cleanup deletes nothing in %s: %s", folder, error)
    return error is not None


def _sidecar_files(store: LogStore, table: str) -> Iterator[FileStatus]:
    try:
        found = store.list_from(log_path(table, f"{SIDECAR_FOLDER}/"))
        yield from (each for each in found if not each.is_directory)
    except (FileNotFoundError, NotADirectoryError):
        return
