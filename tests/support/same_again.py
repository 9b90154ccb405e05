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
_CODEC: Final = "snappy"
"""What data files were compressed by when memories were made."""
_KNOWN_AS: Final = {
    "core/deletion_vectors/writer.py": "vector_writer.py",
    "core/checkpoints/checkpoint.py": "checkpoints.py",
    "core/metadata/column_mapping.py": "mapping_updates.py",
    "core/metadata/row_tracking.py": "row_tracking_names.py",
    "core/portable/writer.py": "executor_writer.py",
    "core/transaction/changes.py TransactionChanges.__init__": (
        "transaction.py OptimisticTransaction.__init__"
    ),
    "core/transaction/changes.py TransactionChanges._blank": (
        "tracked_changes.py TrackedChanges._blank"
    ),
    "spark/writing/by_spark.py": "_native_write.py",
    "spark/writing/table_schema.py": "_table_schema.py",
}
"""Where a place that draws has moved: what it was called when memories were made. They hold the
bytes that it drew, so that it has to go on drawing the same."""


class SameAgain:
    """Draws and tells the time by a seed; as long as it is `installed`, for all of this process."""

    def __init__(self, seed: str) -> None:
        self._lock = threading.Lock()
        self._seed = seed
        self._draws: dict[str, random.Random] = {}
        self._now = _BEGIN
        self._monotonic = 0.0

    def uuid4(self) -> uuid.UUID:
        with self._lock:
            return uuid.UUID(int=self._for_caller().getrandbits(128), version=4)

    def choice(self, values: Sequence[Any]) -> Any:
        with self._lock:
            return self._for_caller().choice(values)

    def now_ms(self) -> int:
        with self._lock:
            self._now += _STEP
            return self._now

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._monotonic += seconds
            self._now += round(seconds * 1000)

    def _for_caller(self) -> random.Random:
        # Each place draws for itself: which of two threads comes first changes nothing then.
        code = sys._getframe(2).f_code
        module = code.co_filename.rpartition("/lakelog/")[2]
        known = _KNOWN_AS.get(f"{module} {code.co_qualname}")
        file = _KNOWN_AS.get(module, code.co_filename.rpartition("/")[2])
        place = f"{self._seed} {known or f'{file} {code.co_qualname}'}"
        return self._draws.setdefault(place, random.Random(place))

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(uuid, "uuid4", self.uuid4)
            patch.setattr(secrets, "choice", self.choice)
            for name in ("now_ms", "monotonic", "sleep"):
                patch.setattr(SystemClock, name, _unbound(getattr(self, name)))
            patch.setattr("lakelog.core.checkpoints.checkpoint._modified", lambda *_: self.now_ms())
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


def _unbound(function: Any) -> Any:
    return lambda _clock, *args: function(*args)
