"""Intervals as the text of a partition value: Spark's ANSI literals.

Imports the standard library only: it travels to executors with `partition_text`.
"""

from __future__ import annotations

import re

_LITERAL = re.compile(
    r"\s*(?:INTERVAL\s*)?(?P<outer>[+-]?)\s*(?P<quote>'?)\s*(?P<body>[^']*?)\s*(?P=quote)\s*"
    r"(?P<first>YEAR|MONTH|DAY|HOUR|MINUTE|SECOND)?\s*(?:TO\s+(?P<last>MONTH|HOUR|MINUTE|SECOND))?\s*",
    re.IGNORECASE,
)
_MICROS = 1_000_000
_MONTHS = {"YEAR": 12, "MONTH": 1}
_UNITS = {
    "DAY": 86_400 * _MICROS,
    "HOUR": 3600 * _MICROS,
    "MINUTE": 60 * _MICROS,
    "SECOND": _MICROS,
}
_SEPARATORS = re.compile(r"[ :]")


def interval_text(value: int, *, months: bool) -> str:
    """The literal of an interval, as delta-spark spells it.

    Args:
        value: months, or microseconds.
        months: which of the two.
    """
    sign, left = ("-", -value) if value < 0 else ("", value)
    if months:
        return f"INTERVAL '{sign}{left // 12}-{left % 12}' YEAR TO MONTH"
    seconds, micros = divmod(left, _MICROS)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    fraction = f".{micros:06}".rstrip("0").rstrip(".")
    clock = f"{hour:02}:{minute:02}:{second:02}{fraction}"
    return f"INTERVAL '{sign}{day} {clock}' DAY TO SECOND"


def interval_value(text: str, *, months: bool) -> int:
    """The months, or the microseconds, of a literal; its fields may be fewer than all.

    Raises:
        ValueError: not a literal of that kind, or one beyond 32 or 64 bits.
    """
    found = _LITERAL.fullmatch(text)
    value = None if found is None else _sum(found, months)
    half = 1 << (31 if months else 63)
    if value is None or not -half <= value < half:
        raise ValueError(f"{text!r} is not an interval of {'months' if months else 'days'}")
    return value


def _sum(found: re.Match[str], months: bool) -> int | None:
    units = _MONTHS if months else _UNITS
    names = list(units)
    first = (found["first"] or names[0]).upper()
    last = (found["last"] or (first if found["first"] else names[-1])).upper()
    if first not in units or last not in units:
        return None
    wanted = names[names.index(first) : names.index(last) + 1]
    body = found["body"]
    negative = (found["outer"] == "-") != body.startswith("-")
    parts = body.lstrip("+-").split("-") if months else _SEPARATORS.split(body.lstrip("+-"))
    if len(parts) != len(wanted):
        return None
    total = 0
    for name, part in zip(wanted, parts, strict=True):
        whole, _, fraction = part.partition(".")
        if not whole.isascii() or not whole.isdecimal() or (fraction and name != "SECOND"):
            return None
        total += int(whole) * units[name]
        if fraction:
            if not fraction.isascii() or not fraction.isdecimal() or len(fraction) > 9:
                return None
            total += int(f"{fraction:0<6}"[:6])
    return -total if negative else total
