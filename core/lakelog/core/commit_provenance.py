"""The `commitInfo` of a commit: who did what, on which version, how isolated."""

from __future__ import annotations

import functools
import importlib.metadata
from typing import TYPE_CHECKING

from lakelog.core.actions import CommitInfo
from lakelog.core.isolation import changes_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import Action
    from lakelog.core.conf import DeltaConf
    from lakelog.core.isolation import IsolationLevel
    from lakelog.core.operations import Operation

__all__ = ["commit_info", "engine_info"]


def commit_info(
    operation: Operation,
    actions: Sequence[Action],
    conf: DeltaConf,
    *,
    txn_id: str,
    now_ms: int,
    read_version: int,
    isolation: IsolationLevel,
    is_blind_append: bool,
) -> CommitInfo:
    """The first line of a commit.

    With `commitInfo.enabled=false` it tells of the operation nothing but its name. The line itself
    stays: by its `txnId` a commit whose reply was lost is known again, and other writers go by
    `isBlindAppend` and the tags.

    Args:
        operation: what was done.
        actions: of the commit.
        conf: `commitInfo.enabled`, `commitInfo.userMetadata`, `history.metricsEnabled`.
        txn_id: of the transaction.
        now_ms: the time, epoch ms.
        read_version: of the transaction; -1 where the table is new.
        isolation: the level that the commit is checked at.
        is_blind_append: whether it only adds, and read nothing.
    """
    if not conf.get_bool("commitInfo.enabled", True):
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
        note = conf.get_str("commitInfo.userMetadata")
    with_metrics = conf.get_bool("history.metricsEnabled", True)
    return CommitInfo(
        timestamp=now_ms,
        operation=operation.name,
        operation_parameters=operation.json_parameters(),
        read_version=read_version if read_version >= 0 else None,
        isolation_level=isolation.value,
        is_blind_append=is_blind_append,
        data_change=changes_rows(actions),
        operation_metrics=operation.json_metrics() if with_metrics else None,
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
