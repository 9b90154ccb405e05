"""What is broken in the log itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakelog.core.errors import (
    CorruptCheckpointError,
    CorruptCommitError,
    DeltaError,
    LogGapError,
)
from lakelog.core.log.checkpoint_reader import CheckpointReader
from lakelog.core.log.commit_file import read_commit
from lakelog.core.log.drafts import old_drafts
from lakelog.core.log.file_names import LAST_CHECKPOINT, commit_path, log_path
from lakelog.core.log.last_checkpoint import read_last_checkpoint
from lakelog.core.log.segment import find_segment, list_log
from lakelog.core.maintain.repair.defects import Defect
from lakelog.core.state.checksums import checksum_of, differences, read_checksum
from lakelog.core.state.replay import load_state
from lakelog.logstores.doctor.lock_table_checks import as_dynamodb_store

if TYPE_CHECKING:
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.log.segment import CheckpointFiles, Listing
    from lakelog.core.state.replay import State
    from lakelog.logstores.contract import LogStore

_STILL_MS = 60_000
"""A file that was written to in the last minute may be one that is still being written."""


@dataclass(slots=True)
class LogDefects:
    """What was found, and what mends it."""

    defects: list[Defect] = field(default_factory=list)
    torn: str | None = None
    """The newest commit, where it has to go."""
    broken: list[str] = field(default_factory=list)
    """Files of checkpoints that can't be read and that nothing needs."""
    hint: str | None = None
    """The hint, where it lies."""
    checksum: str | None = None
    """The newest version's checksum, where it is wrong."""
    leftovers: list[str] = field(default_factory=list)
    wants_checkpoint: bool = False
    is_readable: bool = False
    """Whether the table can be read once `torn` is gone."""

    def add(self, kind: str, path: str, problem: str, mend: str | None) -> None:
        """Note one."""
        self.defects.append(Defect(kind=kind, path=path, problem=problem, mend=mend))


def find_log_defects(log: DeltaLog) -> LogDefects:
    """Look through a log; nothing is changed.

    Raises:
        TableNotFoundError: there is no log.
        UnsupportedFeatureError: the table has a feature that this version can't read.
        OSError: the storage failed.
    """
    found = LogDefects()
    store, table = log.store, log.table
    newest = find_newest(store, table, log.clock.now_ms(), found)
    if newest is None:
        return found
    listing = list_log(store, table, 0, newest)
    state = _state(log, found, newest)
    if state is None:
        return found
    found.is_readable = True
    good = _checkpoints(log, found, listing, newest)
    _hint(log, found, listing, newest, good)
    interval = log.snapshot.properties.checkpoint_interval if found.torn is None else None
    missing = newest - (-1 if good is None else good.version)
    if interval is not None and missing > interval and not found.wants_checkpoint:
        found.add(
            "checkpoint",
            log_path(table),
            f"none covers the last {missing} versions, but the table asks for one every {interval}",
            "one of the newest version is written",
        )
        found.wants_checkpoint = True
    if found.torn is None:
        _checksum(log, found, listing, newest, state)
    boundary = -1 if good is None else good.version
    now = log.clock.now_ms()
    for each in old_drafts(store, table, boundary, now, now):
        found.leftovers.append(each.path)
        found.add("leftover", each.path, "a draft of a writer that was killed", "it is deleted")
    return found


def find_newest(store: LogStore, table: str, now_ms: int, found: LogDefects) -> int | None:
    """The newest version that stays; `None` where there is no way to know.

    Args:
        store: has the table.
        table: its URI.
        now_ms: milliseconds since the epoch: a young commit may still be being written.
        found: gets a gap, and a newest commit that can't be read.

    Raises:
        TableNotFoundError: there is no log.
        OSError: the storage failed.
    """
    try:
        segment = find_segment(store, table)
    except LogGapError as exc:
        found.add("gap", exc.path, str(exc), None)
        return None
    newest = segment.version
    held = segment.checkpoint is not None and segment.checkpoint.version >= newest
    if not segment.commits and held:
        return newest
    path = commit_path(table, newest)
    try:
        read_commit(store, table, newest)
    except CorruptCommitError as exc:
        if not _is_cut(store.read_bytes(path)):
            # Its writer has finished it, and other clients may read it.
            found.add("commit", path, f"{exc} It is whole, so it was not torn.", None)
            return None
        age = now_ms - segment.last_file.modification_time
        if newest == 0:
            found.add("torn commit", path, f"{exc} It is the table's first.", None)
            return None
        if held:
            found.add("torn commit", path, f"{exc} A checkpoint has its version.", None)
            return newest
        if as_dynamodb_store(store) is not None:
            problem = f"{exc} A row of the lock table says that it is there."
            found.add("torn commit", path, problem, None)
            return None
        if age < _STILL_MS:
            problem = f"{exc} It was written {age // 1000} s ago, and may still be: look again."
            found.add("torn commit", path, problem, None)
            return None
        found.torn = path
        found.add(
            "torn commit",
            path,
            str(exc),
            f"it is moved to the backup, and version {newest - 1} is the newest again",
        )
        return newest - 1
    return newest


def _is_cut(data: bytes) -> bool:
    """Whether a commit is empty, or has a line that is no JSON by any reading."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    try:
        for line in lines:
            json.loads(line)  # takes what orjson does not, such as NaN
    except ValueError:
        return True
    except RecursionError:
        return False
    return not lines


def _state(log: DeltaLog, found: LogDefects, newest: int) -> State | None:
    try:
        state = load_state(log.store, log.table, newest)
        _ = state.files.live
    except LogGapError as exc:
        found.add("gap", exc.path, str(exc), None)
    except CorruptCommitError as exc:
        found.add("commit", exc.path, str(exc), None)
    except CorruptCheckpointError as exc:
        found.add("checkpoint", exc.path, f"{exc} Nothing stands in for it.", None)
    except DeltaError as exc:
        if "path" not in exc.fields:
            raise
        found.add("commit", exc.path, str(exc), None)
    else:
        return state
    return None


def _checkpoints(
    log: DeltaLog, found: LogDefects, listing: Listing, newest: int
) -> CheckpointFiles | None:
    """The newest checkpoint that can be read; what is above it, and complete, is broken."""
    segment = find_segment(log.store, log.table, newest)
    for checkpoint in reversed(listing.checkpoints):
        reader = CheckpointReader(log.store, replace(segment, checkpoint=checkpoint, hint=None))
        try:
            _ = reader.files(), reader.tombstones()
        except CorruptCheckpointError as exc:
            found.wants_checkpoint = True
            found.broken += [each.path for each in checkpoint.files]
            found.add(
                "checkpoint",
                checkpoint.files[0].path,
                str(exc),
                "one of the newest version is written, and this one is moved to the backup",
            )
            continue
        return checkpoint
    return None


def _hint(
    log: DeltaLog,
    found: LogDefects,
    listing: Listing,
    newest: int,
    good: CheckpointFiles | None,
) -> None:
    path = log_path(log.table, LAST_CHECKPOINT)
    try:
        log.store.read_bytes(path)
    except FileNotFoundError:
        return
    hint = read_last_checkpoint(log.store, log.table)
    if hint is None:
        problem = "it can't be read, or its checksum does not match"
    elif hint.version > newest:
        problem = f"it names version {hint.version}, and the newest is {newest}"
    elif all(each.version != hint.version for each in listing.checkpoints):
        problem = f"it names a checkpoint of version {hint.version}, which does not exist"
    elif good is not None and good.version == hint.version:
        segment = replace(find_segment(log.store, log.table, newest), checkpoint=good, hint=hint)
        try:
            CheckpointReader(log.store, segment).files()
        except CorruptCheckpointError as exc:
            problem = f"it is wrong of the checkpoint that it names: {exc}"
        else:
            return
    else:
        return
    found.hint = path
    found.wants_checkpoint = True
    found.add("hint", path, problem, "a checkpoint of the newest version is written, with a hint")


def _checksum(
    log: DeltaLog, found: LogDefects, listing: Listing, newest: int, state: State
) -> None:
    status = listing.checksums.get(newest)
    if status is None:
        return
    recorded = read_checksum(log.store, log.table, newest)
    if recorded is None:
        problem = "it can't be read"
    else:
        problem = "; ".join(differences(recorded, checksum_of(state, None)))
    if problem:
        found.checksum = status.path
        found.add("checksum", status.path, problem, "it is made again")
