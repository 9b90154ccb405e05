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
    follow.

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
    more = (lambda: round((clock() - began) / _BUSY)) if far else None
    return at_once(read, keys, REQUESTS, "lakelog-commits", more=more)
