"""The fence: no commit after a version that is no longer in the log.

A path outlives its table. A writer may find its version free because the table was dropped, or
dropped and created again, or because it has long moved on and the old commits are gone. Its
predecessor is then gone as well, or is another commit: cleanup removes the oldest first and always
leaves the newest. One that found no table may find one now.

Nothing but a look at the storage can tell, and however little time has passed it may have happened.
So each attempt looks, last of all before it writes: one request, which on remote storage travels
beside others where there are any.

One first attempt does not: a blind append whose caller asked for no newer version either
(`start_transaction(newest=False)`), behind a version that this process created itself, no longer
ago than that create took. A look takes a request too, and what it saw is as old when the next
request arrives. So the time in which a table can vanish unseen is that of two requests instead of
one; a table that is dropped and made again takes more. What holds without a look:

- The version is the newest. The create says so; if it fails, all winners are read, and the fence is
  looked at beside them, as in any second attempt.
- It is the same table in a log that is longer, or as long: there the create fails.
- Log cleanup has not removed the version: it leaves what is younger than its retention, and the
  newest always.
- The version is whole, where readers may see a part of a file and where a lock table has a row for
  it: our own create was acknowledged.
- Times, row ids and the like follow from the version before, as after a look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.conflicts.winner import read_winner
from lakelog.core.errors import ConcurrentWriteException, TableNotFoundError
from lakelog.core.log.commit_identity import has_lost_its_start, still_there
from lakelog.core.log.segment import list_log

if TYPE_CHECKING:
    from lakelog.core.actions import CommitInfo
    from lakelog.logstores import LogStore


def check_fence(
    store: LogStore,
    table: str,
    version: int,
    read_info: CommitInfo | None,
    read_modified: int | None = None,
) -> None:
    """Refuse to go on from a version that is gone.

    Args:
        store: of the table's log.
        table: the table's URI.
        version: the one after that which was read.
        read_info: the `commitInfo` of the version that was read.
        read_modified: when the file of that version was written, if known.

    Raises:
        ConcurrentWriteException: the log is not the one that was read.
        TableNotFoundError: there is no log any more.
        OSError: the storage can't be read.
    """
    if version == 0:
        # Version 0 is free in a log whose start was cleaned away as well. A commit there would lie
        # below the living versions, and be read by whoever replays from the start.
        if has_lost_its_start(store, table):
            raise gone_error(table, version)
        return
    # The usual case, in one small read. What follows is for a refusal, which must be right: it says
    # whether the table was dropped, and that ends a job otherwise than a conflict does.
    if still_there(store, table, version - 1, read_info, read_modified):
        return
    try:
        # A listing also completes what a writer has left half done.
        listing = list_log(store, table, version - 1)
    except (FileNotFoundError, NotADirectoryError):
        raise _dropped_error(table, version) from None
    # A listing from this version on is empty in a log that was recreated and is shorter: that table
    # exists.
    if listing.latest() is None and not _has_commits(store, table):
        raise _dropped_error(table, version)
    if version - 1 not in listing.commits:
        raise gone_error(table, version)
    if still_there(store, table, version - 1, read_info, read_modified):
        return
    # Where `commitInfo` stands in an odd place, only who reads the whole commit finds it.
    found = read_winner(store, table, version - 1)
    if found is None or read_info is None or _names(found.commit_info) != _names(read_info):
        raise gone_error(table, version)


def _names(info: CommitInfo | None) -> tuple[object, object]:
    return (None, None) if info is None else (info.txn_id, info.timestamp)


def _has_commits(store: LogStore, table: str) -> bool:
    try:
        return list_log(store, table).latest() is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def _dropped_error(table: str, version: int) -> TableNotFoundError:
    return TableNotFoundError(
        f"{table}: the table was dropped while this transaction, which had read version "
        f"{version - 1}, was under way: nothing is left of its log. Nothing was committed. Create "
        "the table again, or write to where it is now.",
        table=table,
    )


def gone_error(table: str, version: int) -> ConcurrentWriteException:
    """The error of a writer that is about to try a version whose predecessor is gone.

    Args:
        table: the table's URI.
        version: what is about to be tried.
    """
    return ConcurrentWriteException(
        f"[{ConcurrentWriteException.condition}] {table}: {_gone(version)} Nothing was "
        "committed. Read the table again and run the job again (lakelog.core.retry_on_conflict "
        "does).",
        table=table,
        version=None,
        read_version=version - 1,
        commit_info=None,
    )


def _gone(version: int) -> str:
    """What the fence found, in words, before a first try at `version`."""
    if version == 0:
        return (
            "the table did not exist when this transaction started; another writer has created it "
            "since, and log cleanup has already removed its first versions."
        )
    return (
        f"version {version - 1}, which this transaction read, is no longer in the log: other "
        "writers have committed since and log cleanup removed it, or the table was dropped and "
        "created again."
    )
