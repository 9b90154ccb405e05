"""Streams that are read ahead by a few threads, in bounded memory.

Each stream keeps a few items ready and pauses there, holding no thread, until some are taken. So
memory use depends on the numbers given here, not on the amount of data; and a consumer that stops
in the middle leaves no thread waiting.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lakelog.logstores.threads import hiring

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    Hire = Callable[[Callable[[], object]], bool]

_T = TypeVar("_T")
_END: Any = object()
_MOST_ITEMS = 64
"""That wait, however small they are."""
_LEAST_WAIT, _WAIT_FACTOR = 0.02, 4
"""Seconds that a reader has waited before it takes threads, if that is so many times its work."""


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
    lanes: deque[_Lane[_T]] = deque()
    try:
        with hiring(workers, "lakelog-scan") as hire:
            reading = _Reading(hire, items, lanes)
            try:
                yield from reading.run(iter(streams), workers, ordered)
            finally:
                reading.stop()
    finally:
        # No thread reads any of them now.
        for lane in lanes:
            lane.stream.close()


def read_while_quick(streams: Iterator[Callable[[], Generator[_T]]]) -> Generator[_T]:
    """The items of some streams by the caller's thread, until it has mostly waited for them.

    For many small files of a disk: what there is to do for each is done under the interpreter's
    lock, for which threads would only wait. But a disk may be slow, or in truth a network.

    Args:
        streams: what it has at the end was not opened.
    """
    waited = worked = 0.0
    for each in streams:
        with closing(each()) as found:
            while True:
                start, work = time.perf_counter(), time.thread_time()
                item = next(found, _END)
                done = time.thread_time() - work
                waited += time.perf_counter() - start - done
                worked += done
                if item is _END:
                    break
                yield item
        if waited > _LEAST_WAIT + _WAIT_FACTOR * worked:
            return


def made_ahead(items: Iterable[_T], room: int, size_of: Callable[[_T], int]) -> Generator[_T]:
    """The same items, made by another thread while those before them are used.

    An error is raised in its place. Where no thread can be had, as when the interpreter ends, items
    are made as they are asked for.

    Args:
        items: of any sizes.
        room: bytes of items that wait; the one that exceeds it is the last that is made ahead.
        size_of: the bytes of an item.
    """
    rest = iter(items)
    # Until there is something to work on, nothing is gained by another thread.
    first = next(rest, _END)
    if first is _END:
        return
    with hiring(1, "lakelog-scan") as hire:
        making = _Making[_T](hire, rest, room, size_of)
        try:
            making.resume()
            yield first
            yield from making.run()
        finally:
            making.stop()


class _Making(Generic[_T]):
    """Items made and not taken yet; a task makes more, and ends where there is no room."""

    def __init__(
        self, hire: Hire, rest: Iterator[_T], room: int, size_of: Callable[[_T], int]
    ) -> None:
        self._hire = hire
        self._rest = rest
        self._room = room
        self._least = max(room // _MOST_ITEMS, 1)
        self._size_of = size_of
        self._ready: deque[tuple[_T, int]] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._is_running = self._is_over = self._is_refused = False
        self._error: BaseException | None = None

    def run(self) -> Iterator[_T]:
        while True:
            if self._is_refused and not self._ready and not self._is_over:
                self._make()
            with self._changed:
                self._changed.wait_for(lambda: self._ready or self._is_over)
                if not self._ready:
                    break
                item, size = self._ready.popleft()
                self._waiting -= size
            self.resume()
            yield item
        if self._error is not None:
            raise self._error

    def resume(self) -> None:
        """Have more items made, if there is room."""
        with self._changed:
            if self._is_running or not self._has_room or self._is_refused:
                return
            self._is_running = True
        if not self._hire(self._fill):
            # Never again: a thread that came late would be beside who makes items instead.
            self._is_running, self._is_refused = False, True

    @property
    def _has_room(self) -> bool:
        return not self._is_over and (not self._ready or self._waiting < self._room)

    def _fill(self) -> None:
        goes_on = True
        while goes_on:
            self._make()
            with self._changed:
                goes_on = self._is_running = self._has_room

    def _make(self) -> None:
        error: BaseException | None = None
        item, size = _END, 0
        try:
            item = next(self._rest, _END)
            size = 0 if item is _END else max(self._size_of(item), self._least)
        except BaseException as exc:
            # For the consumer, whatever it is: an exception raised in a task goes unnoticed.
            item, error = _END, exc
        with self._changed:
            if item is _END:
                self._is_over, self._error = True, error
            else:
                self._ready.append((item, size))
                self._waiting += size
            self._changed.notify_all()

    def stop(self) -> None:
        """No more items are wanted: the task ends with the one that it makes now."""
        with self._changed:
            self._is_over = True


class _Lane(Generic[_T]):
    """An open stream, and those of its items that were not taken yet."""

    def __init__(self, stream: Generator[_T]) -> None:
        self.stream = stream
        self.ready: deque[_T] = deque()
        self.is_due = False
        """Whether it waits for a thread."""
        self.is_running = False
        self.is_over = False
        self.error: BaseException | None = None


class _Reading(Generic[_T]):
    def __init__(self, hire: Hire, items: int, lanes: deque[_Lane[_T]]) -> None:
        self._hire = hire
        self._items = items
        self._changed = threading.Condition()
        self._stopped = False
        self._lanes = lanes

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
            lane.is_running = lane.is_due = True
        fill = partial(self._fill, lane)
        if not self._hire(fill):
            fill()

    def _fill(self, lane: _Lane[_T]) -> None:
        """Read a lane until enough is ready."""
        with self._changed:
            # A thread may come late, for a lane that was read by who could get none.
            if self._stopped or not lane.is_due:
                return
            lane.is_due = False
        while True:
            error: BaseException | None = None
            item = _END
            try:
                item = next(lane.stream, _END)
            except BaseException as exc:
                # For the consumer, whatever it is: an exception raised in a task goes unnoticed.
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

    def stop(self) -> None:
        """No more items are wanted: each thread ends with the one that it reads now."""
        with self._changed:
            self._stopped = True
