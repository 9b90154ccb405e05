"""What need not be done amid a commit."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from lakelog.core.telemetry.losses import tell_lost

if TYPE_CHECKING:
    from collections.abc import Callable

_MANY: Final = 1000
_MOST: Final = 10_000


class Later:
    """Work that waits until there is more of it, or until somebody needs it done.

    Amid other work OpenTelemetry takes three times as long for a span or a measurement as for one
    of many.
    """

    def __init__(self) -> None:
        """Nothing waits."""
        self._work: deque[Callable[[], None]] = deque(maxlen=_MOST)
        self.is_due: bool = False
        """Whether an exporter will ask soon, so that spans may wait too."""
        self._here = threading.local()

    def add(self, work: Callable[[], None]) -> None:
        """Let some work wait."""
        self._work.append(work)
        # What work adds is done by the loop that does the work: loops in loops have no end.
        if len(self._work) >= _MANY and not getattr(self._here, "is_doing", False):
            self.do()

    def do(self) -> None:
        """Do all that waits."""
        was_doing, self._here.is_doing = getattr(self._here, "is_doing", False), True
        try:
            with suppress(IndexError):  # other threads take from it too
                while True:
                    work = self._work.popleft()
                    try:
                        work()
                    except Exception:
                        tell_lost()
        finally:
            self._here.is_doing = was_doing

    def forget(self) -> None:
        """Leave all of it to the process that this one was forked from."""
        self._work.clear()
        self.is_due = False
