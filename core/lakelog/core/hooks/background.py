"""Small writes that no caller waits for, on threads that end when nothing is left to write.

- What is due for one table is done in order, by one thread at a time; a table whose storage
  answers slowly holds up no other.
- The threads are no daemons: the interpreter's end waits for them, as long as requests may take.
  Once it has begun, no thread is started any more, and work is done in line.
- A forked child has none of these threads, and nothing to do for them: its parent does it.
- What waits is bounded, for the whole process. Beyond that the oldest is left out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from lakelog.logstores.limits import limited
from lakelog.logstores.systems import after_fork
from lakelog.logstores.threads import WRITES

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("lakelog")

_MOST: Final = 64
"""Pieces of work that may wait. A commit on far storage takes longer than what follows it here, so
that more than one or two of a table mean a storage that does not keep up."""
_SECONDS: Final = 10.0
"""How long one piece of work may go on repeating requests, and all of them at the process's end."""


class _Work(NamedTuple):
    table: str
    what: str
    do: Callable[[], object]


class _Background:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.waiting: deque[_Work] = deque()
        self.busy: set[str] = set()
        """Tables that a thread works for."""
        self.threads: set[threading.Thread] = set()
        self.left_out = 0
        self.ends: float | None = None
        """When work at the process's end is given up, of the monotonic clock."""

    def take(self, work: _Work) -> bool:
        """Let a thread do it; False where no thread can be had."""
        with self.changed:
            self.waiting.append(work)
            if len(self.threads) < WRITES and self._next() is not None:
                # No daemon, whatever the thread is that commits.
                thread = threading.Thread(target=self._run, name="lakelog-background", daemon=False)
                try:
                    thread.start()
                except RuntimeError:
                    if not self.threads:
                        self.waiting.remove(work)
                        return False
                else:
                    self.threads.add(thread)
            if len(self.waiting) > _MOST:
                self.waiting.popleft()
                self.left_out += 1
            return True

    def _next(self) -> _Work | None:
        """The oldest that waits for no thread but one."""
        return next((each for each in self.waiting if each.table not in self.busy), None)

    def _run(self) -> None:
        try:
            while (work := self._begun()) is not None:
                self._do(work)
        finally:
            # Whatever ended it: work would wait forever for a thread that is counted but has ended.
            with self.changed:
                self.threads.discard(threading.current_thread())

    def _do(self, work: _Work) -> None:
        try:
            limited(self._left(time.monotonic() + _SECONDS), work.do)
        except Exception as exc:
            _log.warning("%s: %s failed: %s", work.table, work.what, exc)
        finally:
            with self.changed:
                self.busy.discard(work.table)
                self.changed.notify_all()

    def _begun(self) -> _Work | None:
        """The next work for this thread; None ends it, in the same breath."""
        with self.changed:
            if self._is_over():
                self.left_out += len(self.waiting)
                self.waiting.clear()
            work = self._next()
            if work is not None:
                self.waiting.remove(work)
                self.busy.add(work.table)
                return work
            self.threads.discard(threading.current_thread())
            left_out, self.left_out = self.left_out, 0
            self.changed.notify_all()
        if left_out:
            _log.warning(
                "%d writes that follow commits were left out: the storage takes them more slowly "
                "than commits come. No reader needs them",
                left_out,
            )
        return None

    def _is_over(self) -> bool:
        if _is_ending() and self.ends is None:
            self.ends = time.monotonic() + _SECONDS
        return self.ends is not None and time.monotonic() > self.ends

    def _left(self, until: float) -> Callable[[], float]:
        def left() -> float:
            ends = until if self.ends is None else min(until, self.ends)
            return ends - time.monotonic()

        return left

    def wait(self, seconds: float) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: not (self.waiting or self.threads), seconds)


_background = _Background()


def _reset_after_fork() -> None:
    global _background
    _background = _Background()


after_fork(_reset_after_fork)


def _is_ending() -> bool:
    # The interpreter marks its main thread so before it waits for the others.
    return not threading.main_thread().is_alive()


def do_later(table: str, what: str, do: Callable[[], object]) -> None:
    """Do something that no caller waits for, after earlier work for the same table.

    A failure is logged. Where the process is ending, or can't have another thread, it is done at
    once instead, and raises what it raises.

    Args:
        table: whose turn it takes.
        what: its name, for the log.
        do: makes requests; it must not wait for anything of this thread.
    """
    if _is_ending() or not _background.take(_Work(table, what, do)):
        do()


def wait_for_all(seconds: float = 60.0) -> bool:
    """Wait until nothing is left to do and no thread is left; whether that came in time."""
    return _background.wait(seconds)
