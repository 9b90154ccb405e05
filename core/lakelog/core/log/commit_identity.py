"""Which commit a version is, and whether a log is still the one that a snapshot was read from.

A path outlives its table: the table may be dropped and created again, and log cleanup removes old
commits. A writer that went on from version V without looking would not notice: V + 1 is missing in
a shorter log as well, and in a longer one it is there, but belongs to another table. So V itself
is checked, by the transaction that its `commitInfo` names; where that was not read, because a
checkpoint stood in for the commit, or names none, by the time that the storage gave the file.

`commitInfo` is read without the rest of its commit, and without Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.actions import AddFile
from lakelog.core.errors import (
    CorruptCommitError,
)
from lakelog.core.log.budget import LogBudget
from lakelog.core.log.file_names import commit_path
from lakelog.core.log.segment import list_log
from lakelog.logstores.errors import FileTooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.core.actions import Action, CommitInfo
    from lakelog.logstores.contract import LogStore


GROUP_TAG = "lakelog.groupTxnIds"
"""The tag of `commitInfo` that names the transactions which were committed together."""


def transactions_of(info: CommitInfo | None) -> frozenset[str]:
    """The ids of the transactions that a commit holds, as its `commitInfo` names them."""
    return frozenset() if info is None else _transactions(info.txn_id, info.tags)


def transactions_in(info: Mapping[str, Any]) -> frozenset[str]:
    """The same, of a `commitInfo` as JSON value."""
    return _transactions(info.get("txnId"), info.get("tags"))


def _transactions(txn_id: object, tags: object) -> frozenset[str]:
    # Other writers may put anything there.
    group = str(tags.get(GROUP_TAG) or "") if isinstance(tags, Mapping) else ""
    return frozenset(str(each) for each in (txn_id, *group.split(",")) if each)


def added_by(actions: Iterable[Action]) -> set[str]:
    """The paths of the files that a commit adds, as its lines have them."""
    return {each.path for each in actions if isinstance(each, AddFile)}


def is_identifiable(info: CommitInfo | None, modified: int | None) -> bool:
    """Whether enough is known of a commit for `still_there` to tell it from another one."""
    return modified is not None or _names_its_commit(info)


def still_there(
    store: LogStore,
    table: str,
    version: int,
    info: CommitInfo | None,
    modified: int | None = None,
) -> bool:
    """Whether a commit is in the log, and is the one that was read; one request.

    Args:
        store: the store of the log.
        table: the table's URI.
        version: of the commit.
        info: its `commitInfo` as read before; `None` if it was not.
        modified: when its file was written, as a listing said before; `None` if that is not known.
            Where neither is, any commit will do.

    Raises:
        CorruptCommitError: its `commitInfo` is not JSON.
    """
    try:
        # Time is the second choice: a copy of the table, or one that was restored, has new times
        # and the same commits.
        if modified is not None and not _names_its_commit(info):
            listed = list_log(store, table, version, version).commits.get(version)
            # Whole seconds: a store may list finer times than it says of one file.
            return listed is not None and listed.modification_time // 1000 == modified // 1000
        found = read_commit_info(store, commit_path(table, version))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return info is None or (found.get("txnId"), found.get("timestamp")) == (
        info.txn_id,
        info.timestamp,
    )


def _names_its_commit(info: CommitInfo | None) -> bool:
    return info is not None and (info.txn_id is not None or info.timestamp is not None)


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


_MOST_BLANK = 1 << 16


def read_commit_info(store: LogStore, path: str) -> dict[str, Any]:
    """The `commitInfo` of a commit, as JSON value; empty where there is none.

    Raises:
        CorruptCommitError: the line that should hold it is not JSON, or blank lines never end.
        LogTooLargeError: the file has more bytes than there is memory.
    """
    blank = 0
    for line in _lines(store, path):
        if not line.strip():
            blank += 1
            if blank > _MOST_BLANK:
                raise CorruptCommitError(
                    f"the commit file {path} begins with more than {_MOST_BLANK} blank lines, "
                    "which no writer makes: it was damaged",
                    path=path,
                )
        # It is the first line of nearly every writer; adds can be large, and are not parsed.
        if '"commitInfo"' not in line[:64]:
            continue
        try:
            info = orjson.loads(line).get("commitInfo")
        except (orjson.JSONDecodeError, AttributeError) as exc:
            raise CorruptCommitError(
                f"the commitInfo in {path} is not JSON ({exc})", path=path
            ) from exc
        if isinstance(info, dict):
            return info
    return {}


def _lines(store: LogStore, path: str) -> Iterator[str]:
    try:
        yield from store.read(path)
    except FileTooLargeError as exc:
        raise LogBudget.from_store(store).refusal(path, exc.size) from exc
