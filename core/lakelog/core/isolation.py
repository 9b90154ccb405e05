"""Isolation levels, and which one a commit gets."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from lakelog.core.actions import AddCDCFile, AddFile, DomainMetadata, RemoveFile
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action

__all__ = [
    "ROW_TRACKING_DOMAIN",
    "IsolationLevel",
    "adds_only",
    "changes_rows",
    "resolve_isolation",
]

ROW_TRACKING_DOMAIN = "delta.rowTracking"
"""The domain whose metadata holds the high-water mark of row ids."""


class IsolationLevel(enum.StrEnum):
    """What a transaction may fail to see of those that commit between its read and its commit."""

    SERIALIZABLE = "Serializable"
    """The log is a serial order: nothing that the transaction read may have changed."""
    WRITE_SERIALIZABLE = "WriteSerializable"
    """The same among writers that read; blind appends may slip in before."""
    SNAPSHOT_ISOLATION = "SnapshotIsolation"
    """Only that the files which it read or removes are still there."""

    @classmethod
    def parse(cls, text: str) -> IsolationLevel:
        """Read the value of `delta.isolationLevel`, in any case.

        Raises:
            DeltaAnalysisError: no such level.
        """
        for level in cls:
            if level.lower() == text.strip().lower():
                return level
        raise DeltaAnalysisError(
            f"[DELTA_INVALID_ISOLATION_LEVEL] invalid isolation level {text!r}: "
            f"delta.isolationLevel is one of {', '.join(cls)}",
            value=text,
        )


def resolve_isolation(
    table_level: IsolationLevel, actions: Sequence[Action], *, operation_changes_data: bool
) -> IsolationLevel:
    """Choose the level that one commit is checked at.

    A commit that changes no row (`OPTIMIZE`, an empty commit) needs less than the table's level:
    nothing that others add can make it wrong, so that it runs at snapshot isolation.

    Args:
        table_level: `delta.isolationLevel` of the table as it will be after the commit.
        actions: the prepared actions.
        operation_changes_data: whether the operation's kind is one that changes rows.
    """
    for action in actions:
        if isinstance(action, AddFile | RemoveFile | AddCDCFile):
            if action.data_change:
                return table_level
        elif not (isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN):
            return table_level
    if table_level is IsolationLevel.WRITE_SERIALIZABLE and operation_changes_data:
        return table_level
    return IsolationLevel.SNAPSHOT_ISOLATION


def adds_only(actions: Iterable[Action]) -> bool:
    """Whether every file action adds a file; true where there is none.

    With no read recorded this makes a commit a blind append.
    """
    return not any(isinstance(action, RemoveFile | AddCDCFile) for action in actions)


def changes_rows(actions: Iterable[Action]) -> bool:
    """Whether some file action changes rows, as `commitInfo.dataChange` records it."""
    return any(
        action.data_change
        for action in actions
        if isinstance(action, AddFile | RemoveFile | AddCDCFile)
    )
