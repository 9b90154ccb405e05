"""The commits after a checkpoint, through log compaction files where there are any.

`x.y.compacted.json` holds the reconciled actions of the commits x to y (PROTOCOL.md, "Log
Compaction Files"): one file instead of many. It never replaces a missing commit, because a segment
is found only where all its commits are there, and one that can't be read is ignored. The last
commit is always read itself: only it says who made the version, and when.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakelog.core.errors import CorruptCommitError, LogTooLargeError
from lakelog.core.log.commit_file import Commit, read_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakelog.core.log.segment import CompactedFile, LogSegment
    from lakelog.logstores.contract import LogStore

_log = logging.getLogger("lakelog")


def covering(files: Iterable[CompactedFile], first: int, last: int) -> list[CompactedFile]:
    """Which files to read instead of the commits `first` to `last`: ascending, not overlapping.

    Of those that begin at one commit the longest is taken.
    """
    by_start: dict[int, CompactedFile] = {}
    for each in files:
        known = by_start.get(each.first)
        if each.last <= last and (known is None or known.last < each.last):
            by_start[each.first] = each
    taken: list[CompactedFile] = []
    for start in sorted(by_start):
        if start >= first:
            taken.append(by_start[start])
            first = by_start[start].last + 1
    return taken


def _check(commit: Commit) -> None:
    """Refuse a file that says nothing: whatever it is, the commits say as much.

    Raises:
        CorruptCommitError: it does, or an action has a value that its type can't hold.
    """
    rows = commit.added().num_rows + commit.removed().num_rows
    small = commit.protocol or commit.metadata or commit.transactions or commit.domains
    if not rows and not small:
        raise CorruptCommitError(
            f"the compaction file {commit.path} has no action",
            path=commit.path,
            version=commit.version,
        )


def read_compacted(
    store: LogStore, segment: LogSegment, read_commits: Callable[[dict[int, str]], list[Commit]]
) -> list[Commit]:
    """What leads from a segment's checkpoint to its version, ascending.

    Args:
        store: the store of the log.
        segment: which commits.
        read_commits: version -> path, to commits; for what no compaction file holds.

    Raises:
        CorruptLogError: a commit is damaged or gone.
    """
    paths = {segment.version - i: c.path for i, c in enumerate(reversed(segment.commits))}
    compacted: list[Commit] = []
    if segment.compacted and paths:
        for each in covering(segment.compacted, min(paths), segment.version):
            try:
                # Taken for one commit of its last version: reconciled actions have no order that
                # would matter.
                commit = read_commit(store, segment.table, each.last, each.file.path)
                _check(commit)
            except (OSError, CorruptCommitError, LogTooLargeError) as exc:
                _log.warning("reading the commits instead of a compaction file: %s", exc)
                continue
            compacted.append(commit)
            for version in range(each.first, each.last + 1):
                # The last commit is read all the same: the file that stands for many has no
                # commitInfo of one.
                if version != segment.version:
                    del paths[version]
    # Sorting is stable: the last commit comes after a file that holds it as well.
    return sorted([*compacted, *read_commits(paths)], key=lambda commit: commit.version)
