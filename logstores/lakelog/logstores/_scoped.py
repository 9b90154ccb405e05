"""A value of this thread, or task, that holds for one call and cannot outlast it.

A `with` block that sets and resets loses the reset to an exception that arrives between two
statements (a signal's handler, Ctrl-C), and the thread keeps the value for good. The end of a
`contextvars.Context` is left to no line of Python.
"""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar

__all__ = ["call_with"]

_V = TypeVar("_V")
_T = TypeVar("_T")


def call_with(variable: ContextVar[_V], value: _V, work: Callable[[], _T]) -> _T:
    """What `work` returns where the variable has this value.

    Args:
        variable: back at its old value afterwards, whatever happens.
        value: the one meanwhile.
        work: any other context variable that it sets is reset too.
    """
    context = copy_context()
    context.run(variable.set, value)
    return context.run(work)
