"""Work that waits for a storage, on several threads.

Pickled by value to executors, as `lakelog.core.portable.hive_writer` is.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

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
    waiting = deque(items)

    # A task for each item would cost more than many an item asks of the processor.
    def run() -> None:
        while not stopped.is_set():
            try:
                item = waiting.popleft()
            except IndexError:
                return
            try:
                work(item)
            except BaseException:
                stopped.set()
                raise

    if not items:
        return
    with ThreadPoolExecutor(min(threads, len(items)), name) as pool:
        try:
            tasks: list[Future[None]] = []
            with suppress(RuntimeError):  # the interpreter starts no more threads
                for _ in range(min(threads, len(items))):
                    tasks.append(pool.submit(run))
            if not tasks:
                run()
            for each in tasks:
                each.result()
        finally:
            # Also where this thread is interrupted while it waits.
            stopped.set()
