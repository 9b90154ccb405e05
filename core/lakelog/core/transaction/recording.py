"""Commits that record which batch of which application they are, whatever command makes them."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.actions import SetTransaction
from lakelog.core.errors import ConcurrentTransactionException, DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.table_log import TableLog
    from lakelog.core.transaction.recorded_reads import Reads


@dataclass(slots=True)
class RecordedBatch:
    """A batch that is being written."""

    table: str
    app_id: str
    version: int
    reads: Reads | None = None
    """Those of the transaction that records it."""
    landed: bool = False


current_batch: ContextVar[RecordedBatch | None] = ContextVar("lakelog_recording", default=None)
"""The batch that this thread writes; without one the functions below have nothing to do."""


@contextmanager
def record_commits(table: str, app_id: str, version: int) -> Iterator[None]:
    """Let the commit that this thread makes to a table record a batch.

    It must be one: a batch of two commits could be cut in half by a crash, and the half would pass
    for the whole. A command that has nothing to commit records nothing.

    Args:
        table: its URI, normalised.
        app_id: the application.
        version: the number of the batch.
    """
    token = current_batch.set(RecordedBatch(table, app_id, version))
    try:
        yield
    finally:
        current_batch.reset(token)


def recorded(
    reads: Reads, log: TableLog, actions: Sequence[Action], operation: Operation
) -> Sequence[Action]:
    """The actions of a commit, with the record of the batch that it is, where it is one.

    Args:
        reads: of the transaction that is to commit them.
        log: of its table.
        actions: of the commit.
        operation: its; only those that change rows count, and not what follows them by itself.

    Raises:
        DeltaAnalysisError: the batch has committed to the table before.
        ConcurrentTransactionException: another process has recorded the batch meanwhile.
    """
    batch, table = current_batch.get(), log.table
    if batch is None or batch.table != table or not actions or not operation.changes_data:
        return actions
    if batch.landed:
        raise DeltaAnalysisError(
            f"batch {batch.version} of {batch.app_id} changes {table} a second time, in a function "
            "that is to be recorded as a whole: a crash between the two would leave half of it. "
            "Make it one command, or give each its own function and name.",
            table=table,
            app_id=batch.app_id,
        )
    if reads.txn_version(batch.app_id) >= batch.version:
        raise ConcurrentTransactionException(
            f"another process has written batch {batch.version} of {batch.app_id} to {table} in "
            "the meantime. Nothing of this attempt is in the table.",
            table=table,
        )
    batch.reads = reads
    now = log.clock.now_ms()
    mark = SetTransaction(app_id=batch.app_id, version=batch.version, last_updated=now)
    return [mark, *actions]


def note_commit(reads: Reads) -> None:
    """Note that the commit of the transaction with these reads landed."""
    batch = current_batch.get()
    if batch is not None and batch.reads is reads:
        batch.landed = True
