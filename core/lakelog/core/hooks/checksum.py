"""Writing version checksums after commits.

A checksum costs a request, and on an object store a commit is one request: there it is written
only on demand (`spark.databricks.delta.writeChecksumFile.enabled`). It is made in one of two ways.

- By counting the files of the committed version, where they are known without reading anything:
  the transaction read them, or the whole log was read.
- From the checksum before, where the commit only added files that are certainly new: nothing was
  removed, and each is named by a UUID that a writer drew. That count does no look-up, so a file
  that is added twice would be counted twice.

Otherwise there is none until a checkpoint has loaded the files.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.log.names import checksum_path
from lakelog.core.paths import is_local, is_near
from lakelog.core.state.checksums import checksum_of, completed_checksum, read_checksum

if TYPE_CHECKING:
    from lakelog.core.hooks.hook import CommittedTransaction
    from lakelog.core.state.checksums import VersionChecksum
    from lakelog.core.state.replay import State
    from lakelog.logstores import LogStore

__all__ = ["checksum_hook"]

_FRESH_NAME = re.compile(
    r"(.*/)?part-\d{5}-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b[^/]*"
)


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
    added = _certainly_new(committed)
    if added is not None:
        before = _before(committed)
        if before is not None:
            grown = replace(
                before,
                num_files=before.num_files + len(added),
                table_size_bytes=before.table_size_bytes + sum(add.size for add in added),
            )
            return completed_checksum(grown, state, committed.terms, txn_id)
    return checksum_of(state, txn_id, committed.terms) if state.files.is_at_hand else None


def _certainly_new(committed: CommittedTransaction) -> list[AddFile] | None:
    """The added files; `None` where the commit may have done anything but add new ones."""
    if any(isinstance(action, RemoveFile) for action in committed.actions):
        return None
    adds = [action for action in committed.actions if isinstance(action, AddFile)]
    if adds and not committed.commit_info.is_blind_append:
        return None
    fresh = all(
        add.data_change and add.deletion_vector is None and _FRESH_NAME.fullmatch(add.path)
        for add in adds
    )
    return adds if fresh else None


def _before(committed: CommittedTransaction) -> VersionChecksum | None:
    log, version = committed.delta_log, committed.version - 1
    if log.last_checksum is not None and log.last_checksum[0] == version:
        return log.last_checksum[1]
    return read_checksum(log.store, log.table, version) if version >= 0 else None
