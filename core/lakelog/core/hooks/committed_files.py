"""By how much a commit changed the numbers of its table's live files, where that is certain.

Replay goes by keys: a file that is added twice is there once, and one that is removed but is not
there changes nothing. So a sum over the actions of a commit is right only where each of them is
known to do what it says:

- A removed file was live: the transaction was handed it, with this deletion vector, by the
  snapshot that it read, and no commit since then has named it. Its size is the one that the
  snapshot has; what the action claims does not count.
- An added file is new: either the transaction wrote it, under a name with a UUID that it drew, or
  it takes the place of a file that this commit removes, with another deletion vector. Or it is a
  file that the transaction was handed, which the commit describes again. Who commits files that
  were there before, as a job does whose last commit had an unknown outcome, may add what is live.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.paths import path_key

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lakelog.core.actions.objects import DeletionVectorDescriptor
    from lakelog.core.conflicts.read_set import Handed
    from lakelog.core.hooks.hook import CommittedTransaction

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
        change.count(-1, *_counted(handed[path]))
    rewrites = bool(removes) and committed.commit_info.operation in _REWRITES
    for path, add in adds.items():
        vector = add.deletion_vector
        if path in handed:
            stays = _same_vector(handed[path][1], vector)
            if stays == (path in removes):
                return None
            if stays:
                change.count(-1, *_counted(handed[path]))
        elif (
            vector is not None
            or not committed.has_written
            or not (add.data_change or rewrites)
            or not _FRESH_NAME.fullmatch(path)
        ):
            return None
        change.count(1, add.size, None if vector is None else vector.cardinality)
    return change


def _counted(file: tuple[int, Mapping[str, Any] | None]) -> tuple[int, int | None]:
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
