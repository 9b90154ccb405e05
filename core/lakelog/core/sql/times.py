"""Dates and times of Spark's SQL on Arrow arrays: parts of a date, its text, its truncation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import scalar_of
from lakelog.core.compute import pc
from lakelog.core.schema import PrimitiveType
from lakelog.core.sql.casts import (
    NotInCoreError,
    Value,
    cast_value,
    in_reach,
    instants,
    localized,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PARTS", "date_format", "date_trunc", "day_shift", "extracted", "part_of", "trunc"]

_DATE, _TIMESTAMP = PrimitiveType("date"), PrimitiveType("timestamp")
_INTEGER, _STRING = PrimitiveType("integer"), PrimitiveType("string")

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

_FIELDS = {
    "yyyy": ("year", 4),
    "MM": ("month", 2),
    "M": ("month", 0),
    "dd": ("day", 2),
    "d": ("day", 0),
    "HH": ("hour", 2),
    "H": ("hour", 0),
    "mm": ("minute", 2),
    "m": ("minute", 0),
    "ss": ("second", 2),
    "s": ("second", 0),
}
_PATTERN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#]+)")
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
    found = PARTS[name](_wall_clock(value, zone))
    return Value(pc.cast(found, pa.int32()), _INTEGER)


def extracted(field: str, value: Value, zone: str) -> Value:
    """`EXTRACT(field FROM value)`, which is `date_part('field', value)`, too."""
    name = _SOURCES.get(field.lower())
    if name is None:
        raise NotInCoreError(f"EXTRACT({field} FROM …)")
    return part_of(name, value, zone)


def date_format(value: Value, pattern: str, zone: str) -> Value:
    """`date_format(value, pattern)`, for patterns of digits and fixed text."""
    clock = _wall_clock(value, zone)
    pieces: list[Any] = []
    position = 0
    while position < len(pattern):
        match = _PATTERN.match(pattern, position)
        if match is None:
            raise NotInCoreError(f"the date pattern {pattern!r}")
        position = match.end()
        if match[2]:
            pieces.append(_field_text(match[0], clock, pattern))
        else:
            quoted = match[1]
            text = match[3] if quoted is None else quoted.replace("''", "'") or "'"
            pieces.append(scalar_of(text, pa.string()))
    if not pieces:
        raise NotInCoreError("an empty date pattern")
    # A pattern without any field is still null where the date is null.
    valid = pc.if_else(pc.is_valid(clock), scalar_of("", pa.string()), scalar_of(None, pa.string()))
    joined = pc.binary_join_element_wise(valid, *pieces, "", null_handling="emit_null")
    return Value(joined, _STRING)


def _field_text(letters: str, clock: Any, pattern: str) -> Any:
    if letters not in _FIELDS:
        raise NotInCoreError(f"{letters!r} in the date pattern {pattern!r}")
    name, width = _FIELDS[letters]
    numbers = PARTS[name](clock)
    if name == "year":
        inside = pc.and_(pc.greater_equal(numbers, 1), pc.less_equal(numbers, 9999))
        if pc.all(inside, min_count=0).as_py() is False:
            raise NotInCoreError("the string of a date beyond the years 1 to 9999")
    text = pc.cast(numbers, pa.string())
    return pc.utf8_lpad(text, width=width, padding="0") if width else text


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


def _wall_clock(value: Value, zone: str) -> Any:
    """Timestamps without zone, whatever kind of date or time was given."""
    if value.data_type == _TIMESTAMP:
        return localized(value.data, zone)
    if value.data_type == _DATE:
        return pc.cast(in_reach(value.data), pa.timestamp("us"))
    if value.data_type == PrimitiveType("timestamp_ntz"):
        return in_reach(value.data)
    raise NotInCoreError(f"a date or time from {value.data_type}")
