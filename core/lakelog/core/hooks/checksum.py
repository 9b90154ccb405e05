"""Writing version checksums after commits.

A checksum costs a request, and on an object store a commit is one request: there it is written
only on demand (`spark.databricks.delta.writeChecksumFile.enabled`). It is made in one of two ways.

- From the checksum before and what the commit did to files, where both are certain
  (`committed_files.py`): the work is that of the commit, not that of the table.
- By counting the files of the committed version, where they are known without reading anything:
  the transaction read them, or the whole log was read.

Otherwise there is none until a checkpoint has loaded the files.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.hooks.committed_files import file_change
from lakelog.core.log.names import checksum_path
from lakelog.core.paths import is_local, is_near
from lakelog.core.state.checksums import (
    checksum_of,
    completed_checksum,
    has_vectors,
    read_checksum,
)

if TYPE_CHECKING:
    from lakelog.core.actions import Protocol
    from lakelog.core.hooks.committed_files import FileChange
    from lakelog.core.hooks.hook import CommittedTransaction
    from lakelog.core.state.checksums import VersionChecksum
    from lakelog.core.state.replay import State
    from lakelog.logstores import LogStore

__all__ = ["checksum_hook"]


def checksum_hook(committed: CommittedTransaction) -> None:
    """Write the checksum of the version that was committed, if it can be had cheaply.

    Raises:
        OSError: the storage refused.
    """
    log = committed.delta_log
    wanted = log.conf.read(keys.CHECKSUMS)
    if not (is_near(log.table) if wanted is None else wanted):
        return
    snapshot = log.snapshot
    if snapshot.version != committed.version:
        return
    checksum = _checksum(committed, snapshot.state)
    if checksum is None:
        return
    log.last_checksum = (committed.version, checksum)
    _publish(log.store, checksum_path(log.table, committed.version), checksum.to_json())


def _publish(store: LogStore, path: str, text: str) -> None:
    """Write the file unless it is there: another client may have been faster, with the same.

    On a local disk it is not brought to the platter, which costs as much as the commit did: a
    checksum that a crash takes away is one that was never written, and a torn one is passed over.
    """
    if not is_local(path):
        with contextlib.suppress(FileExistsError):
            store.write(path, [text])
        return
    if store.filesystem.get_file_info(store.filesystem_path(path)).is_file:
        return
    with store.staged(path) as (filesystem, draft), filesystem.open_output_stream(draft) as sink:
        sink.write(f"{text}\n".encode())


def _checksum(committed: CommittedTransaction, state: State) -> VersionChecksum | None:
    txn_id = committed.commit_info.txn_id
    change = file_change(committed)
    before = None if change is None else _before(committed)
    if change is not None and before is not None:
        grown = _changed(before, change, state.protocol)
        if grown is not None:
            return completed_checksum(grown, state, committed.terms, txn_id)
    return checksum_of(state, txn_id, committed.terms) if state.files.is_at_hand else None


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


def _before(committed: CommittedTransaction) -> VersionChecksum | None:
    """The checksum of the version before, if it is of the commit that was there."""
    log, version = committed.delta_log, committed.version - 1
    if version < 0:
        return None
    txn_id, known = _txn_before(committed), log.last_checksum
    # A kept log outlives its table, and the next one at the path has the same versions.
    if (
        txn_id is not None
        and known is not None
        and (known[0], known[1].txn_id) == (version, txn_id)
    ):
        return known[1]
    found = read_checksum(log.store, log.table, version)
    if found is None or (None not in (txn_id, found.txn_id) and found.txn_id != txn_id):
        return None
    return found


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
