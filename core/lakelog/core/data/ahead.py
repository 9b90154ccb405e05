"""Streams that are read ahead by a few threads, in bounded memory.

Each stream keeps a few items ready and pauses there, holding no thread, until some are taken. So
what is in memory follows from the numbers given here, not from how much there is; and a consumer
that stops in the middle leaves nobody waiting.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Executor

__all__ = ["made_ahead", "read_ahead"]

_T = TypeVar("_T")
_END: Any = object()


def read_ahead(
    streams: Iterable[Callable[[], Generator[_T]]],
    *,
    workers: int,
    items: int = 2,
    ordered: bool = True,
) -> Generator[_T]:
    """The items of some streams, one stream after the other, or as they come.

    An error of a stream is raised in its place; the streams that are open then are closed.

    Args:
        streams: each one is opened when it is its turn to be read ahead.
        workers: so many streams are open at once; 1 for none ahead and no thread.
        items: so many items of each are kept ready.
        ordered: whether all items of a stream come before those of the next one.
    """
    if workers < 2:
        for each in streams:
            with closing(each()) as found:
                yield from found
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers, "lakelog-scan") as pool:
        reading = _Reading[_T](pool, items)
        try:
            yield from reading.run(iter(streams), workers, ordered)
        finally:
            reading.stop(pool)


def made_ahead(items: Iterable[_T], room: int, size_of: Callable[[_T], int]) -> Generator[_T]:
    """The same items, made by another thread while those before them are used.

    An error is raised in its place. Where no more is wanted, close this: the thread ends.

    Args:
        items: of any sizes.
        room: bytes for those that wait; there may be one whatever its size. One more is made, and
            waits for room.
        size_of: the bytes of an item.
    """
    from concurrent.futures import ThreadPoolExecutor

    waiting = _Waiting[_T](room)

    def make() -> None:
        for item in items:
            if not waiting.put(item, size_of(item)):
                return

    with ThreadPoolExecutor(1, "lakelog-scan") as pool:
        try:
            made = pool.submit(make)
            made.add_done_callback(lambda _: waiting.end())
            yield from waiting
            made.result()
        finally:
            waiting.end()


class _Waiting(Generic[_T]):
    """Items that one thread makes and another one takes."""

    def __init__(self, room: int) -> None:
        self._items: deque[tuple[_T, int]] = deque()
        self._left = room
        self._changed = threading.Condition()
        self._is_over = False

    def put(self, item: _T, size: int) -> bool:
        """Add an item once there is room; whether anybody wants more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or not self._items or size <= self._left)
            self._items.append((item, size))
            self._left -= size
            self._changed.notify()
            return not self._is_over

    def end(self) -> None:
        """No more items come, or none is wanted."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def __iter__(self) -> Iterator[_T]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_over or self._items)
                if not self._items:
                    return
                item, size = self._items.popleft()
                self._left += size
                self._changed.notify()
            yield item


class _Lane(Generic[_T]):
    """An open stream, and those of its items that were not taken yet."""

    def __init__(self, stream: Generator[_T]) -> None:
        self.stream = stream
        self.ready: deque[_T] = deque()
        self.is_running = False
        self.is_over = False
        self.error: BaseException | None = None


class _Reading(Generic[_T]):
    def __init__(self, pool: Executor, items: int) -> None:
        self._pool = pool
        self._items = items
        self._changed = threading.Condition()
        self._stopped = False
        self._lanes: deque[_Lane[_T]] = deque()

    def run(
        self, streams: Iterator[Callable[[], Generator[_T]]], workers: int, ordered: bool
    ) -> Iterator[_T]:
        lanes = self._lanes
        while True:
            while len(lanes) < workers and (opened := next(streams, None)) is not None:
                lanes.append(_Lane(opened()))
                self._resume(lanes[-1])
            if not lanes:
                return
            lane = self._next_lane(ordered)
            if lane.ready:
                item = lane.ready.popleft()
                self._resume(lane)
                yield item
                continue
            lanes.remove(lane)
            if lane.error is not None:
                raise lane.error

    def _next_lane(self, ordered: bool) -> _Lane[_T]:
        """The first lane that has an item or is over; where the order counts, of the first one."""
        with self._changed:
            while True:
                for lane in self._lanes:
                    if lane.ready or lane.is_over:
                        return lane
                    if ordered:
                        break
                self._changed.wait()

    def _resume(self, lane: _Lane[_T]) -> None:
        with self._changed:
            if lane.is_running or lane.is_over or len(lane.ready) >= self._items:
                return
            lane.is_running = True
        self._pool.submit(self._fill, lane)

    def _fill(self, lane: _Lane[_T]) -> None:
        """Read a lane until enough is ready."""
        while True:
            error: BaseException | None = None
            item = _END
            try:
                item = next(lane.stream, _END)
            except BaseException as exc:
                # For the consumer, whatever it is: nobody looks at what a task raised.
                error = exc
            with self._changed:
                if item is _END:
                    lane.is_over, lane.error = True, error
                else:
                    lane.ready.append(item)
                enough = len(lane.ready) >= self._items
                lane.is_running = not (lane.is_over or enough or self._stopped)
                self._changed.notify_all()
                if not lane.is_running:
                    return

    def stop(self, pool: Executor) -> None:
        """Close every open stream, once no thread reads it any more."""
        with self._changed:
            self._stopped = True
        pool.shutdown(wait=True, cancel_futures=True)
        for lane in self._lanes:
            lane.stream.close()
