"""Dates and times of Spark's SQL on Arrow arrays: parts of a date, its text, its truncation."""

from __future__ import annotations

import calendar
import math
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import scalar_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError
from lakelog.core.expressions.values.by_rows import by_rows, plain
from lakelog.core.expressions.values.casts import Value, cast_value, in_reach, instants, localized
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DATE, _TIMESTAMP = PrimitiveType("date"), PrimitiveType("timestamp")
_NTZ, _DOUBLE = PrimitiveType("timestamp_ntz"), PrimitiveType("double")
_INTEGER, _LONG = PrimitiveType("integer"), PrimitiveType("long")

PARTS: dict[str, Callable[[Any], Any]] = {
    "year": lambda data: pc.year(data),
    "quarter": lambda data: pc.quarter(data),
    "month": lambda data: pc.month(data),
    "day": lambda data: pc.day(data),
    "dayofmonth": lambda data: pc.day(data),
    "dayofyear": lambda data: pc.day_of_year(data),
    "weekofyear": lambda data: pc.iso_week(data),
    "dayofweek": lambda data: pc.day_of_week(data, count_from_zero=False, week_start=7),
    "weekday": lambda data: pc.day_of_week(data, count_from_zero=True, week_start=1),
    "hour": lambda data: pc.hour(data),
    "minute": lambda data: pc.minute(data),
    "second": lambda data: pc.second(data),
}
"""The functions that extract a number from a date or a timestamp."""

_SOURCES = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("doy",), "dayofyear"),
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
}
"""What `EXTRACT` calls the functions above. Its seconds are decimals: they are left to Spark."""

_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("quarter",), "quarter"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("week",), "week"),
}
_DAY_UNITS = dict.fromkeys(("day", "dd"), "day")
_CLOCK_UNITS = {each: each for each in ("hour", "minute", "second", "millisecond", "microsecond")}


def part_of(name: str, value: Value, zone: str) -> Value:
    """`year(…)` and the like; the session's zone says which day a timestamp is in."""
    found = PARTS[name](wall_clock(value, zone))
    return Value(pc.cast(found, pa.int32()), _INTEGER)


def extracted(field: str, value: Value, zone: str) -> Value:
    """`EXTRACT(field FROM value)`, which is `date_part('field', value)`, too."""
    name = _SOURCES.get(field.lower())
    if name is None:
        raise NotInCoreError(f"EXTRACT({field} FROM …)")
    return part_of(name, value, zone)


def trunc(value: Value, unit: str, zone: str) -> Value:
    """`trunc(date, unit)`: the first day of the year, quarter, month or week; null of others."""
    day = in_reach(cast_value(value, _DATE, zone).data)
    known = _UNITS.get(unit.lower())
    if known is None:
        return Value(scalar_of(None, pa.date32()), _DATE)
    return Value(pc.cast(pc.floor_temporal(day, unit=known), pa.date32()), _DATE)


def date_trunc(unit: str, value: Value, zone: str) -> Value:
    """`date_trunc(unit, timestamp)`: by the wall clock of the session's zone."""
    moment = cast_value(value, _TIMESTAMP, zone).data
    clock = localized(moment, zone)
    unit = unit.lower()
    if unit in _CLOCK_UNITS:
        # The offset at that very moment, so that an hour that occurs twice is not ambiguous.
        passed = pc.subtract(clock, pc.floor_temporal(clock, unit=_CLOCK_UNITS[unit]))
        return Value(pc.subtract(moment, passed), _TIMESTAMP)
    known = (_UNITS | _DAY_UNITS).get(unit)
    if known is None:
        return Value(scalar_of(None, moment.type), _TIMESTAMP)
    midnight = pc.floor_temporal(clock, unit=known)
    start = instants(midnight, zone)
    return Value(pc.cast(start, moment.type), _TIMESTAMP)


def day_shift(value: Value, days: Value, zone: str, sign: int = 1) -> Value:
    """`date_add(value, days)`, or `date_sub` with the sign -1."""
    start = pc.cast(cast_value(value, _DATE, zone).data, pa.int32())
    count = cast_value(days, _INTEGER, zone).data
    moved = (pc.add_checked if sign > 0 else pc.subtract_checked)(start, count)
    return Value(pc.cast(moved, pa.date32()), _DATE)


def wall_clock(value: Value, zone: str) -> Any:
    """Timestamps without zone, whatever kind of date or time was given."""
    if value.data_type == _TIMESTAMP:
        return localized(value.data, zone)
    if value.data_type == _DATE:
        return pc.cast(in_reach(value.data), pa.timestamp("us"))
    if value.data_type == PrimitiveType("timestamp_ntz"):
        return in_reach(value.data)
    raise NotInCoreError(f"a date or time from {value.data_type}")


_DAY_MICROS = 86_400_000_000
_MICROS = {"SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000}
_DAYS = {"DAY": 1, "WEEK": 7}
_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = {"MONTH": 1, "YEAR": 12}


def later(value: Value, count: int, unit: str, zone: str) -> Value:
    """A date or a time plus an interval of one unit.

    Days and longer units move the clock of the session's zone, shorter ones the instant.

    Args:
        value: the start.
        count: how many units; negative for the past.
        unit: `HOUR`, in upper case and the singular.
        zone: the session's.

    Raises:
        NotInCoreError: the unit, or one that the type has no sum with here.
    """
    if value.data_type == _DATE:
        if unit == "DAY":
            return day_shift(value, Value(scalar_of(count, pa.int32()), _INTEGER), zone)
        if unit in _MONTHS:
            months = Value(scalar_of(count * _MONTHS[unit], pa.int32()), _INTEGER)
            return _months_later([value, months], zone)
    elif value.data_type == _TIMESTAMP and unit in _MICROS:
        # Spark, too, moves the clock by the whole days, and the instant by the rest.
        micros = abs(count) * _MICROS[unit]
        days, rest = (each if count > 0 else -each for each in divmod(micros, _DAY_MICROS))
        start = later(value, days, "DAY", zone) if days else value
        return Value(_micros_later(start.data, rest), _TIMESTAMP)
    elif value.data_type == _TIMESTAMP and unit in (_DAYS | _MONTHS):
        clock = localized(value.data, zone)
        if unit in _DAYS:
            moved = _micros_later(clock, count * _DAYS[unit] * _DAY_MICROS)
        else:
            moved = _clock_months_later(clock, count * _MONTHS[unit])
        # Of an hour that occurs twice the one with the offset that the start had.
        passed = pc.cast(pc.subtract(moved, clock), pa.int64())
        same = pc.cast(
            pc.add_checked(pc.cast(value.data, pa.int64()), passed), pa.timestamp("us", "UTC")
        )
        fits = pc.equal(localized(same, zone), moved)
        return Value(pc.if_else(fits, same, instants(moved, zone)), _TIMESTAMP)
    raise NotInCoreError(f"{value.data_type} and an interval in {unit}s")


def _micros_later(times: Any, micros: int) -> Any:
    count = pc.add_checked(pc.cast(in_reach(times), pa.int64()), scalar_of(micros, pa.int64()))
    return pc.cast(count, times.type)


def _clock_months_later(clock: Any, months: int) -> Any:
    midnight = pc.floor_temporal(in_reach(clock), unit="day")
    day = Value(pc.cast(midnight, pa.date32()), _DATE)
    count = Value(scalar_of(months, pa.int32()), _INTEGER)
    moved = pc.cast(_months_later([day, count], "UTC").data, pa.timestamp("us"))
    of_day = pc.cast(pc.subtract(clock, midnight), pa.int64())
    return pc.cast(pc.add(pc.cast(moved, pa.int64()), of_day), pa.timestamp("us"))


def _day_parts(value: Value, zone: str) -> list[Value]:
    day = in_reach(cast_value(value, _DATE, zone).data)
    found = (pc.cast(PARTS[name](day), pa.int32()) for name in ("year", "month", "day"))
    return [Value(each, _INTEGER) for each in found]


def _day_number(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise NotInCoreError("a day beyond the years 1 to 9999") from None


def _days(function: Callable[..., int], *values: Value) -> Value:
    found = by_rows(function, _INTEGER, *values)
    return Value(pc.cast(found.data, pa.date32()), _DATE)


def _months_later(values: Sequence[Value], zone: str) -> Value:
    """`add_months`: the same day, or the last one of a month that lacks it."""

    def moved(year: int, month: int, day: int, months: int) -> int:
        there, month = divmod(year * 12 + month - 1 + months, 12)
        if not 1 <= there <= 9999:
            raise NotInCoreError("a day beyond the years 1 to 9999")
        return _day_number(there, month + 1, min(day, calendar.monthrange(there, month + 1)[1]))

    return _days(moved, *_day_parts(values[0], zone), cast_value(values[1], _INTEGER, zone))


def _last_day(values: Sequence[Value], zone: str) -> Value:
    (value,) = values

    def last(year: int, month: int, _: int) -> int:
        _day_number(year, month, 1)
        return _day_number(year, month, calendar.monthrange(year, month)[1])

    return _days(last, *_day_parts(value, zone))


def _next_day(values: Sequence[Value], zone: str) -> Value:
    value, name = values[0], plain(values[1], str).strip().upper()
    wanted = next((n for n, names in enumerate(_WEEK) if name in names), None)
    if wanted is None:
        raise NotInCoreError(f"the day of the week {name!r}")
    days = Value(pc.cast(cast_value(value, _DATE, zone).data, pa.int32()), _INTEGER)
    # The first of January 1970 was a Thursday.
    return _days(lambda day: day + 1 + (wanted - 4 - day) % 7, days)


_WEEK = tuple(
    (name[:2], name[:3], name)
    for name in ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
)


def _made_day(values: Sequence[Value], zone: str) -> Value:
    def made(year: int, month: int, day: int) -> int:
        if not (1 <= month <= 12 and 1 <= year <= 9999):
            raise pa.ArrowInvalid(f"there is no day {year}-{month}-{day}")
        if not 1 <= day <= calendar.monthrange(year, month)[1]:
            raise pa.ArrowInvalid(f"there is no day {year}-{month}-{day}")
        return _day_number(year, month, day)

    year, month, day = (cast_value(each, _INTEGER, zone) for each in values)
    return _days(made, year, month, day)


def _months_between(values: Sequence[Value], zone: str) -> Value:
    if len(values) > 2:
        raise NotInCoreError("months_between without rounding")
    parts: list[Value] = []
    for each in values:
        moment = cast_value(each, _TIMESTAMP, zone).data
        clock = localized(moment, zone)
        parts += _day_parts(Value(clock, _NTZ), zone)
        passed = pc.subtract(moment, instants(pc.floor_temporal(clock, unit="day"), zone))
        seconds = pc.divide(pc.cast(passed, pa.int64()), scalar_of(1_000_000, pa.int64()))
        parts.append(Value(seconds, _LONG))

    def between(y1: int, m1: int, d1: int, s1: int, y2: int, m2: int, d2: int, s2: int) -> float:
        months = (y1 - y2) * 12 + m1 - m2
        ends = (_month_length(y1, m1) == d1, _month_length(y2, m2) == d2)
        if d1 == d2 or all(ends):
            return float(months)
        found = months + ((d1 - d2) * 86_400 + s1 - s2) / (31 * 86_400.0)
        # As Java's Math.round.
        return math.floor(found * 1e8 + 0.5) / 1e8

    return by_rows(between, _DOUBLE, *parts)


def _month_length(year: int, month: int) -> int:
    return calendar.monthrange(2000 + year % 400, month)[1]


def _counted(value: Value, zone: str, unit: int) -> Value:
    """Whole units since 1970, rounded down."""
    micros = pc.cast(cast_value(value, _TIMESTAMP, zone).data, pa.int64())
    return by_rows(lambda count: count // unit, _LONG, Value(micros, _LONG))


def _moment(value: Value, zone: str, unit: int) -> Value:
    if value.data_type not in tuple(map(PrimitiveType, INTEGERS)):
        raise NotInCoreError(f"a time from {value.data_type}")
    count = cast_value(value, _LONG, zone).data
    micros = pc.multiply_checked(count, scalar_of(unit, pa.int64()))
    return Value(pc.cast(micros, pa.timestamp("us", "UTC")), _TIMESTAMP)


def _units(function: Callable[[Value, str, int], Value], unit: int) -> Any:
    def apply(values: Sequence[Value], zone: str) -> Value:
        (value,) = values
        return function(value, zone, unit)

    return apply


def _day_count(values: Sequence[Value], zone: str) -> Value:
    (value,) = values
    return Value(pc.cast(cast_value(value, _DATE, zone).data, pa.int32()), _INTEGER)


def _day_at(values: Sequence[Value], zone: str) -> Value:
    (value,) = values
    return Value(pc.cast(cast_value(value, _INTEGER, zone).data, pa.date32()), _DATE)


TIMES: dict[str, Any] = {
    "add_months": _months_later,
    "date_from_unix_date": _day_at,
    "last_day": _last_day,
    "make_date": _made_day,
    "months_between": _months_between,
    "next_day": _next_day,
    "timestamp_micros": _units(_moment, 1),
    "timestamp_millis": _units(_moment, 1000),
    "timestamp_seconds": _units(_moment, 1_000_000),
    "unix_date": _day_count,
    "unix_micros": _units(_counted, 1),
    "unix_millis": _units(_counted, 1000),
    "unix_seconds": _units(_counted, 1_000_000),
}
"""Name in lower case -> the function that computes the result, from arguments and time zone."""
