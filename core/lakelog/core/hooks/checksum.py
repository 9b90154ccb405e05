"""Writing version checksums after commits.

A checksum costs a request, and on an object store a commit is one request: there it is written
only on demand (`spark.databricks.delta.writeChecksumFile.enabled`). It is made in one of two ways.

- From the checksum before and what the commit did to files (`file_change`), where both are certain:
  the work is that of the commit, not that of the table.
- By counting the files of the committed version, where they are known without reading anything:
  the transaction read them, or the whole log was read.

Otherwise there is none until a checkpoint has loaded the files.

A local disk takes the file as fast as a thread takes the work. Elsewhere it is made in the
background (`background.py`), from the state that the commit made; a later one never counts.

What a commit did is certain only where each of its actions is known to do what it says. Replay goes
by keys: a file that is added twice is there once, and one that is removed but is not there changes
nothing. So a sum over the actions of a commit is right only if

- a removed file was live: the transaction was handed it, with this deletion vector, by the
  snapshot that it read, and no commit since then has named it. Its size is the one that the
  snapshot has; what the action claims does not count; and
- an added file is new: either the transaction wrote it, under a name with a UUID that it drew, or
  it takes the place of a file that this commit removes, with another deletion vector. Or it is a
  file that the transaction was handed, which the commit describes again. Who commits files that
  were there before, as a job does whose last commit had an unknown outcome, may add what is live.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelog.core import keys
from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.hooks.background import do_later
from lakelog.core.log.file_names import checksum_path
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.paths import is_local, is_near, path_key
from lakelog.core.state.checksums import (
    checksum_of,
    completed_checksum,
    has_vectors,
    read_checksum,
)
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lakelog.core.actions import Protocol
    from lakelog.core.actions.objects import DeletionVectorDescriptor
    from lakelog.core.conf import DeltaConf
    from lakelog.core.conflicts.read_set import Handed
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.hooks.post_commit import CommittedTransaction
    from lakelog.core.state.checksums import VersionChecksum
    from lakelog.core.state.replay import State
    from lakelog.core.table_log import TableLog
    from lakelog.logstores import LogStore


def checksum_hook(committed: CommittedTransaction) -> None:
    """Write the checksum of the version that was committed, if it can be had cheaply.

    Raises:
        OSError: the storage refused, and the checksum was not left to the background.
    """
    log = committed.delta_log
    conf, table = log.conf, log.table
    wanted = conf.read(keys.CHECKSUMS)
    if not (is_near(table) if wanted is None else wanted):
        return
    snapshot = log.snapshot
    # Another commit followed before this thread came here, or this one is not known yet: the state
    # is that of another version.
    if snapshot.version != committed.version:
        return
    # Not the commit itself, which holds all of its actions, is kept for the background.
    checksum = _Checksum(
        log=log,
        version=committed.version,
        state=snapshot.state,
        terms=committed.terms,
        txn_id=committed.commit_info.txn_id,
        txn_before=_txn_before(committed),
        change=file_change(committed),
    )
    if _in_background(conf, table):
        do_later(table, f"the checksum of version {committed.version}", checksum.write)
    else:
        checksum.write()


def _in_background(conf: DeltaConf, table: str) -> bool:
    chosen = conf.read(store_keys.CHECKSUM_LATER)
    later = not is_local(table) if chosen is None else chosen
    # A failure that has to be raised needs a caller that is still waiting.
    return later and not conf.read(keys.THROW)


@dataclass(slots=True, kw_only=True)
class _Checksum:
    """A checksum that is due, and all that it follows from."""

    log: TableLog
    version: int
    state: State
    terms: TableTerms
    txn_id: str | None
    txn_before: str | None
    change: FileChange | None

    def write(self) -> None:
        checksum = self._made()
        if checksum is None:
            return
        self.log.last_checksum = (self.version, checksum)
        publish_checksum(self.log.store, self.log.table, self.version, checksum)

    def _made(self) -> VersionChecksum | None:
        before = None if self.change is None else self._before()
        if self.change is not None and before is not None:
            grown = _changed(before, self.change, self.state.protocol)
            if grown is not None:
                return completed_checksum(grown, self.state, self.terms, self.txn_id)
        at_hand = self.state.files.is_at_hand
        return checksum_of(self.state, self.txn_id, self.terms) if at_hand else None

    def _before(self) -> VersionChecksum | None:
        """The checksum of the version before, if it is of the commit that was there."""
        version, txn_id, known = self.version - 1, self.txn_before, self.log.last_checksum
        if version < 0:
            return None
        # A kept log outlives its table, and the next one at the path has the same versions.
        if (
            txn_id is not None
            and known is not None
            and (known[0], known[1].txn_id) == (version, txn_id)
        ):
            return known[1]
        found = read_checksum(self.log.store, self.log.table, version)
        if found is None or (None not in (txn_id, found.txn_id) and found.txn_id != txn_id):
            return None
        return found


def publish_checksum(store: LogStore, table: str, version: int, checksum: VersionChecksum) -> None:
    """Write the file unless it is there: another client may have been faster, with the same.

    One that names another transaction is of a table that was here before, or of a commit that
    somebody took back, and gives way.

    On a local disk it is not brought to the platter, which costs as much as the commit did: a
    checksum that a crash takes away is one that was never written, and a torn one is passed over.
    """
    path, text = checksum_path(table, version), checksum.to_json()
    if not is_local(path):
        try:
            store.write(path, [text])
        except FileExistsError:
            if _is_foreign(store, table, version, checksum):
                OwnFiles(store, table).replace(path, [text])
        return
    there = store.filesystem.get_file_info(store.filesystem_path(path)).is_file
    if there and not _is_foreign(store, table, version, checksum):
        return
    own = OwnFiles(store, table)
    with own.staged(path) as (filesystem, draft), filesystem.open_output_stream(draft) as sink:
        sink.write(f"{text}\n".encode())


def _is_foreign(store: LogStore, table: str, version: int, checksum: VersionChecksum) -> bool:
    found = read_checksum(store, table, version)
    return (
        found is not None
        and None not in (found.txn_id, checksum.txn_id)
        and found.txn_id != checksum.txn_id
    )


def _changed(
    before: VersionChecksum, change: FileChange, protocol: Protocol
) -> VersionChecksum | None:
    """The numbers of files after a change; `None` where those before don't say enough."""
    vectors = deleted = None
    if has_vectors(protocol):
        if before.num_deletion_vectors is None or before.num_deleted_records is None:
            return None
        vectors = before.num_deletion_vectors + change.vectors
        deleted = before.num_deleted_records + change.deleted
    return replace(
        before,
        num_files=before.num_files + change.files,
        table_size_bytes=before.table_size_bytes + change.size,
        num_deletion_vectors=vectors,
        num_deleted_records=deleted,
    )


def _txn_before(committed: CommittedTransaction) -> str | None:
    """The transaction that made the version before, where that is known."""
    if committed.winners:
        info = committed.winners[-1].commit_info
    else:
        read = committed.read_snapshot
        info = read.commit_info if read is not None else None
        if committed.read_version != committed.version - 1:
            info = None
    return None if info is None else info.txn_id


_FRESH_NAME = re.compile(
    r"(.*/)?part-\d{5}-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b[^/]*"
)
_REWRITES = frozenset({"OPTIMIZE", "REORG"})
"""Operations whose `dataChange=false` files are new; others use it to describe a file again."""


@dataclass(slots=True)
class FileChange:
    """What a commit adds to each number; less than zero where it takes away."""

    files: int = 0
    size: int = 0
    vectors: int = 0
    deleted: int = 0
    """Rows that deletion vectors hide."""

    def count(self, sign: int, size: int, cardinality: int | None) -> None:
        """Add a file, or with -1 take one away; `cardinality` is of its deletion vector."""
        self.files += sign
        self.size += sign * size
        if cardinality is not None:
            self.vectors += sign
            self.deleted += sign * cardinality


def file_change(committed: CommittedTransaction) -> FileChange | None:
    """What the commit changed; `None` where only a look at all files could tell."""
    adds = {a.path: a for a in committed.actions if isinstance(a, AddFile)}
    removes = {a.path: a for a in committed.actions if isinstance(a, RemoveFile)}
    named = sum(isinstance(action, AddFile | RemoveFile) for action in committed.actions)
    # One path twice, with two vectors perhaps: a sum would count the file twice.
    if named != len(adds) + len(removes):
        return None
    handed: Handed = {}
    if removes or not committed.commit_info.is_blind_append:
        if committed.reads is None:
            return None
        handed = committed.reads.seen([*removes, *adds])
        if not _untouched_by_winners(committed, handed):
            return None
    change = FileChange()
    for path, remove in removes.items():
        if path not in handed or not _same_vector(handed[path][1], remove.deletion_vector):
            return None
        change.count(-1, *_size_and_deleted(handed[path]))
    rewrites = bool(removes) and committed.commit_info.operation in _REWRITES
    for path, add in adds.items():
        vector = add.deletion_vector
        if path in handed:
            stays = _same_vector(handed[path][1], vector)
            if stays == (path in removes):
                return None
            if stays:
                change.count(-1, *_size_and_deleted(handed[path]))
        elif (
            vector is not None
            or not committed.has_written
            or not (add.data_change or rewrites)
            or not _FRESH_NAME.fullmatch(path)
        ):
            return None
        change.count(1, add.size, None if vector is None else vector.cardinality)
    return change


def _size_and_deleted(file: tuple[int, Mapping[str, Any] | None]) -> tuple[int, int | None]:
    size, vector = file
    return size, None if vector is None else vector["cardinality"]


def _untouched_by_winners(committed: CommittedTransaction, paths: Collection[str]) -> bool:
    """Whether files of the table are as they were when the transaction read it.

    A winner that removed one would have been a conflict; one that described it again was none.
    """
    table = committed.delta_log.table
    if len(committed.winners) != committed.version - 1 - committed.read_version:
        return False
    if not committed.winners or not paths:
        return True
    places = {path_key(table, path) for path in paths}
    return not any(path_key(table, add.path) in places for w in committed.winners for add in w.adds)


def _same_vector(before: Mapping[str, Any] | None, after: DeletionVectorDescriptor | None) -> bool:
    if before is None or after is None:
        return before is None and after is None
    return (before["storageType"], before["pathOrInlineDv"], before["offset"]) == (
        after.storage_type,
        after.path_or_inline_dv,
        after.offset,
    )
