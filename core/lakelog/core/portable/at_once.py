"""Work that waits for a storage, on several threads.

Pickled by value to executors, as `lakelog.core.portable.writer` is.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["do_at_once"]

_T = TypeVar("_T")


def do_at_once(work: Callable[[_T], object], items: Sequence[_T], threads: int, name: str) -> None:
    """Do something with each item, and return when no thread is at it any more.

    After a failure no further item is begun.

    Args:
        work: called once for each item, by any thread.
        items: in no order.
        threads: at most.
        name: of the threads.

    Raises:
        Exception: the first that `work` raised.
    """
    stopped = threading.Event()

    def run(share: Sequence[_T]) -> None:
        for item in share:
            if stopped.is_set():
                return
            try:
                work(item)
            except BaseException:
                stopped.set()
                raise

    # A task for each item would cost more than many an item asks of the processor.
    shares = [share for first in range(threads) if (share := items[first::threads])]
    if not shares:
        return
    with ThreadPoolExecutor(len(shares), name) as pool:
        try:
            list(pool.map(run, shares))
        finally:
            # Also where this thread is interrupted while it waits.
            stopped.set()
