"""Writing version checksums after commits.

A checksum costs a request, and on an object store a commit is one request: there it is written
only on demand (`spark.databricks.delta.writeChecksumFile.enabled`). It is made in one of two ways.

- From the checksum before and what the commit did to files, where both are certain
  (`committed_files.py`): the work is that of the commit, not that of the table.
- By counting the files of the committed version, where they are known without reading anything:
  the transaction read them, or the whole log was read.

Otherwise there is none until a checkpoint has loaded the files.

A local disk takes the file as fast as a thread takes the work. Elsewhere it is made in the
background (`background.py`), from the state that the commit made; a later one never counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.hooks.background import do_later
from lakelog.core.hooks.committed_files import file_change
from lakelog.core.log.names import checksum_path
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.paths import is_local, is_near
from lakelog.core.state.checksums import (
    checksum_of,
    completed_checksum,
    has_vectors,
    read_checksum,
)
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from lakelog.core.actions import Protocol
    from lakelog.core.conf import DeltaConf
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.hooks.committed_files import FileChange
    from lakelog.core.hooks.hook import CommittedTransaction
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
    # Where somebody wants to hear of a failure, nobody would be left there to tell.
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
