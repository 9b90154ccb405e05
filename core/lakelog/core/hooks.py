"""What runs after a commit: none of it can undo the commit, so none of it may fail the job."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lakelog.core.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.commit_file import Commit
from lakelog.core.paths import commit_path
from lakelog.core.properties import TableProperties

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action, CommitInfo
    from lakelog.core.delta_log import DeltaLog

__all__ = ["CommittedTransaction", "PostCommitHook", "checkpoint_hook", "hand_over", "run_hooks"]

logger = logging.getLogger("lakelog")
_HANDED_OVER = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTransaction:
    """What a post-commit hook is told."""

    delta_log: DeltaLog
    version: int
    read_version: int
    actions: Sequence[Action]
    """Without the commitInfo."""
    commit_info: CommitInfo
    metadata: Metadata
    """As of the committed version."""
    protocol: Protocol


PostCommitHook: TypeAlias = Callable[[CommittedTransaction], object]
"""Called once, after the commit is in the log. What it returns is ignored."""


def hand_over(committed: CommittedTransaction) -> None:
    """Tell the table's log what was committed, so that `update` need not read it back.

    A large commit is left to `update`, which parses files of actions faster than it would take
    them one by one.
    """
    if len(committed.actions) > _HANDED_OVER:
        return
    log = committed.delta_log
    commit = Commit(committed.version, commit_path(log.table, committed.version))
    commit.info = committed.commit_info
    for action in committed.actions:
        match action:
            case AddFile():
                commit.adds.append(action.to_json_value())
            case RemoveFile():
                commit.removes.append(action.to_json_value())
            case Metadata():
                commit.metadata = action
            case Protocol():
                commit.protocol = action
            case SetTransaction():
                commit.transactions[action.app_id] = action
            case DomainMetadata():
                commit.domains[action.domain] = action
            case _:
                pass  # no part of the table's state
    log.after_commit(commit)


def checkpoint_hook(committed: CommittedTransaction) -> None:
    """Write a checkpoint where the version is a multiple of `delta.checkpointInterval`."""
    interval = TableProperties(committed.metadata.configuration).checkpoint_interval
    if committed.version != 0 and committed.version % interval == 0:
        committed.delta_log.checkpoint(committed.version)


def run_hooks(hooks: Iterable[PostCommitHook], committed: CommittedTransaction) -> None:
    """Run hooks in order; one that fails is logged and does not stop the next."""
    for hook in hooks:
        try:
            hook(committed)
        except Exception:
            logger.warning(
                "%s: version %d is committed, but its post-commit hook %s failed",
                committed.delta_log.table,
                committed.version,
                getattr(hook, "__qualname__", repr(hook)),
                exc_info=True,
            )
