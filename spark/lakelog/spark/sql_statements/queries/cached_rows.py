"""What CACHE TABLE keeps: the rows of tables and views, at the versions that they were read at.

Spark keeps the rows of a DataFrame. Where a table has a newer version than those are of, the next
use lets them go and keeps the new ones, so that what is cached is never stale.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import StorageLevel
    from pyspark.sql import DataFrame, SparkSession

Key: TypeAlias = "str | tuple[str, ...]"
"""The path of a table, or the whole name of a view in lower case."""
Seen: TypeAlias = "tuple[str, int] | None"
"""A table's id, as a path or a name may be given to another one, and a version; None for none."""


@dataclass(slots=True)
class _Held:
    frame: DataFrame
    read: Mapping[Any, Seen]
    """Table -> what of it the rows are of."""
    level: StorageLevel | None


_lock = threading.Lock()
_held: weakref.WeakKeyDictionary[SparkSession, dict[Key, _Held]] = weakref.WeakKeyDictionary()


def hold(
    spark: SparkSession,
    key: Key,
    frame: DataFrame,
    read: Mapping[Any, Seen],
    level: StorageLevel | None = None,
    *,
    eager: bool = False,
) -> None:
    """Cache the rows of a table or view; nothing happens if they are cached already.

    Args:
        spark: the session.
        key: the table or view.
        frame: its rows.
        read: the versions that they are of.
        level: where Spark is to keep them; where it keeps DataFrames, by default.
        eager: whether to fetch the rows now, and not at their first use.
    """
    if is_cached(spark, key):
        return
    with _lock:
        _held.setdefault(spark, {})[key] = _Held(_persisted(frame, level), dict(read), level)
    if eager:
        frame.count()


def is_cached(spark: SparkSession, key: Key) -> bool:
    """Whether a table or view is cached."""
    return key in _held.get(spark, ())


def has_cached(spark: SparkSession) -> bool:
    """Whether anything is cached."""
    return bool(_held.get(spark))


def current(spark: SparkSession, key: Key, frame: DataFrame, read: Mapping[Any, Seen]) -> DataFrame:
    """The rows to use for a table or view: the cached ones where it is cached.

    Args:
        spark: the session.
        key: the table or view.
        frame: its rows as they are now.
        read: the versions that those are of.
    """
    with _lock:
        held = _held.get(spark, {}).get(key)
        if held is None:
            return frame
        # By versions, not by what this session has done: other processes also commit.
        if held.read != read:
            held.frame.unpersist()
            held.frame, held.read = _persisted(frame, held.level), dict(read)
        return held.frame


def release(spark: SparkSession, key: Key) -> None:
    """Let the rows of a table or view go, if they are cached."""
    with _lock:
        held = _held.get(spark, {}).pop(key, None)
    if held is not None:
        held.frame.unpersist()


def forget_cached(spark: SparkSession) -> None:
    """Note that Spark has let go of all cached rows of a session."""
    with _lock:
        _held.pop(spark, None)


def _persisted(frame: DataFrame, level: StorageLevel | None) -> DataFrame:
    return frame.cache() if level is None else frame.persist(level)
