"""The text of a partition value, read as Spark reads it: `CAST` without ANSI mode.

Delta keeps partition values as text and casts them when it reads, so that `2024-1-5` is a date,
`'7 '` and `1.5` are integers, and `+10000-01-01` is a date beyond the last one that Python has.
What Spark would make null is an error here: such a file may hold any value.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from lakelog.core.arrow.time_zones import instant_of, named_zone, zone_of
from lakelog.core.portable.interval_text import interval_value
from lakelog.core.schema import DecimalType, PrimitiveType
from lakelog.core.schema.types import YEAR_MONTH, is_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.schema import DataType

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_WHITE = "".join(map(chr, [*range(33), 127]))
"""The characters that Spark strips from both ends."""

_INTEGER = re.compile(r"([+-]?)([0-9]*)(?:(?<=[0-9])|(?=\.))(?:\.[0-9]*)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DOUBLE = re.compile(rf"({_DECIMAL.pattern})[fFdD]?")
_HEX = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_SPECIAL = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE)
_DAY = r"([+-]?[0-9]{4,%d})(?:-([0-9]{1,2})(?:-([0-9]{1,2})%s)?)?"
_DATE = re.compile(_DAY % (7, "(?:[ T].*)?"), re.DOTALL)
_CLOCK = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.:].*)?)?)?"
_TIMESTAMP = re.compile(_DAY % (6, f"(?:[ T]{_CLOCK})?"), re.DOTALL)
_TIME = re.compile(f"(?:T|(?=[0-9]+:)){_CLOCK}", re.DOTALL)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])"
    r"(?:([0-9]{1,2})(?::([0-9]{2}|[0-9]$)(?::([0-9]{2}))?)?|([0-9]{2})([0-9]{2})([0-9]{2})?)"
)
_MOST_OFFSET = timedelta(hours=18)
_EPOCH = date(1970, 1, 1).toordinal()
_CYCLE_DAYS = 146_097
"""Days in 400 years, after which the calendar repeats."""
_DAY_MICROS = 86_400_000_000


def cast_text(text: str | None, data_type: DataType, session_tz: str = "UTC") -> Any:
    """Read a partition value.

    Args:
        text: from `partitionValues`; `None` and `""` are null.
        data_type: the column's type.
        session_tz: the zone of a timestamp without one.

    Returns:
        A Python value that Arrow takes for the type: a date is its number of days since 1970, a
        timestamp its number of microseconds, because Python has neither beyond the year 9999; an
        interval is its number of months or microseconds.
        NaN is always `math.nan` itself.

    Raises:
        ValueError: the text is not such a value, or a table can't be partitioned by the type.
    """
    if not text:
        return None
    if isinstance(data_type, DecimalType):
        return _decimal(text, data_type)
    name = data_type.name if isinstance(data_type, PrimitiveType) else ""
    if name in _BITS:
        return _integer(text, _BITS[name])
    if name in ("timestamp", "timestamp_ntz"):
        return _timestamp(text, session_tz if name == "timestamp" else None)
    if name in _CASTS:
        return _CASTS[name](text)
    if is_interval(data_type):
        return interval_value(text, months=data_type == YEAR_MONTH)
    raise ValueError(f"{text!r}: a partition column can't be of type {data_type}")


def _integer(text: str, bits: int) -> int:
    match = _INTEGER.fullmatch(text.strip(_WHITE))
    if match is None:
        raise ValueError(f"{text!r} is not an integer")
    value = int(f"{match[1]}{match[2] or 0}")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{text!r} does not fit {bits} bits")
    return value


def _double(text: str) -> float:
    bare = text.strip(_WHITE)
    special = _SPECIAL.fullmatch(bare)
    if special is not None:
        found = float(special[2])
        return math.nan if math.isnan(found) else -found if special[1] == "-" else found
    match = _DOUBLE.fullmatch(bare)
    if match is not None:
        return float(match[1])
    match = _HEX.fullmatch(bare)
    if match is None:
        raise ValueError(f"{text!r} is not a number")
    try:
        return float.fromhex(match[1])
    except OverflowError:
        return -math.inf if bare[0] == "-" else math.inf


def _float(text: str) -> float:
    value = _double(text)
    try:
        narrow: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return math.nan if math.isnan(narrow) else narrow


def _decimal(text: str, data_type: DecimalType) -> Decimal:
    bare = text.strip(_WHITE)
    if not _DECIMAL.fullmatch(bare):
        raise ValueError(f"{text!r} is not a decimal")
    value = Decimal(bare)
    if value and value.adjusted() >= data_type.precision:
        # Before the digits are written out: an exponent may be arbitrarily large.
        raise ValueError(f"{text!r} does not fit {data_type}")
    if value and value.adjusted() < -data_type.scale - 1:
        value = Decimal(0)
    context = Context(prec=2 * 38 + len(bare), rounding=ROUND_HALF_UP)
    value = value.quantize(Decimal(1).scaleb(-data_type.scale), context=context)
    if value and value.adjusted() >= data_type.precision - data_type.scale:
        raise ValueError(f"{text!r} does not fit {data_type}")
    return value


def _boolean(text: str) -> bool:
    bare = text.strip(_WHITE).lower()
    if bare not in _TRUE | _FALSE:
        raise ValueError(f"{text!r} is neither true nor false")
    return bare in _TRUE


def _date(text: str) -> int:
    match = _DATE.fullmatch(text.strip(_WHITE))
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    days = _days(text, *match.groups())
    if not -(1 << 31) <= days < 1 << 31:
        raise ValueError(f"{text!r} is a date out of range")
    return days


def _days(text: str, year: str, month: str | None, day: str | None) -> int:
    """Days since 1970, of any year."""
    cycles, within = divmod(int(year), 400)
    try:
        near = date(2000 + within, int(month or 1), int(day or 1))
    except ValueError:
        raise ValueError(f"{text!r} is not a day in the calendar") from None
    return near.toordinal() - _EPOCH + _CYCLE_DAYS * (cycles - 5)


def _timestamp(text: str, session_tz: str | None) -> int:
    """Microseconds since 1970; of the clock alone, whatever zone it names, without `session_tz`."""
    bare = text.strip(_WHITE)
    match = _TIMESTAMP.fullmatch(bare)
    time = None if match or session_tz is None else _TIME.fullmatch(bare)
    found = match or time
    if found is None:
        raise ValueError(f"{text!r} is not a timestamp")
    *day, clock_hour, clock_minute, clock_second, fraction, zone = found.groups()
    clock = (clock_hour, clock_minute, clock_second)
    hour, minute, second = (int(part or 0) for part in clock)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{text!r} is not a time of day")
    where = _zone(text, zone) if zone else None
    if not day and session_tz is not None:
        # Spark reads a time without a day as one of the current day.
        days = datetime.now(where or zone_of(session_tz)).toordinal() - _EPOCH
    else:
        days = _days(text, *day)
    seconds = 3600 * hour + 60 * minute + second
    micros = days * _DAY_MICROS + seconds * 1_000_000 + int(f"{fraction or '':0<6}"[:6])
    if session_tz is not None:
        micros = instant_of(micros, where or session_tz)
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError(f"{text!r} is a time out of range")
    return micros


def _zone(text: str, name: str) -> tzinfo:
    bare = name.strip(_WHITE)
    if bare in ("Z", "UTC", "GMT", "UT"):
        return UTC
    match = _OFFSET.fullmatch(bare)
    if match is None:
        try:
            return named_zone(bare)
        except ValueError:
            raise ValueError(f"{text!r} names an unknown time zone") from None
    sign, *parts = match.groups()
    hours, minutes, seconds = (int(a or b or 0) for a, b in zip(parts[:3], parts[3:], strict=True))
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or offset > _MOST_OFFSET:
        raise ValueError(f"{text!r} names a time zone offset that is out of range")
    return timezone(-offset if sign == "-" else offset)


_CASTS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "float": _float,
    "double": _double,
    "boolean": _boolean,
    "date": _date,
    "binary": str.encode,
}
