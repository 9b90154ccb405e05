"""One write per second to one name: the rate that Google Cloud Storage documents for an object.

Commits have names of their own and never wait, however many threads race for one: one of them is
let in, and refusals don't count. What waits is a name written again and again, as
`_last_checkpoint` is, and a commit that is sent once more because no answer came.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Callable

_REMEMBERED: Final = 4096
_LONGEST_QUEUE: Final = 10.0
"""Seconds; a thread that would wait longer goes ahead, and Google may then ask it to slow down."""


class Pace:
    """Spaces out the writes of one name, among the threads of a process."""

    def __init__(
        self,
        interval: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember nothing yet.

        Args:
            interval: seconds between two writes of a name.
            now: a monotonic clock, in seconds.
            sleep: waits that many seconds.
        """
        self._interval = interval
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._last: OrderedDict[tuple[str, str], float] = OrderedDict()

    def wait(self, bucket: str, key: str) -> None:
        """Reserve the name's next turn, and wait for it."""
        now = self._now()
        with self._lock:
            turn = max(now, self._last.get((bucket, key), now - self._interval) + self._interval)
            turn = min(turn, now + _LONGEST_QUEUE)
            self._remember(bucket, key, turn)
        if turn > now:
            self._sleep(turn - now)

    def wait_after_doubt(self, bucket: str, key: str) -> None:
        """Wait for a turn only if something may have been written as that name before."""
        with self._lock:
            is_known = (bucket, key) in self._last
        if is_known:
            self.wait(bucket, key)

    def note(self, bucket: str, key: str) -> None:
        """Something may have been written."""
        with self._lock:
            self._remember(bucket, key, self._now())

    def _remember(self, bucket: str, key: str, turn: float) -> None:
        self._last[bucket, key] = turn
        self._last.move_to_end((bucket, key))
        while len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)

    def forget(self, bucket: str, key: str) -> None:
        """Nothing was written after all: the service refused."""
        with self._lock:
            self._last.pop((bucket, key), None)


_paces: dict[tuple[str, float], Pace] = {}

# A fork may copy a pace while another thread holds its lock.
after_fork(_paces.clear)


def pace_of(root_url: str, interval: float) -> Pace:
    """The process's one pace for an endpoint."""
    return _paces.setdefault((root_url, interval), Pace(interval))
