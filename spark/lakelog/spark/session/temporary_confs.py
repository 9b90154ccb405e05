"""Session confs that are set for the duration of one call."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _TemporaryKey:
    """A key that is set for a while."""

    before: str | None
    holders: int = 0


_lock = threading.Lock()
_held: dict[tuple[int, str, str], _TemporaryKey] = {}


@contextmanager
def temporary_confs(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set runtime confs of a session and put back what was there, whatever happens between.

    Threads that share a session may overlap: the first one in saves, the last one out restores.
    A plain save and restore would let the second thread save the first one's value as the
    user's own and leave it behind for good.

    Args:
        spark: a session, classic or Connect.
        values: the same value for one key in every overlapping call.
    """
    entered: list[tuple[int, str, str]] = []
    try:
        for key, value in values.items():
            _enter(spark, (id(spark), key, value))
            entered.append((id(spark), key, value))
        yield
    finally:
        for held in reversed(entered):
            _leave(spark, held)


def _enter(spark: SparkSession, held: tuple[int, str, str]) -> None:
    _, key, value = held
    with _lock:
        entry = _held.get(held)
        if entry is None:
            entry = _TemporaryKey(spark.conf.get(key, None))
            spark.conf.set(key, value)
            _held[held] = entry
        entry.holders += 1


def _leave(spark: SparkSession, held: tuple[int, str, str]) -> None:
    with _lock:
        entry = _held[held]
        entry.holders -= 1
        if entry.holders:
            return
        del _held[held]
        if entry.before is None:
            spark.conf.unset(held[1])
        else:
            spark.conf.set(held[1], entry.before)
