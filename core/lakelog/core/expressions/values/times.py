"""Dates and times of Spark's SQL on Arrow arrays: parts of a date, its text, its truncation."""

from __future__ import annotations

import calendar
import math
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import scalar_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError
from lakelog.core.expressions.context import DEFAULTS
from lakelog.core.expressions.values.by_rows import by_rows, plain
from lakelog.core.expressions.values.casts import (
    cast_value,
    check_zone,
    in_reach,
    instants,
    localized,
)
from lakelog.core.expressions.values.value import computed, known
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

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


def _part_of(name: str, context: EvalContext, value: Value) -> Value:
    """`year(…)` and the like; the session's zone says which day a timestamp is in."""
    return _numbered(name, wall_clock(value, context))


def _numbered(name: str, clock: Value) -> Value:
    part = PARTS[name]
    return computed(_INTEGER, lambda data: pc.cast(part(data), pa.int32()), clock)


def _extracted(context: EvalContext, field: Value, value: Value) -> Value:
    """`EXTRACT(field FROM value)`, which is also `date_part('field', value)`."""
    name = _SOURCES.get(plain(field, str).lower())
    if name is None:
        raise NotInCoreError(f"EXTRACT({plain(field, str)} FROM …)")
    return _part_of(name, context, value)


def _trunc(context: EvalContext, value: Value, unit: Value) -> Value:
    """`trunc(date, unit)`: the first day of the year, quarter, month or week; null of others."""
    whole = _UNITS.get(plain(unit, str).lower())

    def first(data: Any) -> Any:
        day = in_reach(data)
        if whole is None:
            return scalar_of(None, pa.date32())
        return pc.cast(pc.floor_temporal(day, unit=whole), pa.date32())

    day = cast_value(value, _DATE, context)
    return computed(_DATE, first, day, nullable=True if whole is None else None)


def _date_trunc(context: EvalContext, size: Value, value: Value) -> Value:
    """`date_trunc(unit, timestamp)`: by the wall clock of the session's zone."""
    unit = plain(size, str).lower()
    whole = (_UNITS | _DAY_UNITS).get(unit)

    def start(moment: Any) -> Any:
        clock = localized(moment, context.session_tz)
        if unit in _CLOCK_UNITS:
            # The offset at that very moment, so that an hour that occurs twice is not ambiguous.
            passed = pc.subtract(clock, pc.floor_temporal(clock, unit=_CLOCK_UNITS[unit]))
            return pc.subtract(moment, passed)
        if whole is None:
            return scalar_of(None, moment.type)
        return pc.cast(
            instants(pc.floor_temporal(clock, unit=whole), context.session_tz), moment.type
        )

    check_zone(context.session_tz)
    is_known = whole is not None or unit in _CLOCK_UNITS
    moment = cast_value(value, _TIMESTAMP, context)
    return computed(_TIMESTAMP, start, moment, nullable=None if is_known else True)


def day_shift(context: EvalContext, value: Value, days: Value, *, sign: int = 1) -> Value:
    """`date_add(value, days)`, or `date_sub` with the sign -1."""
    move = pc.add_checked if sign > 0 else pc.subtract_checked
    count = cast_value(days, _INTEGER, context)
    return _days(computed(_INTEGER, move, _days_of(context, value), count))


def _days_of(context: EvalContext, value: Value) -> Value:
    """The days from 1970 to a date."""
    day = cast_value(value, _DATE, context)
    return computed(_INTEGER, lambda data: pc.cast(data, pa.int32()), day)


def _days(numbers: Value) -> Value:
    return computed(_DATE, lambda data: pc.cast(data, pa.date32()), numbers)


def wall_clock(value: Value, context: EvalContext) -> Value:
    """Timestamps without context, whatever kind of date or time was given."""
    if value.data_type == _TIMESTAMP:
        check_zone(context.session_tz)
        return computed(_NTZ, lambda data: localized(data, context.session_tz), value)
    if value.data_type == _DATE:
        return computed(_NTZ, lambda data: pc.cast(in_reach(data), pa.timestamp("us")), value)
    if value.data_type == _NTZ:
        return computed(_NTZ, in_reach, value)
    raise NotInCoreError(f"a date or time from {value.data_type}")


_DAY_MICROS = 86_400_000_000
_MICROS = {"SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000}
_DAYS = {"DAY": 1, "WEEK": 7}
_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = {"MONTH": 1, "YEAR": 12}


def later(value: Value, count: int, unit: str, context: EvalContext) -> Value:
    """A date or a time plus an interval of one unit.

    Days and longer units move the clock of the session's context, shorter ones the instant.

    Args:
        value: the start.
        count: how many units; negative for the past.
        unit: `HOUR`, in upper case and the singular.
        context: of the evaluation.

    Raises:
        NotInCoreError: the unit, or one that the type has no sum with here.
    """
    if value.data_type == _DATE:
        if unit == "DAY":
            return day_shift(context, value, _count_of(count))
        if unit in _MONTHS:
            return _months_later(context, value, _count_of(count * _MONTHS[unit]))
    elif value.data_type == _TIMESTAMP and unit in _MICROS:
        # Spark also moves the clock by the whole days, and the instant by the rest.
        micros = abs(count) * _MICROS[unit]
        days, rest = (each if count > 0 else -each for each in divmod(micros, _DAY_MICROS))
        start = later(value, days, "DAY", context) if days else value
        return computed(_TIMESTAMP, lambda moment: _micros_later(moment, rest), start)
    elif value.data_type == _TIMESTAMP and unit in (_DAYS | _MONTHS):
        clock = wall_clock(value, context)
        if unit in _DAYS:
            micros = count * _DAYS[unit] * _DAY_MICROS
            moved = computed(_NTZ, lambda data: _micros_later(data, micros), clock)
        else:
            moved = _clock_months_later(clock, count * _MONTHS[unit])

        def at(start: Any, clock: Any, moved: Any) -> Any:
            # Of an hour that occurs twice the one with the offset that the start had.
            passed = pc.cast(pc.subtract(moved, clock), pa.int64())
            same = pc.add_checked(pc.cast(start, pa.int64()), passed)
            same = pc.cast(same, pa.timestamp("us", "UTC"))
            fits = pc.equal(localized(same, context.session_tz), moved)
            return pc.if_else(fits, same, instants(moved, context.session_tz))

        return computed(_TIMESTAMP, at, value, clock, moved)
    raise NotInCoreError(f"{value.data_type} and an interval in {unit}s")


def _count_of(number: int) -> Value:
    return known(scalar_of(number, pa.int32()), _INTEGER)


def _micros_later(times: Any, micros: int) -> Any:
    count = pc.add_checked(pc.cast(in_reach(times), pa.int64()), scalar_of(micros, pa.int64()))
    return pc.cast(count, times.type)


def _clock_months_later(clock: Value, months: int) -> Value:
    day = cast_value(clock, _DATE, DEFAULTS)
    moved = _months_later(DEFAULTS, day, _count_of(months))

    def at(moved: Any, clock: Any) -> Any:
        of_day = pc.subtract(clock, pc.floor_temporal(in_reach(clock), unit="day"))
        start = pc.cast(pc.cast(moved, pa.timestamp("us")), pa.int64())
        return pc.cast(pc.add(start, pc.cast(of_day, pa.int64())), pa.timestamp("us"))

    return computed(_NTZ, at, moved, clock)


def _day_parts(value: Value, context: EvalContext) -> list[Value]:
    day = computed(_DATE, in_reach, cast_value(value, _DATE, context))
    return [_numbered(name, day) for name in ("year", "month", "day")]


def _day_number(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise NotInCoreError("a day beyond the years 1 to 9999") from None


def _months_later(context: EvalContext, value: Value, added: Value) -> Value:
    """`add_months`: the same day, or the last one of a month that lacks it."""

    def moved(year: int, month: int, day: int, months: int) -> int:
        there, month = divmod(year * 12 + month - 1 + months, 12)
        if not 1 <= there <= 9999:
            raise NotInCoreError("a day beyond the years 1 to 9999")
        return _day_number(there, month + 1, min(day, calendar.monthrange(there, month + 1)[1]))

    count = cast_value(added, _INTEGER, context)
    return _days(by_rows(moved, _INTEGER, *_day_parts(value, context), count))


def _last_day(context: EvalContext, value: Value) -> Value:

    def last(year: int, month: int, _: int) -> int:
        _day_number(year, month, 1)
        return _day_number(year, month, calendar.monthrange(year, month)[1])

    return _days(by_rows(last, _INTEGER, *_day_parts(value, context)))


def _next_day(context: EvalContext, value: Value, day: Value) -> Value:
    name = plain(day, str).strip().upper()
    wanted = next((n for n, names in enumerate(_WEEK) if name in names), None)
    if wanted is None:
        raise NotInCoreError(f"the day of the week {name!r}")
    # The first of January 1970 was a Thursday.
    return _days(
        by_rows(lambda day: day + 1 + (wanted - 4 - day) % 7, _INTEGER, _days_of(context, value))
    )


_WEEK = tuple(
    (name[:2], name[:3], name)
    for name in ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
)


def _made_day(context: EvalContext, *parts: Value) -> Value:
    def made(year: int, month: int, day: int) -> int:
        if not (1 <= month <= 12 and 1 <= year <= 9999):
            raise pa.ArrowInvalid(f"there is no day {year}-{month}-{day}")
        if not 1 <= day <= calendar.monthrange(year, month)[1]:
            raise pa.ArrowInvalid(f"there is no day {year}-{month}-{day}")
        return _day_number(year, month, day)

    year, month, day = (cast_value(each, _INTEGER, context) for each in parts)
    return _days(by_rows(made, _INTEGER, year, month, day))


def _months_between(context: EvalContext, first: Value, second: Value) -> Value:
    def seconds(moment: Any, clock: Any) -> Any:
        passed = pc.subtract(
            moment, instants(pc.floor_temporal(clock, unit="day"), context.session_tz)
        )
        return pc.divide(pc.cast(passed, pa.int64()), scalar_of(1_000_000, pa.int64()))

    parts: list[Value] = []
    for each in (first, second):
        moment = cast_value(each, _TIMESTAMP, context)
        clock = wall_clock(moment, context)
        parts += [*_day_parts(clock, context), computed(_LONG, seconds, moment, clock)]

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


def _counted(unit: int, context: EvalContext, value: Value) -> Value:
    """Whole units since 1970, rounded down."""
    moment = cast_value(value, _TIMESTAMP, context)
    micros = computed(_LONG, lambda data: pc.cast(data, pa.int64()), moment)
    return by_rows(lambda count: count // unit, _LONG, micros)


def _moment(unit: int, context: EvalContext, value: Value) -> Value:
    if value.data_type not in tuple(map(PrimitiveType, INTEGERS)):
        raise NotInCoreError(f"a time from {value.data_type}")

    def at(count: Any) -> Any:
        micros = pc.multiply_checked(count, scalar_of(unit, pa.int64()))
        return pc.cast(micros, pa.timestamp("us", "UTC"))

    return computed(_TIMESTAMP, at, cast_value(value, _LONG, context))


def _day_at(context: EvalContext, value: Value) -> Value:
    return _days(cast_value(value, _INTEGER, context))


def _date_diff(context: EvalContext, end: Value, start: Value) -> Value:
    days = (_days_of(context, each) for each in (end, start))
    return computed(_INTEGER, pc.subtract_checked, *days)


TIMES: dict[str, Rule] = {
    **{name: partial(_part_of, name) for name in PARTS},
    "add_months": _months_later,
    **dict.fromkeys(("date_add", "dateadd"), day_shift),
    **dict.fromkeys(("date_diff", "datediff"), _date_diff),
    "date_from_unix_date": _day_at,
    **dict.fromkeys(("date_part", "datepart"), _extracted),
    "date_sub": partial(day_shift, sign=-1),
    "date_trunc": _date_trunc,
    "last_day": _last_day,
    "make_date": _made_day,
    "months_between": _months_between,
    "next_day": _next_day,
    "timestamp_micros": partial(_moment, 1),
    "timestamp_millis": partial(_moment, 1000),
    "timestamp_seconds": partial(_moment, 1_000_000),
    "trunc": _trunc,
    "unix_date": _days_of,
    "unix_micros": partial(_counted, 1),
    "unix_millis": partial(_counted, 1000),
    "unix_seconds": partial(_counted, 1_000_000),
}
"""By name in lower case."""
