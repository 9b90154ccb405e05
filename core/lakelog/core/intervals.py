"""Spark's text form of a time span: `interval 30 days`, `1 week 12 hours`, `-5 seconds`."""

from __future__ import annotations

import re

__all__ = ["parse_interval_ms"]

_MICROSECONDS = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_NO_FIXED_LENGTH = {"year", "quarter", "month"}
_TERM = re.compile(r"([+-]?)\s*(\d+)(?:\.(\d{0,9}))?\s+([a-z]+)\s*")


def parse_interval_ms(text: str) -> int:
    """The span in milliseconds, rounded down.

    Args:
        text: terms of a whole number and a unit, in any order, with or without the word
            `interval`; seconds may have a fraction. Case does not matter.

    Raises:
        ValueError: no interval, or one with months or years, whose length depends on the date.
    """
    rest = re.sub(r"^\s*interval(?=\s)", "", text.lower()).strip()
    if not rest:
        raise ValueError(f"no interval: {text!r}; write it as 'interval 7 days'")
    micros = 0
    position = 0
    while position < len(rest):
        term = _TERM.match(rest, position)
        if term is None:
            raise ValueError(f"no interval: {text!r}; write it as 'interval 7 days'")
        micros += _term(text, *term.groups())
        position = term.end()
    return micros // 1000


def _term(text: str, sign: str, whole: str, fraction: str | None, word: str) -> int:
    unit = word.removesuffix("s")
    if unit in _NO_FIXED_LENGTH:
        raise ValueError(
            f"the interval {text!r} has {unit}s, which differ in length; write it in days"
        )
    size = _MICROSECONDS.get(unit)
    if size is None:
        raise ValueError(
            f"the interval {text!r} has the unknown unit {word!r}; "
            f"use {', '.join(f'{name}s' for name in _MICROSECONDS)}"
        )
    micros = int(whole) * size
    if fraction is not None:
        if unit != "second":
            raise ValueError(f"the interval {text!r}: only seconds may have a fraction")
        micros += int(fraction.ljust(9, "0")) // 1000
    return -micros if sign == "-" else micros
