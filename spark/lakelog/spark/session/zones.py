"""Whether Spark's rules for a time zone are Python's: two releases of the tz database may differ.

Java brings a database of its own, in which zones are merged before 1970. Conditions are read on the
driver, to find the files that may have rows, and evaluated by Spark: a time in a year for which
the two differ is Spark's to read.
"""

from __future__ import annotations

import functools
import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from lakelog.core.arrow.time_zones import EngineZone, zone_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_zone"]

_FIRST, _LAST = 1800, 2100
"""Before these years no zone changed, and after them each repeats its rules."""
_known: WeakKeyDictionary[SparkSession, dict[str, EngineZone]] = WeakKeyDictionary()


def spark_zone(spark: SparkSession, name: str) -> str:
    """A session's zone, which knows in which years Python's rules for it are Spark's.

    Spark is asked once a session and zone, when a time depends on it.
    """
    try:
        if isinstance(zone_of(name), timezone):
            return name  # an offset has no rules
    except ValueError:
        return name
    mine = _known.setdefault(spark, {})
    if name not in mine:
        mine[name] = _zone(spark, name)
    return mine[name]


def _zone(spark: SparkSession, name: str) -> EngineZone:
    digests = functools.cache(lambda: _digests(spark, name))

    @functools.cache
    def agrees(year: int) -> bool:
        near = min(max(year, _FIRST), _LAST)
        return digests().get(near) == _digest(name, near)

    return EngineZone(name, agrees)


def _digests(spark: SparkSession, name: str) -> dict[int, str]:
    """Of each year a digest of the zone's offsets, day by day, as Spark has them."""
    seconds = "unix_date(date_add(make_date(y, 1, 1), d)) * 86400L"
    shown = f"unix_seconds(from_utc_timestamp(timestamp_seconds({seconds}), '{name}'))"
    year = f"transform(sequence(0, 364), d -> CAST({shown} - {seconds} AS STRING))"
    years = f"transform(sequence({_FIRST}, {_LAST}), y -> md5(array_join({year}, ',')))"
    try:
        found = spark.sql(f"SELECT {years} AS digests").collect()[0]["digests"]
    except PySparkException:
        return {}  # a zone that it reads otherwise, in all years
    return dict(enumerate(found, _FIRST))


def _digest(name: str, year: int) -> str:
    """The same of Python's."""
    zone = zone_of(name)
    first = datetime(year, 1, 1, tzinfo=UTC)
    offsets = ((first + timedelta(days=day)).astimezone(zone).utcoffset() for day in range(365))
    seconds = (str(round(each.total_seconds())) for each in offsets if each is not None)
    return hashlib.md5(",".join(seconds).encode(), usedforsecurity=False).hexdigest()
