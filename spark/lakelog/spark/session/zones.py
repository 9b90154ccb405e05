"""Whether Spark's rules for a time zone are Python's: two releases of the tz database may differ.

Java brings a database of its own, in which zones are merged before 1970. Conditions are read on the
driver, to find the files that may have rows, and evaluated by Spark: a time in a year for which
the two differ is Spark's to read, and so is each in a zone that Python does not know. Of partition
values, which the driver needs as they are, Spark is asked one by one.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from lakelog.core.engine.values import EngineZone, zone_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from pyspark.sql import SparkSession

_FIRST, _LAST = 1800, 2100
"""Before these years no zone changed, and after them each repeats its rules."""
_CYCLE = 28
"""Years after which days of the week and leap days repeat."""
_AT_ONCE = 50
"""Years that Spark is asked for in one query."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400
_known: WeakKeyDictionary[SparkSession, dict[str, EngineZone]] = WeakKeyDictionary()


def spark_zone(spark: SparkSession, name: str) -> str:
    """A session's zone, which knows in which years Python's rules for it are Spark's.

    Spark is asked once a session, zone and half century, when a time depends on it.
    """
    found: tzinfo | None
    try:
        found = zone_of(name)
    except ValueError:
        found = None
    if isinstance(found, timezone):
        return name  # an offset has no rules
    mine = _known.setdefault(spark, {})
    if name not in mine:
        agrees = (lambda _: False) if found is None else _comparison(spark, name, found)
        mine[name] = EngineZone(name, agrees, functools.partial(_instant, spark, name))
    return mine[name]


def _instant(spark: SparkSession, name: str, clock: int) -> int:
    """When a zone's clock shows a time, in microseconds since 1970, both of them."""
    shown = f"to_utc_timestamp(timestamp_micros({clock}L), '{name}')"
    return int(spark.sql(f"SELECT unix_micros({shown}) AS micros").collect()[0]["micros"])


def _comparison(spark: SparkSession, name: str, zone: tzinfo) -> Callable[[int], bool]:
    @functools.cache
    def of_spark(first: int) -> list[str]:
        return _spark_rules(spark, name, first, first + _AT_ONCE)

    @functools.cache
    def agrees(year: int) -> bool:
        if year > _LAST:
            return all(map(agrees, range(_LAST - _CYCLE + 1, _LAST + 1)))
        at = max(year - _FIRST, 0)
        found = of_spark(_FIRST + at - at % _AT_ONCE)
        return bool(found) and found[at % _AT_ONCE] == _rules(zone, _FIRST + at)

    return agrees


def _spark_rules(spark: SparkSession, name: str, first: int, end: int) -> list[str]:
    """Of each year the zone's rules as Spark has them, in the form of `_rules`."""

    def offset(seconds: str) -> str:
        shown = f"from_utc_timestamp(timestamp_seconds({seconds}), '{name}')"
        return f"(unix_seconds({shown}) - ({seconds}))"

    start, end_of_day = f"d * {_DAY}L", f"(d + 1) * {_DAY}L"
    days = "sequence(unix_date(make_date(y, 1, 1)), unix_date(make_date(y, 12, 31)))"
    changing = f"filter({days}, d -> {offset(start)} <> {offset(end_of_day)})"
    # The last second of the old offset, by halves.
    steps = f"array({', '.join(f'{1 << bit}L' for bit in range(16, -1, -1))})"
    halved = f"(s, step) -> if({offset('s + step')} = {offset(start)}, s + step, s)"
    lasts = f"transform({changing}, d -> aggregate({steps}, {start}, {halved}))"
    changes = f"transform({lasts}, s -> concat_ws(' ', s, {offset('s')}, {offset('s + 1')}))"
    at_first = offset(f"unix_date(make_date(y, 1, 1)) * {_DAY}L")
    year = f"array_join(concat(array(string({at_first})), {changes}), ',')"
    years = f"transform(sequence({first}, {end - 1}), y -> {year})"
    try:
        return list(spark.sql(f"SELECT {years} AS rules").collect()[0]["rules"])
    except PySparkException:
        return []  # a zone that it reads otherwise, in all years


def _rules(zone: tzinfo, year: int) -> str:
    """The offset with which a year begins, and each change: the second before, both offsets."""

    def offset(seconds: int) -> int:
        found = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone).utcoffset()
        assert found is not None
        return round(found.total_seconds())

    first, end = ((datetime(at, 1, 1, tzinfo=UTC) - _EPOCH).days * _DAY for at in (year, year + 1))
    rules = [str(offset(first))]
    for start in range(first, end, _DAY):
        before = offset(start)
        if before == offset(start + _DAY):
            continue
        at = start
        for bit in range(16, -1, -1):
            if offset(at + (1 << bit)) == before:
                at += 1 << bit
        rules.append(f"{at} {offset(at)} {offset(at + 1)}")
    return ",".join(rules)
