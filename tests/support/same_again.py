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

_BEGIN: Final = 1_790_000_000_000
"""The time of day, in milliseconds since 1970, at which every test begins."""
_STEP: Final = 10
"""By how much it is later after each transaction that began."""
_BEGINS: Final = "lakelog.core.transaction.committer:Committer.__init__"
PLACES: Final = {
    "lakelog.core.checkpoints.write_checkpoint:_write_sidecars": "sidecar",
    "lakelog.core.checkpoints.write_checkpoint:_write_v2": "checkpoint",
    "lakelog.core.create.clone.cloned_files:FileCopies._planned": "copied file",
    "lakelog.core.create.clone.cloned_files:FileCopies._vector": "copied vector",
    "lakelog.core.create.clone.clone_table:_terms": "table",
    "lakelog.core.create.convert_to_delta:_convert": "table",
    "lakelog.core.create.table:define_table": "table",
    "lakelog.core.deletion_vectors.vector_writer:VectorWriter._start": "vector",
    "lakelog.core.dml.table_write:TableWrite.settle_schema": "table",
    "lakelog.core.maintain.optimize.zcubes:Clustering.tagged": "cube",
    "lakelog.core.maintain.optimize.zcubes:ZOrder.tagged": "cube",
    "lakelog.core.metadata.column_mapping_changes:_Assigner._field": "column",
    "lakelog.core.metadata.row_tracking_rules:with_row_tracking_names": "row id",
    "lakelog.core.portable.hive_writer:PartitionedWriter.__init__": "file",
    "lakelog.core.transaction.transaction_changes:Changes._blank": "table",
    _BEGINS: "transaction",
    "lakelog.spark.writing.by_spark:write_natively": "folder",
}
"""What is named by chance, by the function that draws the name. What lies in a table has its bytes
from here, and memories go by these: who moves or renames such a function changes its line here."""
_CODEC: Final = "snappy"
"""What data files were compressed by when memories were made."""


class SameAgain:
    """Draws and tells the time by a seed; as long as it is `installed`, for all of this process.

    Each kind of name is drawn for itself: which of two threads comes first changes nothing then,
    nor does one more function that draws. Time stands still within a transaction.
    """

    def __init__(self, seed: str) -> None:
        self._lock = threading.Lock()
        self._seed = seed
        self._draws: dict[str, random.Random] = {}
        self._begun = 0
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
            self._begun += _caller() == _BEGINS
            return _BEGIN + self._slept + _STEP * self._begun

    def monotonic(self) -> float:
        with self._lock:
            return self._monotonic

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._monotonic += seconds
            self._slept += round(seconds * 1000)

    def _for(self, place: str) -> random.Random:
        seed = f"{self._seed} {PLACES.get(place, place)}"
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
            patch.setattr("lakelog.core.portable.hive_writer.time", cast("ModuleType", _Time(self)))
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
    """The function that asks, the first one outside of this module, as `PLACES` has it."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"


def _unbound(function: Any) -> Any:
    return lambda _clock, *args: function(*args)
