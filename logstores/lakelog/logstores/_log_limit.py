"""How much of a log may be taken into memory: a hostile one must not end the process."""

from __future__ import annotations

import functools
import os
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.logstores._scoped import call_with
from lakelog.logstores.errors import FileTooLargeError, LogStoreConfError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LIMIT_KEY", "check_length", "check_told", "log_limit", "reading"]

_T = TypeVar("_T")
LIMIT_KEY: Final = "spark.lakelog.log.maxBytes"
"""Bytes of memory that what is read of one log may take."""
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
        LogStoreConfError: it is no positive whole number.
    """
    text = conf.get(LIMIT_KEY)
    if text is None:
        return _default()
    try:
        limit = int(text)
    except ValueError:
        limit = 0
    if limit <= 0:
        raise LogStoreConfError(
            f"the conf {LIMIT_KEY} must be a positive whole number of bytes, but it is {text!r}"
        )
    return limit


def check_length(path: str, length: int, limit: int) -> None:
    """Refuse a file before it is read.

    Raises:
        FileTooLargeError: it has more bytes than the limit.
    """
    if length > limit:
        raise FileTooLargeError(path, length, limit)


_reading: ContextVar[tuple[str, int] | None] = ContextVar("lakelog_reading", default=None)


def reading(path: str, limit: int, work: Callable[[], _T]) -> _T:
    """What `work` returns, in which `check_told` refuses replies that are too long.

    Args:
        path: of the file, for the error.
        limit: bytes.
        work: reads the file.
    """
    return call_with(_reading, (path, limit), work)


def check_told(length: int | str | None) -> None:
    """Refuse a reply by the length that it tells, before its bytes are fetched.

    Args:
        length: of the whole file; None, or no number, where the reply tells none.

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
        # A system that does not tell; 8 GiB is what a small driver has.
        found.append(8 << 30)
    for each in _CGROUP:
        try:
            found.append(int(Path(each).read_text()))
        except (OSError, ValueError):
            continue
    return max(min(found) // 2, _LEAST)
