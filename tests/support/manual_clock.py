"""A clock that stands still until a test moves it."""

from __future__ import annotations


class ManualClock:
    """Time by hand; `sleep` moves it, and `slept` remembers by how much."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = float(now_ms)
        self._monotonic = 0.0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return int(self._now_ms)

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now_ms += seconds * 1000
        self._monotonic += seconds
