"""Many small files of a store, read by as many threads as the wait for one of them is worth."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BUSY: Final = 0.0006
"""Seconds of the processor that reading one file takes. A thread that waits ten times as long
leaves room for nine others."""
_QUICK: Final = 0.002
"""Seconds in which a file of a local disk is read and parsed where nothing is waited for. Threads
would only wait for each other then, and cost more than such a file."""
_NAME: Final = "lakelog-commits"

_K = TypeVar("_K")
_V = TypeVar("_V")


def read_side_by_side(
    read: Callable[[_K], _V],
    keys: Sequence[_K],
    *,
    far: bool,
    clock: Callable[[], float] = time.monotonic,
) -> list[_V]:
    """What `read` gives for each key, in the order of the keys.

    Sixteen threads begin. Where the first file shows that reading is mostly waiting, more of them
    follow. Files of a local disk are read by the caller's thread until two in a row are not there
    at once.

    Args:
        read: called with each key once, by any thread.
        keys: of what is read.
        far: whether the store is a network away; else sixteen are always enough.
        clock: seconds.

    Raises:
        BaseException: what `read` raised for the first of the keys that it failed for. Nothing
            more is begun then.
    """
    began = clock()
    if far:
        return at_once(read, keys, REQUESTS, _NAME, more=lambda: round((clock() - began) / _BUSY))
    found: list[_V] = []
    slow = 0
    for key in keys:
        found.append(read(key))
        before, began = began, clock()
        # One alone may have loaded a module, or lost its turn on the processor.
        slow = slow + 1 if began - before > _QUICK else 0
        if slow == 2:
            break
    return [*found, *at_once(read, keys[len(found) :], REQUESTS, _NAME)]
