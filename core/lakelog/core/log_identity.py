"""Whether a log is still the one that a snapshot was read from.

A path outlives its table: it may be dropped and made again, and log cleanup removes old commits.
Whoever goes on from version V alone would not notice: V + 1 is missing in a shorter log too, and
in a longer one it is there, but of another table. So V itself is looked at, by what its
`commitInfo` says of the transaction that made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.history import read_commit_info
from lakelog.core.log_segment import list_log
from lakelog.core.paths import commit_path

if TYPE_CHECKING:
    from lakelog.core.actions import CommitInfo
    from lakelog.logstores._contract import LogStore

__all__ = ["has_lost_its_start", "still_there"]


def still_there(store: LogStore, table: str, version: int, info: CommitInfo | None) -> bool:
    """Whether a commit is in the log, and is the one that was read; one request.

    Args:
        store: the store of the log.
        table: the table's URI.
        version: of the commit.
        info: what its `commitInfo` said; `None` where nobody read one: then any commit will do.

    Raises:
        CorruptCommitError: its `commitInfo` is no JSON.
    """
    try:
        found = read_commit_info(store, commit_path(table, version))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return info is None or (found.get("txnId"), found.get("timestamp")) == (
        info.txn_id,
        info.timestamp,
    )


def has_lost_its_start(store: LogStore, table: str) -> bool:
    """Whether there is a log whose version 0 is gone, as log cleanup leaves it; one listing.

    Args:
        store: the store of the log.
        table: the table's URI.
    """
    try:
        found = list_log(store, table)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return found.latest() is not None and 0 not in found.commits
