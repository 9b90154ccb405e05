"""From a version that is in the log to a `DeltaLog` that knows it.

1. The table's `DeltaLog` takes the commit over, or reads it.
2. Its state must then be no older than the commit: storage that loses what it just accepted, or
   lists it late, is reported.
3. The hooks run.

Whatever fails here, the commit is in the table.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

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
    TableNotFoundError,
)
from lakelog.core.hooks.hook import run_hooks
from lakelog.core.log.commit_file import Commit
from lakelog.core.log.names import commit_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.hooks.hook import AnyHook, CommittedTransaction
    from lakelog.core.table_log import TableLog

logger = logging.getLogger("lakelog")
_TAKEN_OVER = 1000
"""Actions; a commit with more is parsed from its file faster than it is taken over one by one."""


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
