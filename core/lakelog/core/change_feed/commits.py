"""Commits as the change data feed looks at them: their file actions, one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.core.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
    action_from_json,
)
from lakelog.core.errors import CorruptCommitError
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.log.budget import AS_OBJECTS, LogBudget, read_log_file
from lakelog.core.log.json_lines import numbered_lines

if TYPE_CHECKING:
    from lakelog.logstores import LogStore

_NO_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(slots=True)
class ChangeCommit:
    """One version, and what it says about changed rows."""

    version: int
    timestamp: int
    """Milliseconds since the epoch."""
    adds: list[AddFile] = field(default_factory=list)
    """Those that change data."""
    removes: list[RemoveFile] = field(default_factory=list)
    """Those that change data."""
    files: list[AddFile | RemoveFile] = field(default_factory=list)
    """Both, in the order that the commit has them in."""
    changes: list[AddCDCFile] = field(default_factory=list)
    metadata: Metadata | None = None
    protocol: Protocol | None = None

    @property
    def switches_feed(self) -> bool | None:
        """Whether there is a feed from this version on; `None` where its metadata stays."""
        if self.metadata is None:
            return None
        return TableProperties(self.metadata.configuration).change_data_feed

    def take(self, info: CommitInfo) -> None:
        """Take the commit's own time, and whether it changed any row."""
        if info.in_commit_timestamp is not None:
            self.timestamp = info.in_commit_timestamp
        metrics = info.operation_metrics or {}
        if info.operation == "MERGE" and all(metrics.get(name) == "0" for name in _NO_ROWS):
            # It rewrote files without changing a row.
            self.adds, self.removes, self.files, self.changes = [], [], [], []


def read_change_commit(
    store: LogStore, path: str, version: int, timestamp: int, *, as_written: bool = False
) -> ChangeCommit:
    """Read one commit.

    Args:
        store: of the log.
        path: of the commit file.
        version: of the commit.
        timestamp: the storage's modification time; an in-commit timestamp takes precedence.
        as_written: whether the files of a MERGE that changed no row stay.

    Raises:
        FileNotFoundError: there is no such file.
        CorruptCommitError: a line is not an action.
        LogTooLargeError: it would take more memory than there is.
    """
    commit, info = ChangeCommit(version, timestamp), CommitInfo()
    budget = LogBudget.from_store(store)
    data = read_log_file(store, path, budget)
    budget.take(AS_OBJECTS * len(data), path)
    for number, line in numbered_lines(data):
        if not line.strip():
            continue
        try:
            action = action_from_json(line)
        except ValueError as exc:
            raise CorruptCommitError(
                f"line {number} of the commit file {path} (version {version}) is not an action: "
                f"{exc}",
                path=path,
                version=version,
                line=number,
            ) from exc
        match action:
            case AddFile(data_change=True):
                commit.adds.append(action)
                commit.files.append(action)
            case RemoveFile(data_change=True):
                commit.removes.append(action)
                commit.files.append(action)
            case AddCDCFile():
                commit.changes.append(action)
            case Metadata():
                commit.metadata = action
            case Protocol():
                commit.protocol = action
            case CommitInfo():
                info = action
    if not as_written:
        commit.take(info)
    return commit
