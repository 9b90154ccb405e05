"""The time that a caller of a store has left, which bounds how long requests are repeated.

A store's own budget is for one operation. Whoever makes many of them within a budget of its own,
such as a commit, says here what is left of it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from lakelog.logstores._scoped import call_with

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["limited", "seconds_left"]

_T = TypeVar("_T")

_left: ContextVar[Callable[[], float] | None] = ContextVar("lakelog_time_left", default=None)


def limited(left: Callable[[], float], work: Callable[[], _T]) -> _T:
    """What `work` returns, which may repeat no request for longer than is left.

    An operation that begins when nothing is left makes its request once.

    Args:
        left: seconds; asked when an operation begins.
        work: operations of stores, in this thread or task.
    """
    return call_with(_left, left, work)


def seconds_left() -> float:
    """What the caller has left, zero at the least; infinity where nobody said."""
    left = _left.get()
    return float("inf") if left is None else max(0.0, left())
