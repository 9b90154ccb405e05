"""Bounds that a caller sets for one call: the time left, and the memory it may take.

A store's own budget is for one operation. A caller that makes many of them within a budget of its
own, such as a commit, says here what is left of it.

The bounds are values of this thread, or task, that cannot outlast the call. A `with` block that
sets and resets loses the reset to an exception that arrives between two statements (a signal's
handler, Ctrl-C), and the thread keeps the value for good. No line of Python has to run at the end
of a `contextvars.Context`.
"""

from __future__ import annotations

import functools
import os
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.logstores import keys
from lakelog.logstores.errors import FileTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    """What the caller has left, at least zero; infinity where none was set."""
    left = _left.get()
    return float("inf") if left is None else max(0.0, left())


LIMIT_KEY: Final = keys.LOG_LIMIT.name
"""Bytes of memory that reading one log may take."""

_LEAST: Final = 1 << 30
"""Room for two million files with statistics, however small the machine is."""

_CGROUP: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
"""What the container has, where that is less than the machine."""


def log_limit(conf: Mapping[str, str]) -> int:
    """The limit that a conf sets; half of the memory that there is, where it sets none.

    Raises:
        LogStoreConfError: it is not a positive whole number.
    """
    limit = keys.LOG_LIMIT.of(conf) if LIMIT_KEY in conf else None
    return _default() if limit is None else limit


def check_length(path: str, length: int, limit: int) -> None:
    """Refuse a file before it is read.

    Raises:
        FileTooLargeError: it has more bytes than the limit.
    """
    if length > limit:
        raise FileTooLargeError(path, length, limit)


_reading: ContextVar[tuple[str, int] | None] = ContextVar("lakelog_reading", default=None)


def reading(path: str, limit: int, work: Callable[[], _T]) -> _T:
    """What `work` returns, in which `check_declared_length` refuses replies that are too long.

    Args:
        path: of the file, for the error.
        limit: bytes.
        work: reads the file.
    """
    return call_with(_reading, (path, limit), work)


def check_declared_length(length: int | str | None) -> None:
    """Refuse a reply by the length that it declares, before its bytes are fetched.

    Args:
        length: of the whole file; None, or not a number, where the reply declares none.

    Raises:
        FileTooLargeError: it is more than `reading` allows.
    """
    allowed = _reading.get()
    if allowed is not None and length is not None and str(length).isdigit():
        check_length(allowed[0], int(length), allowed[1])


@functools.cache
def _default() -> int:
    found = []
    try:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        # A system that does not say; 8 GiB is what a small driver has.
        found.append(8 << 30)
    for each in _CGROUP:
        try:
            found.append(int(Path(each).read_text()))
        except (OSError, ValueError):
            continue
    return max(min(found) // 2, _LEAST)
