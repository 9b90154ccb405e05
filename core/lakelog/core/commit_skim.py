"""A commit without its file actions, for whoever has these replayed elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.commit_file import Commit, parse_commit

if TYPE_CHECKING:
    from lakelog.core.log_budget import LogBudget

__all__ = ["skim_commit"]

_FILE_ACTIONS = (b'{"add":{', b'{"remove":{')
_OTHERS = (b'"protocol"', b'"metaData"', b'"txn"', b'"domainMetadata"', b'"commitInfo"')


def skim_commit(data: bytes, version: int, path: str, budget: LogBudget | None = None) -> Commit:
    """Parse the bytes of a commit file, and leave out `add` and `remove`.

    What is left out is not looked at: whoever replays it finds what is wrong with it.

    Raises:
        CorruptCommitError: another line is no action, or there is none at all.
        LogTooLargeError: the other lines would take more memory than there is.
    """
    if budget is not None:
        budget.take(0, path, passing=2 * len(data))
    lines = data.split(b"\n")
    # An empty line in place of each, so that an error counts lines as the file does.
    kept = [b"" if _is_file_action(line) else line for line in lines]
    if any(kept) or not any(lines):
        commit = parse_commit(b"\n".join(kept), version, path, budget)
        commit.adds, commit.removes = [], []
        return commit
    return Commit(version, path)


def _is_file_action(line: bytes) -> bool:
    """Whether a line holds one file action and surely nothing else."""
    if not line.startswith(_FILE_ACTIONS) or not line.rstrip().endswith(b"}}"):
        return False
    # Within a text, such as that of statistics, the quotes of a name are escaped.
    return not any(other in line for other in _OTHERS)
