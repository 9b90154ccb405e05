"""How commands that run until they are stopped are stopped."""

from __future__ import annotations

import contextlib
import queue
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


@contextlib.contextmanager
def until_stopped() -> Iterator[Callable[[], object]]:
    """Yield what waits for Ctrl-C or SIGTERM, whichever come from here on.

    Must be entered by the main thread.
    """
    # An `Event` would wait for itself, where the signal comes while its lock is held.
    stops: queue.SimpleQueue[int] = queue.SimpleQueue()

    def stop(number: int, _: FrameType | None) -> None:
        stops.put(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stops.get
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
