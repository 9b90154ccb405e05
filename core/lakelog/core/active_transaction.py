"""The active transaction of a thread (delta: `OptimisticTransaction.getActive`).

A transaction that runs in `DeltaLog.with_new_transaction` is active while it does, so that code
which is called from there finds it, and two are never mixed up.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.transaction import OptimisticTransaction

__all__ = ["active", "clear_active", "not_active", "set_active"]


class _PerThread(threading.local):
    transaction: OptimisticTransaction | None = None


_thread = _PerThread()


def active() -> OptimisticTransaction | None:
    """The transaction that is active in this thread."""
    return _thread.transaction


def set_active(transaction: OptimisticTransaction) -> None:
    """Make a transaction the active one of this thread.

    Raises:
        DeltaAnalysisError: there is one already.
    """
    if _thread.transaction is not None:
        there = _thread.transaction.delta_log.table
        raise DeltaAnalysisError(
            "[DELTA_ACTIVE_TRANSACTION_ALREADY_SET] Cannot set a new txn as active when one is "
            f"already active: that of {there} is, and {transaction.delta_log.table} would be "
            "next. End the first before the second begins, or use start_transaction.",
            table=transaction.delta_log.table,
            active_table=there,
        )
    _thread.transaction = transaction


def clear_active() -> None:
    """Let no transaction be active in this thread."""
    _thread.transaction = None


@contextlib.contextmanager
def not_active() -> Iterator[None]:
    """While this lasts no transaction is active: what runs inside may begin its own."""
    before = _thread.transaction
    _thread.transaction = None
    try:
        yield
    finally:
        _thread.transaction = before
