"""What runs after a commit: none of it can undo the commit, so none of it fails the job unasked."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lakelog.core.errors import PostCommitError, PostCommitHookFailedError
from lakelog.core.properties import TableProperties

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action, CommitInfo, Metadata, Protocol
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.snapshot import Snapshot

__all__ = [
    "THROW_KEY",
    "AnyHook",
    "CommittedTransaction",
    "PostCommitHook",
    "checkpoint_hook",
    "hook_failed",
    "needs_checkpoint",
    "run_hooks",
]

logger = logging.getLogger("lakelog")

THROW_KEY = "postCommitHook.throwOnError"
"""Below `spark.databricks.delta.`: what fails after a commit is raised, not only logged."""


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
    read_snapshot: Snapshot | None = None
    """What the transaction read; None where it made the table."""


class PostCommitHook(ABC):
    """Something to do once a commit is in the log, that handles its own failures.

    A function of a `CommittedTransaction` is a hook too, and handles them as this class does.
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @abstractmethod
    def __call__(self, committed: CommittedTransaction) -> object:
        """Run, once. What it returns is ignored."""

    def handle_error(self, error: Exception, committed: CommittedTransaction) -> None:
        """Decide what a failure means; it has been logged by now.

        Does nothing, unless `spark.databricks.delta.postCommitHook.throwOnError` is true. Raise
        `hook_failed(self, error, committed)` to tell the job; hooks after this one run all the
        same.

        Args:
            error: what the hook raised.
            committed: what it was told.

        Raises:
            PostCommitHookFailedError: the job shall know. The commit is in the table.
        """
        _throw_if_asked(self, error, committed)


AnyHook: TypeAlias = PostCommitHook | Callable[[CommittedTransaction], object]


def hook_failed(
    hook: AnyHook, error: Exception, committed: CommittedTransaction
) -> PostCommitHookFailedError:
    """The error of a hook that failed, for `handle_error` to raise."""
    table, version, name = committed.delta_log.table, committed.version, _name(hook)
    failure = PostCommitHookFailedError(
        f"[{PostCommitHookFailedError.condition}] Committing to the Delta table version {version} "
        f"succeeded but error while executing post-commit hook {name}: {error}. The table is "
        f"{table}; don't run the job again for this commit, it is there.",
        table=table,
        version=version,
        hook=name,
    )
    failure.__cause__ = error
    return failure


def needs_checkpoint(committed: CommittedTransaction) -> bool:
    """Whether the version is a multiple of `delta.checkpointInterval`; never of version 0."""
    interval = TableProperties(committed.metadata.configuration).checkpoint_interval
    return committed.version != 0 and committed.version % interval == 0


def checkpoint_hook(committed: CommittedTransaction) -> None:
    """Write a checkpoint where one is due."""
    if needs_checkpoint(committed):
        committed.delta_log.checkpoint(committed.version)


def run_hooks(hooks: Iterable[AnyHook], committed: CommittedTransaction) -> None:
    """Run hooks in order, every one of them.

    Raises:
        PostCommitError: the first that a hook's `handle_error` raised; whatever else it raises
            is wrapped in one, so that nobody takes it for a commit that failed.
    """
    failure: PostCommitError | None = None
    for hook in hooks:
        try:
            hook(committed)
        except Exception as exc:
            logger.warning(
                "%s: version %d is committed, but its post-commit hook %s failed",
                committed.delta_log.table,
                committed.version,
                _name(hook),
                exc_info=True,
            )
            failure = failure or _handled(hook, exc, committed)
    if failure is not None:
        raise failure


def _handled(
    hook: AnyHook, error: Exception, committed: CommittedTransaction
) -> PostCommitError | None:
    handle = hook.handle_error if isinstance(hook, PostCommitHook) else None
    try:
        if handle is None:
            _throw_if_asked(hook, error, committed)
        else:
            handle(error, committed)
    except PostCommitError as exc:
        return exc
    except Exception as exc:
        return hook_failed(hook, exc, committed)
    return None


def _throw_if_asked(hook: AnyHook, error: Exception, committed: CommittedTransaction) -> None:
    if committed.delta_log.conf.get_bool(THROW_KEY, False):
        raise hook_failed(hook, error, committed)


def _name(hook: AnyHook) -> str:
    if isinstance(hook, PostCommitHook):
        return hook.name
    return str(getattr(hook, "__qualname__", repr(hook)))
