"""Small commits, and what they left in the log."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.log.commit_file import Commit, read_commit
from support.tables import add_file

if TYPE_CHECKING:
    from lakelog.core.actions import Action, CommitInfo
    from lakelog.core.transaction.optimistic import OptimisticTransaction

APPEND = Operation.write("Append")
DELETE = Operation(name="DELETE")
_names = itertools.count()


def new_uri() -> str:
    """Where no table is yet, in memory."""
    return f"memory://transactions/{next(_names)}"


def commit_of(log: DeltaLog, version: int) -> Commit:
    """A commit, read back."""
    return read_commit(log.store, log.table, version)


def info_of(log: DeltaLog, version: int) -> CommitInfo:
    """The commitInfo of a version."""
    info = commit_of(log, version).info
    assert info is not None
    return info


def kinds_of(log: DeltaLog, version: int) -> list[str]:
    """The kinds of the actions of a version, in the order of its lines."""
    lines = log.store.read(f"{log.table}/_delta_log/{version:020d}.json")
    return [line.split('"')[1] for line in lines]


def append(log: DeltaLog, *names: str, **partition: Any) -> int:
    """Append files, blindly."""
    return log.start_transaction().commit([add_file(n, **partition) for n in names], APPEND)


def started(log: DeltaLog) -> tuple[OptimisticTransaction, DeltaLog]:
    """A transaction, and another writer's log to get ahead of it."""
    return log.start_transaction(), DeltaLog.for_table(log.table)


def write_commit(log: DeltaLog, version: int, *actions: Action) -> None:
    """Write a commit as another client would, past every check of ours."""
    lines = [action.to_json() for action in actions]
    log.store.write(f"{log.table}/_delta_log/{version:020d}.json", lines, overwrite=False)
