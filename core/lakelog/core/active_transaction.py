"""The active transaction of a thread (delta: `OptimisticTransaction.getActive`).

A transaction that runs in `DeltaLog.with_new_transaction` is active while it does, so that code
which is called from there finds it, and two are never mixed up.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores._scoped import call_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.transaction import OptimisticTransaction

__all__ = ["active", "run_active", "run_without"]

T = TypeVar("T")
_active: ContextVar[OptimisticTransaction | None] = ContextVar("lakelog_active", default=None)


def active() -> OptimisticTransaction | None:
    """The transaction that is active in this thread."""
    return _active.get()


def run_active(transaction: OptimisticTransaction, work: Callable[[OptimisticTransaction], T]) -> T:
    """Run something with a transaction that is the active one of this thread meanwhile.

    Raises:
        DeltaAnalysisError: there is one already.
    """
    before = _active.get()
    if before is not None:
        there = before.delta_log.table
        raise DeltaAnalysisError(
            "[DELTA_ACTIVE_TRANSACTION_ALREADY_SET] Cannot set a new txn as active when one is "
            f"already active: that of {there} is, and {transaction.delta_log.table} would be "
            "next. End the first before the second begins, or use start_transaction.",
            table=transaction.delta_log.table,
            active_table=there,
        )
    return call_with(_active, transaction, lambda: work(transaction))


def run_without(work: Callable[[], T]) -> T:
    """Run something that may begin its own transaction, though one is active."""
    return call_with(_active, None, work)
