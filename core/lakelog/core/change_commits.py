"""Commits as the change data feed looks at them: their file actions, one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.core.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    Metadata,
    RemoveFile,
    action_from_json,
)
from lakelog.core.errors import CorruptCommitError
from lakelog.core.log_budget import AS_OBJECTS, LogBudget, read_log_file

if TYPE_CHECKING:
    from lakelog.logstores import LogStore

__all__ = ["ChangeCommit", "read_change_commit"]

_NO_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(slots=True)
class ChangeCommit:
    """One version: what it says of changed rows."""

    version: int
    timestamp: int
    """Milliseconds since the epoch."""
    adds: list[AddFile] = field(default_factory=list)
    """Those that change data."""
    removes: list[RemoveFile] = field(default_factory=list)
    """Those that change data."""
    changes: list[AddCDCFile] = field(default_factory=list)
    metadata: Metadata | None = None

    def take(self, info: CommitInfo) -> None:
        """What the commit says of itself: its time, and whether it changed a row at all."""
        if info.in_commit_timestamp is not None:
            self.timestamp = info.in_commit_timestamp
        metrics = info.operation_metrics or {}
        if info.operation == "MERGE" and all(metrics.get(name) == "0" for name in _NO_ROWS):
            # It rewrote files, and every row of them is as it was.
            self.adds, self.removes, self.changes = [], [], []


def read_change_commit(store: LogStore, path: str, version: int, timestamp: int) -> ChangeCommit:
    """Read one commit.

    Args:
        store: of the log.
        path: of the commit file.
        version: of the commit.
        timestamp: its time by the storage; one that stands in the commit counts instead.

    Raises:
        FileNotFoundError: there is no such file.
        CorruptCommitError: a line is no action.
        LogTooLargeError: it would take more memory than there is.
    """
    commit, info = ChangeCommit(version, timestamp), CommitInfo()
    budget = LogBudget.of(store)
    data = read_log_file(store, path, budget)
    budget.take(AS_OBJECTS * len(data), path)
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            action = action_from_json(line)
        except ValueError as exc:
            raise CorruptCommitError(
                f"line {number} of the commit file {path} (version {version}) is no action: {exc}",
                path=path,
                version=version,
                line=number,
            ) from exc
        match action:
            case AddFile(data_change=True):
                commit.adds.append(action)
            case RemoveFile(data_change=True):
                commit.removes.append(action)
            case AddCDCFile():
                commit.changes.append(action)
            case Metadata():
                commit.metadata = action
            case CommitInfo():
                info = action
    commit.take(info)
    return commit
