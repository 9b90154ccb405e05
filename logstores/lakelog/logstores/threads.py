"""Work on several threads at once: every pool of the product is made here.

Most of the work waits for a storage; the rest is pyarrow's, which lets other threads run. Whatever
its shape, all of this holds:

- A pool lasts for one call. When that returns or raises, no thread of it is left: nothing is at
  work while a caller cleans up, and a fork between two calls has no thread to miss.
- The first failure ends it, as Ctrl-C does: what has not begun never begins, what has begun is
  waited for, and then the error is raised.
- Work has the context variables of its caller, such as the time that a commit has left.
- Where no thread can be had, as when the interpreter ends, the caller's thread does the work.

`lakelog.core.portable` sends this code to executors by value, so it imports nothing of ours.
"""

from __future__ import annotations

import os
import threading
from collections import deque

# Not later: once the interpreter ends it can't be imported, nor can what needs it, as pyarrow does.
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

_T = TypeVar("_T")
_R = TypeVar("_R")

REQUESTS: Final = 16
"""Small requests, which only wait: enough to hide the way there and back, and fewer than any
service slows down or any client has connections for."""
MOST_REQUESTS: Final = 64
"""The same, once each was seen to wait long; the stores keep as many connections open."""
TASK_REQUESTS: Final = 8
"""The same for one task of an executor, which has others beside it."""
WRITES: Final = 8
"""Small files that are made, synced, copied, or deleted in order: a request each, or the disk's own
bookkeeping, and some memory for what is in them."""
DECODERS: Final = 4
"""Files whose rows are decoded: all of them are in memory, and pyarrow's own threads share the work
of each already."""
BLOCKS: Final = 3
"""Blocks of large uploads, 16 MB each."""
_PATIENCE: Final = 60.0
"""Seconds that a thread of `run_together` waits for the others to be there."""


def readers() -> int:
    """How many threads read the rows of data files: those of pyarrow decode, these mostly wait."""
    return min(2 * (os.cpu_count() or 1), 32)


@contextmanager
def hiring(threads: int, name: str) -> Iterator[Callable[[Callable[[], object]], bool]]:
    """Give what has a thread do some work, and says whether there is one; at the end, all is done.

    Args:
        threads: at most.
        name: theirs.
    """
    with ThreadPoolExecutor(threads, name) as pool:

        def hire(work: Callable[[], object]) -> bool:
            try:
                pool.submit(copy_context().run, work)
            except RuntimeError:  # the interpreter starts no more threads
                return False
            return True

        yield hire


def at_once(
    work: Callable[[_T], _R],
    items: Sequence[_T],
    threads: int,
    name: str,
    *,
    more: Callable[[], int] | None = None,
) -> list[_R]:
    """Do something with each item; return what came of it, in the order of the items.

    Args:
        work: called once for each item, by any thread, the caller's among them.
        items: begun in their order.
        threads: at most.
        name: of the threads.
        more: asked how many threads are worth it, up to `MOST_REQUESTS`, once the caller's thread
            has done an item.

    Raises:
        BaseException: what `work` raised; an interrupt, or else the error of the first item that
            failed.
    """
    threads = min(threads, len(items))
    if threads < 2:
        return [work(each) for each in items]
    left = deque(range(len(items)))
    found: dict[int, _R] = {}
    failed: dict[int, BaseException] = {}

    def take() -> None:
        try:
            place = left.popleft()
        except IndexError:
            return
        try:
            found[place] = work(items[place])
        except BaseException as exc:  # noqa: BLE001, RUF100  # raised by the caller's thread
            failed[place] = exc
            left.clear()

    # A task for each item would cost more than many an item asks of the processor.
    def run() -> None:
        while left:
            take()

    most = threads if more is None else min(MOST_REQUESTS, len(items))
    with hiring(most - 1, name) as hire:
        try:
            has_threads = all(hire(run) for _ in range(threads - 1))
            take()
            if more is not None and has_threads:
                wanted = min(more(), most, threads + len(left))
                all(hire(run) for _ in range(threads, wanted))
            run()
        finally:
            # Also where this thread is interrupted while it waits.
            left.clear()
    if failed:
        raise failed[min(failed, key=lambda place: (isinstance(failed[place], Exception), place))]
    return [found[place] for place in range(len(items))]


def in_order(
    work: Callable[[_T], _R], items: Sequence[_T], threads: int, name: str
) -> Generator[_R]:
    """`map` by some threads, never more than twice as many results ahead of the consumer.

    Args:
        work: called once for each item.
        items: begun in their order.
        threads: at most; with one item, or one thread, the caller's.
        name: of the threads.
    """
    threads = min(threads, len(items))
    if threads < 2:
        yield from map(work, items)
        return
    with beside(threads, name) as begun:
        for item in items:
            begun.begin(work, item)
            if len(begun) > 2 * threads:
                yield begun.take()
        while begun:
            yield begun.take()


@contextmanager
def beside(threads: int, name: str) -> Iterator[Begun]:
    """Have other threads do some work meanwhile.

    Args:
        threads: at most.
        name: theirs.
    """
    with hiring(threads, name) as hire:
        begun = Begun(hire)
        try:
            yield begun
        finally:
            begun.end()


class Begun:
    """Work that other threads do; `beside` makes it. Results are taken by the thread that began."""

    def __init__(self, hire: Callable[[Callable[[], object]], bool]) -> None:
        """Begin nothing yet.

        Args:
            hire: of `hiring`.
        """
        self._hire = hire
        self._is_alone = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._taken: deque[Future[Any]] = deque()

    def __len__(self) -> int:
        """How many results were not taken."""
        return len(self._taken)

    def begin(self, work: Callable[..., object], *args: object) -> None:
        """Have it done by the next thread that is free."""
        future = Future[Any]()
        self._taken.append(future)
        self._waiting.append(partial(_settle, future, work, args))
        if not self._hire(self._next):
            self._is_alone = True

    def _next(self) -> None:
        try:
            do = self._waiting.popleft()
        except IndexError:
            return
        do()

    def take(self) -> Any:
        """What came of the work that was begun first, or its error."""
        future = self._taken.popleft()
        while self._is_alone and self._waiting and not future.done():
            self._next()
        return future.result()

    def take_done(self) -> list[Any]:
        """What came of all that is done, once something is, or the first error among it."""
        while self._is_alone and self._waiting and not any(each.done() for each in self._taken):
            self._next()
        done, _ = wait(self._taken, return_when=FIRST_COMPLETED)
        ready = [each for each in self._taken if each in done]
        self._taken = deque(each for each in self._taken if each not in done)
        return [each.result() for each in ready]

    def end(self) -> None:
        """Begin no more of what waits."""
        self._waiting.clear()


def _settle(future: Future[Any], work: Callable[..., object], args: tuple[object, ...]) -> None:
    try:
        future.set_result(work(*args))
    except BaseException as exc:  # noqa: BLE001, RUF100  # for the thread that takes it
        future.set_exception(exc)
        # The error's traceback holds this frame, and what is in it.
        del future, work, args


def run_together(jobs: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run some jobs, all released by one barrier, and give what they return, in their order.

    If not all of them can be started, because of Ctrl-C or for want of threads, none is: those
    that wait are let go. Jobs that have begun are waited for in any case, so that nothing is still
    at work when the caller cleans up.

    Raises:
        BaseException: the first of what jobs raised, or what stopped them from being started.
    """
    gate = threading.Barrier(len(jobs), timeout=_PATIENCE)

    def run(job: Callable[[], _T]) -> _T:
        gate.wait()
        return job()

    with ThreadPoolExecutor(len(jobs), "lakelog-together") as pool:
        try:
            running = [pool.submit(run, job) for job in jobs]
            return [each.result() for each in running]
        except BaseException:
            gate.abort()
            raise
