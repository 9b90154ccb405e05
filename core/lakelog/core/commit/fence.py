"""The fence: no commit after a version that is no longer in the log.

A writer that slept for days may find its version free because the table has long moved on and the
old commits are gone; one that took minutes, because the table was dropped and created again. Its
predecessor is then gone as well, or is another commit: cleanup removes the oldest first and always
leaves the newest. One that found no table may find one now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import ConcurrentWriteException
from lakelog.core.log.identity import has_lost_its_start, still_there

if TYPE_CHECKING:
    from lakelog.core.actions import CommitInfo
    from lakelog.logstores import LogStore

__all__ = ["FENCE_AGE_MS", "check_fence", "gone_error"]

FENCE_AGE_MS = 60_000
"""A snapshot older than this may be of a log that is gone: cleaned up, or the table created again.

One extra request is noise in a job that ran longer than a minute."""


def check_fence(
    store: LogStore,
    table: str,
    version: int,
    read_info: CommitInfo | None,
    read_modified: int | None = None,
) -> None:
    """Refuse to try a version whose predecessor is gone.

    Args:
        store: of the table's log.
        table: the table's URI.
        version: what is about to be tried.
        read_info: the `commitInfo` of the version before it, as it was read.
        read_modified: when the file of that version was written, if known.

    Raises:
        ConcurrentWriteException: the log is not the one that was read.
        OSError: the storage can't be read.
    """
    if version == 0:
        gone = has_lost_its_start(store, table)
    else:
        gone = not still_there(store, table, version - 1, read_info, read_modified)
    if gone:
        raise gone_error(table, version)


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
