"""Time, as a thing that can be handed in: tests own theirs."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

__all__ = ["Clock", "SystemClock"]


@runtime_checkable
class Clock(Protocol):
    """What the core asks of time."""

    def now_ms(self) -> int:
        """The wall clock: milliseconds since 1970-01-01 UTC. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, from an arbitrary start: for durations."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds by `time.monotonic`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Suspend this thread."""
        time.sleep(seconds)
