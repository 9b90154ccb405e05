"""What runs after a commit: it can't undo the commit, so it fails the job only if asked to."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lakelog.core import keys
from lakelog.core.errors import PostCommitError, PostCommitHookFailedError
from lakelog.core.features.terms import TableTerms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action, CommitInfo, Metadata, Protocol
    from lakelog.core.conflicts.read_set import ReadSet
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog

logger = logging.getLogger("lakelog")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTransaction:
    """What a post-commit hook receives."""

    delta_log: TableLog
    version: int
    read_version: int
    actions: Sequence[Action]
    """Without the commitInfo."""
    commit_info: CommitInfo
    metadata: Metadata
    """As of the committed version."""
    protocol: Protocol
    read_snapshot: Snapshot | None = None
    """What the transaction read; None where it created the table."""
    reads: ReadSet | None = field(default=None, repr=False, compare=False)
    """The files that it was handed; for the core's own hooks."""
    has_written: bool = field(default=False, repr=False, compare=False)
    """Whether it wrote the data files that it adds, by `mark_written`; likewise."""
    winners: Sequence[WinningCommit] = field(default=(), repr=False, compare=False)
    """The commits between `read_version` and this one, as far as they are known; likewise."""
    terms: TableTerms = field(init=False, repr=False, compare=False)
    """What metadata and protocol ask of writers; for the core's own hooks."""

    def __post_init__(self) -> None:
        """Take the terms of what was read where they are still the same."""
        read = self.read_snapshot.terms if self.read_snapshot is not None else None
        same = (
            read is not None and read.metadata is self.metadata and read.protocol is self.protocol
        )
        terms = read if read is not None and same else TableTerms(self.metadata, self.protocol)
        object.__setattr__(self, "terms", terms)


class PostCommitHook(ABC):
    """Something to do once a commit is in the log, that handles its own failures.

    A function of a `CommittedTransaction` is a hook too, and handles them as this class does.
    """

    @property
    def name(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    @abstractmethod
    def __call__(self, committed: CommittedTransaction) -> object:
        """Run, once. What it returns is ignored."""

    def handle_error(self, error: Exception, committed: CommittedTransaction) -> None:
        """Decide what a failure means; it has been logged already.

        Does nothing, unless `spark.databricks.delta.postCommitHook.throwOnError` is true. Raise
        `hook_failed(self, error, committed)` to fail the job; hooks after this one run either way.

        Args:
            error: what the hook raised.
            committed: what it was called with.

        Raises:
            PostCommitHookFailedError: the job should fail. The commit is in the table.
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
        f"{table}; don't run the job again because of this: the commit is in the table.",
        table=table,
        version=version,
        hook=name,
    )
    failure.__cause__ = error
    return failure


def needs_checkpoint(committed: CommittedTransaction) -> bool:
    """Whether the version is a multiple of `delta.checkpointInterval`; never of version 0."""
    interval = committed.terms.checkpoint_interval
    return committed.version != 0 and committed.version % interval == 0


def checkpoint_hook(committed: CommittedTransaction) -> None:
    """Write a checkpoint where one is due."""
    if needs_checkpoint(committed):
        committed.delta_log.checkpoint(committed.version)


def run_hooks(hooks: Iterable[AnyHook], committed: CommittedTransaction) -> None:
    """Run hooks in order, every one of them.

    Raises:
        PostCommitError: the first that a hook's `handle_error` raised; anything else it raises
            is wrapped in one, so that it can't be mistaken for a failed commit.
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
    if committed.delta_log.conf.read(keys.THROW):
        raise hook_failed(hook, error, committed)


def _name(hook: AnyHook) -> str:
    if isinstance(hook, PostCommitHook):
        return hook.name
    return str(getattr(hook, "__qualname__", repr(hook)))
