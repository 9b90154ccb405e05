"""DataFrames that are all rows of a Delta table, and the temporary views that were made of them.

A statement that changes rows of such a view means the table. Spark's catalog says of a view no more
than its columns, so what it was made of is kept here while `enable` is in force, and held against
the view as it is now before it is used.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lakelog.spark.names.identifiers import quoted_name
from lakelog.spark.names.plain import plain_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

GLOBAL = "global_temp"
"""The database of the views that all sessions see."""


@dataclass(frozen=True, slots=True)
class FrameSource:
    """What a DataFrame was read from."""

    path: str
    older: bool = False
    """Whether it was asked for an older version than the newest."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of the storage that the read was given."""
    alias: str | None = None


_sources: weakref.WeakKeyDictionary[DataFrame, FrameSource] = weakref.WeakKeyDictionary()
_views: weakref.WeakKeyDictionary[
    SparkSession, dict[tuple[str, ...], tuple[DataFrame, FrameSource]]
] = weakref.WeakKeyDictionary()
"""The name of each view in lower case, and what it was made of."""


def note_frame(frame: DataFrame, source: FrameSource) -> None:
    """Note that a DataFrame is all rows and all columns of a table."""
    _sources[frame] = source


def note_alias(frame: DataFrame, named: DataFrame, alias: str) -> None:
    """Note that a DataFrame is another one under a name."""
    source = _sources.get(frame)
    if source is not None:
        _sources[named] = FrameSource(source.path, source.older, source.options, alias)


def note_view(spark: SparkSession, frame: DataFrame, name: Any, *, shared: bool = False) -> None:
    """Note of what a temporary view was made.

    Args:
        spark: the session.
        frame: the rows.
        name: that the view has got.
        shared: whether all sessions see it.
    """
    key = _key((GLOBAL, str(name)) if shared else (str(name),))
    of_session = _views.setdefault(spark, {})
    # A global view is replaced for every session: frames of two empty tables look the same.
    for each in list(_views.values()) if shared else [of_session]:
        each.pop(key, None)
    source = _sources.get(frame)
    if source is not None:
        of_session[key] = frame, source


def source_of_view(spark: SparkSession, parts: Sequence[str]) -> FrameSource | None:
    """What a temporary view shows all rows of; `None` where that is not known to be a table.

    Args:
        spark: the session.
        parts: the name of the view in the catalog.
    """
    noted = _views.get(spark, {}).get(_key(parts))
    if noted is None:
        return None
    frame, source = noted
    try:
        # A statement or another client may have put another view of the name in its place.
        same = plain_table(spark, quoted_name(parts)).sameSemantics(frame)
    except PySparkException:
        same = False
    return source if same else None


def _key(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(each.lower().strip("`") for each in parts)
