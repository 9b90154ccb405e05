"""Dates and times by a pattern of letters: `date_format`, `to_date` and `to_timestamp`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from lakelog.core.arrays import scalar_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.by_rows import by_rows, plain
from lakelog.core.expressions.values.casts import cast_value
from lakelog.core.expressions.values.times import PARTS, wall_clock
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

_LONG, _STRING = PrimitiveType("long"), PrimitiveType("string")
_NTZ: Final = PrimitiveType("timestamp_ntz")
_FIELDS: Final = {
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
"""Letters -> what they stand for, and the digits it has at least; 0 for as few as needed."""
_ORDER: Final = ("year", "month", "day", "hour", "minute", "second", "fraction")
_PIECE: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#]+)")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # of a wall clock


def _pieces(pattern: str) -> Iterator[tuple[str, str]]:
    """The letters of each field, or the text between them, the other of the two empty."""
    position = 0
    while position < len(pattern):
        match = _PIECE.match(pattern, position)
        if match is None:
            raise NotInCoreError(f"the date pattern {pattern!r}")
        position = match.end()
        if match[2]:
            yield match[0], ""
        else:
            quoted = match[1]
            yield "", match[3] if quoted is None else quoted.replace("''", "'") or "'"


def _unknown(letters: str, pattern: str) -> NotInCoreError:
    return NotInCoreError(f"{letters!r} in the date pattern {pattern!r}")


def _date_format(context: EvalContext, value: Value, form: Value) -> Value:
    """`date_format(value, pattern)`, for patterns of digits and fixed text."""
    pattern = plain(form, str)
    pieces = [
        _field_text(letters, pattern) if letters else text for letters, text in _pieces(pattern)
    ]
    if not pieces:
        raise NotInCoreError("an empty date pattern")

    def formatted(clock: Any) -> Any:
        # A pattern without any field is still null where the date is null.
        valid = pc.if_else(pc.is_valid(clock), _text_of(""), scalar_of(None, pa.string()))
        found = (_text_of(each) if isinstance(each, str) else each(clock) for each in pieces)
        return pc.binary_join_element_wise(valid, *found, "", null_handling="emit_null")

    return computed(_STRING, formatted, wall_clock(value, context))


def _text_of(text: str) -> Any:
    return scalar_of(text, pa.string())


def _field_text(letters: str, pattern: str) -> Callable[[Any], Any]:
    if letters not in _FIELDS:
        raise _unknown(letters, pattern)
    name, width = _FIELDS[letters]

    def text(clock: Any) -> Any:
        numbers = PARTS[name](clock)
        if name == "year":
            inside = pc.and_(pc.greater_equal(numbers, 1), pc.less_equal(numbers, 9999))
            if pc.all(inside, min_count=0).as_py() is False:
                raise NotInCoreError("the string of a date beyond the years 1 to 9999")
        found = pc.cast(numbers, pa.string())
        return pc.utf8_lpad(found, width=width, padding="0") if width else found

    return text


class _Field(NamedTuple):
    name: str
    expression: str
    """Of the digits that Java reads as this field."""
    is_fixed: bool
    """Whether it has always as many digits."""


def _read_field(letters: str, pattern: str) -> _Field:
    if set(letters) == {"S"} and len(letters) <= 9:
        return _Field("fraction", f"([0-9]{{1,{len(letters)}}})", is_fixed=False)
    if letters not in _FIELDS:
        raise _unknown(letters, pattern)
    name, width = _FIELDS[letters]
    if name == "year":
        # Four digits; with a sign it may have more, and only Spark reads those.
        return _Field(name, "([+-]?[0-9]{4,19})", is_fixed=True)
    digits = "2" if width else "1,19"
    return _Field(name, f"([0-9]{{{digits}}})", is_fixed=bool(width))


def _reader(pattern: str) -> Callable[[str], int]:
    """What reads a text by a pattern, as microseconds of a wall clock since 1970.

    Raises:
        NotInCoreError: Java may read such texts in another way.
    """
    found: list[_Field] = []
    expression, before = "", None
    for letters, text in _pieces(pattern):
        field = _read_field(letters, pattern) if letters else None
        if field is None:
            if "'" in text or re.search(r"\d", text):
                raise _unknown(text, pattern)
            expression += re.escape(text)
        else:
            # Java deals out digits without anything between them to fields of two digits alone.
            if before is not None and not (before.is_fixed and field.is_fixed):
                raise NotInCoreError(f"fields next to each other in the pattern {pattern!r}")
            expression += field.expression
            found.append(field)
        before = field
    names = [each.name for each in found]
    if not names or sorted(names, key=_ORDER.index) != list(_ORDER[: len(names)]):
        raise NotInCoreError(f"the date pattern {pattern!r}, which leaves out or repeats a field")
    matches = re.compile(expression, re.IGNORECASE)
    return lambda text: _micros(matches.fullmatch(text), names, text, pattern)


def _micros(match: re.Match[str] | None, names: list[str], text: str, pattern: str) -> int:
    if match is None:
        raise pa.ArrowInvalid(f"the text {text!r} is not a time by the pattern {pattern!r}")
    digits = dict(zip(names, match.groups(), strict=True))
    year, fraction = digits["year"], digits.pop("fraction", "")
    if len(year) != 4 or not int(year):
        raise NotInCoreError(f"the year {year}")
    numbers = {"month": 1, "day": 1} | {name: int(each) for name, each in digits.items()}
    try:
        moment = datetime(**numbers)  # type: ignore[arg-type]  # noqa: DTZ001
    except (ValueError, OverflowError):
        raise pa.ArrowInvalid(f"there is no time {text!r} (pattern {pattern!r})") from None
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + int(f"{fraction:0<6}"[:6])


def _read(target: str) -> Rule:
    """`to_date` or `to_timestamp`: a CAST where no pattern is given."""
    kind = PrimitiveType(target)

    def apply(context: EvalContext, value: Value, pattern: Value | None = None) -> Value:
        if pattern is None:
            return cast_value(value, kind, context)
        if value.data_type != _STRING:
            raise NotInCoreError(f"{value.data_type} by a date pattern")
        micros = by_rows(_reader(plain(pattern, str)), _LONG, value)
        clock = computed(_NTZ, lambda data: pc.cast(data, pa.timestamp("us")), micros)
        return cast_value(cast_value(clock, PrimitiveType("timestamp"), context), kind, context)

    return apply


TIME_PATTERNS: Final[dict[str, Rule]] = {
    "date_format": _date_format,
    "to_date": _read("date"),
    "to_timestamp": _read("timestamp"),
}
"""By name in lower case."""
