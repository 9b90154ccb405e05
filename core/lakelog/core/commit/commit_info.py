"""The `commitInfo` of a commit: who did what, on which version, how isolated."""

from __future__ import annotations

import functools
import importlib.metadata
from typing import TYPE_CHECKING

from lakelog.core.actions import AddCDCFile, AddFile, CommitInfo, DomainMetadata, RemoveFile
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.features.row_tracking import ROW_TRACKING_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.commit.settings import CommitSettings


def commit_info(
    operation: Operation,
    actions: Sequence[Action],
    settings: CommitSettings,
    *,
    txn_id: str,
    now_ms: int,
    read_version: int,
    isolation: IsolationLevel,
    is_blind_append: bool,
) -> CommitInfo:
    """The first line of a commit.

    With `commitInfo.enabled=false` it says nothing about the operation but its name. The line
    itself stays: its `txnId` identifies a commit whose reply was lost, and other writers rely on
    `isBlindAppend` and the tags.

    Args:
        operation: what was done.
        actions: of the commit.
        settings: whether it says more than the name, the note, and whether it has metrics.
        txn_id: of the transaction.
        now_ms: the time, epoch ms.
        read_version: of the transaction; -1 where the table is new.
        isolation: the level that the commit is checked at.
        is_blind_append: whether it only adds, and read nothing.
    """
    if not settings.records_operation:
        return CommitInfo(
            timestamp=now_ms,
            operation=operation.name,
            operation_parameters={},
            is_blind_append=is_blind_append,
            tags=dict(operation.tags) or None,
            txn_id=txn_id,
        )
    note = operation.user_metadata
    if note is None:
        note = settings.user_metadata
    return CommitInfo(
        timestamp=now_ms,
        operation=operation.name,
        operation_parameters=operation.json_parameters(),
        read_version=read_version if read_version >= 0 else None,
        isolation_level=isolation.value,
        is_blind_append=is_blind_append,
        data_change=changes_rows(actions),
        operation_metrics=operation.json_metrics() if settings.records_metrics else None,
        user_metadata=note,
        tags=dict(operation.tags) or None,
        engine_info=engine_info(),
        txn_id=txn_id,
    )


@functools.cache
def engine_info() -> str:
    """`lakelog/<version>`: what `commitInfo.engineInfo` says of us."""
    try:
        return f"lakelog/{importlib.metadata.version('lakelog')}"
    except importlib.metadata.PackageNotFoundError:  # shipped to a cluster as a bare zip
        return "lakelog/unknown"


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
