"""Time, as a thing that can be handed in: tests own theirs."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, runtime_checkable

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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


def utc_time(milliseconds: int) -> datetime:
    """Milliseconds since the epoch as a time in UTC, exactly.

    Raises:
        OverflowError: it is before the year 1 or after 9999.
    """
    # Not by a float, which loses the last millisecond far from 1970.
    return _EPOCH + timedelta(milliseconds=milliseconds)
