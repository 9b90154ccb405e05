"""Many small files of a store, read by as many threads as the wait for one of them is worth."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FEW: Final = 16
MOST: Final = 64
"""Readers of one log; the stores keep as many connections open."""
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
    if len(keys) < 2:
        return [read(key) for key in keys]
    from concurrent.futures import ThreadPoolExecutor

    left = deque(range(len(keys)))
    found: dict[int, _V] = {}
    failed: dict[int, BaseException] = {}

    def take() -> None:
        try:
            place = left.popleft()
        except IndexError:
            return
        try:
            found[place] = read(keys[place])
        except BaseException as exc:  # noqa: BLE001, RUF100  # raised by the caller's thread
            failed[place] = exc
            left.clear()

    def work() -> None:
        while left:
            take()

    with ThreadPoolExecutor(min(MOST, len(keys)) - 1, "lakelog-commits") as pool:
        try:
            for _ in range(min(_FEW, len(keys)) - 1):
                pool.submit(work)
            began = clock()
            take()
            wanted = min(MOST, round((clock() - began) / _BUSY)) if far else 0
            for _ in range(_FEW, min(wanted, _FEW + len(left))):
                pool.submit(work)
            work()
        finally:
            left.clear()
    if failed:
        raise failed[min(failed)]
    return [found[place] for place in range(len(keys))]
