"""What follows a commit: its table's `DeltaLog` gets to know it, and hooks run.

1. The log takes the commit over, or reads it.
2. Its state must then be no older than the commit: storage that loses what it just accepted, or
   lists it late, is reported.
3. The hooks run.

Whatever fails here, the commit is in the table: no hook can undo it, and so one fails the job only
if it is asked to.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lakelog.core import keys
from lakelog.core.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from lakelog.core.errors import (
    InvalidCommittedVersionError,
    PostCommitError,
    PostCommitHookFailedError,
    TableNotFoundError,
)
from lakelog.core.features.terms import TableTerms
from lakelog.core.log.commit_file import Commit
from lakelog.core.log.file_names import commit_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action, CommitInfo
    from lakelog.core.conflicts.read_set import ReadSet
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog


logger: logging.Logger = logging.getLogger("lakelog")
_TAKEN_OVER = 1000
"""Actions; a commit with more is parsed from its file faster than it is taken over one by one."""


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


def post_commit(
    committed: CommittedTransaction,
    hooks: Iterable[AnyHook],
    winners: Sequence[WinningCommit] = (),
) -> None:
    """Do everything that follows a commit.

    Args:
        committed: the commit.
        hooks: run in this order.
        winners: the commits between the version that was read and this one, where they are known.

    Raises:
        PostCommitError: only where the conf or a hook asks for it. The commit is in the table.
    """
    failure: InvalidCommittedVersionError | None = None
    try:
        take_over(committed, winners)
        check_committed_version(committed.delta_log, committed.version)
    except InvalidCommittedVersionError as exc:
        logger.error("%s", exc)
        if committed.delta_log.conf.read(keys.THROW):
            failure = exc
    except Exception:
        # Out of memory, or a signal handler that raises: the log reads the commit next time.
        logger.warning(
            "%s: version %d is committed, but the table could not be read again",
            committed.delta_log.table,
            committed.version,
            exc_info=True,
        )
    # All the same: a checkpoint that is due is due, whatever the storage shows at the moment.
    run_hooks(hooks, committed)
    if failure is not None:
        raise failure


def commit_interrupted(table: str, version: int, by: Exception) -> PostCommitError:
    """The error of an exception that came when the commit was in the table."""
    return PostCommitError(
        f"version {version} of {table} is committed, but the work that follows a commit was "
        f"stopped by {type(by).__name__}: {by}. Don't run the job again because of this: the "
        "commit is in the table.",
        table=table,
        version=version,
    )


def check_committed_version(log: TableLog, version: int) -> None:
    """Make sure that a table's log knows a version that was committed.

    Raises:
        InvalidCommittedVersionError: it is read again, and the version is not there.
        DeltaError: the log can't be read.
        OSError: the storage can't be read.
    """
    known = log.known_version
    if known is not None and known >= version:
        return
    try:
        current = log.update().version
    except TableNotFoundError:
        current = -1
    if current >= version:
        return
    raise InvalidCommittedVersionError(
        f"[{InvalidCommittedVersionError.condition}] The committed version is {version} but the "
        f"current version is {current}. The storage accepted the commit to {log.table} but does "
        "not show it: its reads or listings lag behind its writes. Use a store with "
        "read-after-write consistency; `lakelog conformance` checks for it.",
        table=log.table,
        version=version,
        current_version=current,
    )


def take_over(committed: CommittedTransaction, winners: Sequence[WinningCommit] = ()) -> None:
    """Tell the table's log what was committed, so that `update` need not read it back.

    A large commit is left to `update`, which parses files of actions faster than it would take
    them one by one.
    """
    log = committed.delta_log
    # In their order: the log takes a commit over only where it follows directly what is known.
    for winner in winners:
        log.after_commit(winner.commit)
    if len(committed.actions) > _TAKEN_OVER:
        return
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
