"""Chance and time, the same in every run of a test: what it writes then is the same to the byte.

For what the core does in this process; Spark's executors draw for themselves.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import sys
import threading
import time
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from lakelog.core.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

__all__ = ["SameAgain"]

_BEGIN: Final = 1_790_000_000_000
"""The time of day, in milliseconds since 1970, at which every test begins."""
_STEP: Final = 10
"""By how much it is later each time that a place asks."""
_CODEC: Final = "snappy"
"""What data files were compressed by when memories were made."""


class SameAgain:
    """Draws and tells the time by a seed; as long as it is `installed`, for all of this process.

    Each place of the code draws and counts for itself: which of two threads comes first changes
    nothing then, nor does one more that looks at the clock. A place is a function by its name,
    whatever module has it, so that modules may move.
    """

    def __init__(self, seed: str) -> None:
        self._lock = threading.Lock()
        self._seed = seed
        self._draws: dict[str, random.Random] = {}
        self._asked: Counter[str] = Counter()
        self._slept = 0
        self._monotonic = 0.0

    def uuid4(self) -> uuid.UUID:
        with self._lock:
            return uuid.UUID(int=self._for(_caller()).getrandbits(128), version=4)

    def choice(self, values: Sequence[Any]) -> Any:
        with self._lock:
            return self._for(_caller()).choice(values)

    def now_ms(self) -> int:
        with self._lock:
            place = _caller()
            self._asked[place] += 1
            return _BEGIN + self._slept + _STEP * self._asked[place]

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._monotonic += seconds
            self._slept += round(seconds * 1000)

    def _for(self, place: str) -> random.Random:
        seed = f"{self._seed} {place}"
        return self._draws.setdefault(seed, random.Random(seed))

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(uuid, "uuid4", self.uuid4)
            patch.setattr(secrets, "choice", self.choice)
            for name in ("now_ms", "monotonic", "sleep"):
                patch.setattr(SystemClock, name, _unbound(getattr(self, name)))
            patch.setattr(
                "lakelog.core.checkpoints.write_checkpoint._modified", lambda *_: self.now_ms()
            )
            patch.setattr("lakelog.core.data.write_conf.DEFAULT_CODEC", _CODEC)
            patch.setattr("lakelog.core.portable.writer.time", cast("ModuleType", _Time(self)))
            yield


class _Time:
    """The module `time`, but for one function."""

    def __init__(self, same: SameAgain) -> None:
        self._same = same

    def time_ns(self) -> int:
        return self._same.now_ms() * 1_000_000

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def _caller() -> str:
    """The function that asks, which is the first one outside of this module."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_qualname


def _unbound(function: Any) -> Any:
    return lambda _clock, *args: function(*args)
