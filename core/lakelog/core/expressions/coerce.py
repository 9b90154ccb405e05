"""Spark's rules of what types meet in, for ANSI mode, its default: said once, for all expressions.

Two values meet in the type that holds both (`common_type`), or are compared in another one
(`compared_type`), since text is read as what it is compared with. A literal beside a column is
brought to the column's type where that loses nothing (`coerce`): statistics are of that type.
"""

from __future__ import annotations

import contextlib
import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.arrow.partitions import parse_value
from lakelog.core.arrow.time_zones import UndecidedTimeError, in_utc
from lakelog.core.expressions.tree import Column, Literal
from lakelog.core.plain_values import plain_value
from lakelog.core.schema import ArrayType, DecimalType, MapType, PrimitiveType, StructType
from lakelog.core.schema.char_varchar import Limit, limit_of
from lakelog.core.schema.column_paths import find_column
from lakelog.core.schema.types import DAY_TIME, VARIANT, YEAR_MONTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.schema import DataType

INTEGERS: Final = ("byte", "short", "integer", "long")
"""By rank: where two meet, the result is the later one."""
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DATE, _STRING = PrimitiveType("date"), PrimitiveType("string")
_LONG, _VOID = PrimitiveType("long"), PrimitiveType("void")
_TIMESTAMP, _NTZ = PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz")
_DOUBLE = PrimitiveType("double")
_FLOATS = {PrimitiveType("float"), _DOUBLE}
_WHOLE = dict(zip(map(PrimitiveType, INTEGERS), (3, 5, 10, 20), strict=True))
"""Integers, and the digits of the decimals that hold them: Spark gives a long 20, one too many."""
_UNORDERED = (PrimitiveType("void"), VARIANT, DAY_TIME, YEAR_MONTH)
_MOST_DIGITS: Final = 38
_NAMES: Final = {int: INTEGERS, str: ("string",), date: ("date",)}
"""Types of Python that have one form for each value, and which of ours they are."""
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?([ T].*)?", re.DOTALL)


class NotInCoreError(Exception):
    """A part of an expression that only Spark evaluates; the text says which."""


def common_type(given: Iterable[DataType]) -> DataType:
    """The type in which values of some types meet, as in `coalesce` and in arithmetic.

    Raises:
        NotInCoreError: a combination that is left to Spark.
    """
    kinds = set(given) - {_VOID}
    if len(kinds) <= 1:
        return next(iter(kinds), _VOID)
    names = {kind.name if isinstance(kind, PrimitiveType) else "" for kind in kinds}
    if names <= set(INTEGERS):
        return PrimitiveType(max(names, key=INTEGERS.index))
    if names <= {*INTEGERS, "double"}:
        return _DOUBLE
    decimals = [as_decimal(kind) for kind in kinds]
    if all(decimals):
        found = wider_decimal([each for each in decimals if each is not None])
        if found is not None:
            return found
    if kinds <= {*_FLOATS, *(k for k in kinds if isinstance(k, DecimalType))} and _DOUBLE in kinds:
        return _DOUBLE
    raise NotInCoreError(f"{' and '.join(sorted(map(str, kinds)))} in one operation")


def compared_type(given: Iterable[DataType]) -> DataType:
    """The type in which values of some types are compared, by Spark's rules for ANSI mode.

    Text meets whole numbers as a bigint, other numbers as a double, and anything else as the other
    type.

    Raises:
        NotInCoreError: a combination that is left to Spark.
    """
    kinds = set(given) - {_VOID}
    if len(kinds) <= 1:
        return next(iter(kinds), _VOID)
    others = kinds - {_STRING}
    # Not the narrower type of the other: `'3000000000' > i` has an answer for an int `i`.
    if len(others) < len(kinds):
        if all(k in _WHOLE for k in others):
            return _LONG
        if all(k in _WHOLE or k in _FLOATS or isinstance(k, DecimalType) for k in others):
            return _DOUBLE
    decimals = [as_decimal(k) for k in others]
    if others & _FLOATS and all(k in _FLOATS or d for k, d in zip(others, decimals, strict=True)):
        return _DOUBLE
    if others <= {_DATE, _TIMESTAMP, _NTZ}:
        if len(others) == 1:
            return next(iter(others))
        return _TIMESTAMP if _TIMESTAMP in others else _NTZ
    return common_type(others)


def has_order(kind: DataType) -> bool:
    """Whether values of a type are compared here."""
    return isinstance(kind, PrimitiveType | DecimalType) and kind not in (_VOID, VARIANT)


def as_decimal(kind: DataType) -> DecimalType | None:
    """The decimal that holds all of a type of exact numbers; `None` of any other type."""
    if isinstance(kind, DecimalType):
        return kind
    digits = _WHOLE.get(kind) if isinstance(kind, PrimitiveType) else None
    return None if digits is None else DecimalType(digits, 0)


def wider_decimal(kinds: list[DecimalType]) -> DecimalType | None:
    """The decimal that holds all of the others; `None` where 38 digits don't."""
    scale = max(each.scale for each in kinds)
    whole = max(each.precision - each.scale for each in kinds)
    return DecimalType(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def resolve(path: Sequence[str], schema: StructType) -> Column | None:
    """The column at a path, ignoring case, in the schema's spelling; `None` if there is none."""
    found = find_column(path, schema)
    return Column(*found) if found else None


def coerce(literal: Literal, target: DataType, session_tz: str = "UTC") -> Literal | None:
    """The literal in the type in which a column of type `target` is compared with it.

    Returns:
        The typed literal, or `None` where the comparison is not supported here.

    Raises:
        ValueError: a string that is not a value of the column's type, which Spark refuses too, or
            no Unicode; or a scalar that Python can't represent.
    """
    value, names = literal.value, _NAMES.get(type(literal.value))
    if names is None:
        value = plain_value(value)
    if value is None:
        return Literal(None)
    if isinstance(target, DecimalType):
        return _for_decimal(value, target)
    if not isinstance(target, PrimitiveType):
        return None
    name = target.name
    if names is not None and name in names and literal.data_type == target:
        return literal
    if name in _BITS:
        return _for_integer(value, target)
    if name in ("float", "double"):
        return _for_float(value)
    if name in ("date", "timestamp", "timestamp_ntz"):
        with contextlib.suppress(UndecidedTimeError):
            return _for_time(value, target, session_tz)
        return None
    if isinstance(value, str) and not value.isascii():
        value.encode()  # refuses half a pair of surrogates, which no column holds
    wanted = {"string": str, "boolean": bool, "binary": bytes}.get(name)
    return Literal(value, target) if wanted and isinstance(value, wanted) else None


def _for_integer(value: Any, target: PrimitiveType) -> Literal | None:
    if isinstance(value, str):
        value = parse_value(value.strip(), _LONG)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        for kind in (target, _LONG):
            half = 1 << _BITS[kind.name] - 1
            if -half <= value < half:
                return Literal(value, kind)
        value = Decimal(value)
    if isinstance(value, Decimal):
        exact = _decimal_type(value)
        # A long needs 19 digits before the point, and 38 is all there is.
        if exact is None or exact.scale > 19:
            return None
        return Literal(value, DecimalType(38, exact.scale))
    return Literal(value, _DOUBLE) if isinstance(value, float) else None


def _for_float(value: Any) -> Literal | None:
    if isinstance(value, str):
        value = parse_value(value.strip(), _DOUBLE)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return Literal(math.nan if math.isnan(number) else number, _DOUBLE)


def _for_decimal(value: Any, target: DecimalType) -> Literal | None:
    if isinstance(value, str):
        value = parse_value(value.strip(), _DOUBLE)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        # Spark compares as doubles. With 15 digits that is to compare with the double's shortest
        # text; with more, different decimals are equal doubles.
        if target.precision > 15 or not math.isfinite(value):
            return None
        value = Decimal(repr(value))
    if not isinstance(value, int | Decimal):
        return None
    value = Decimal(value)
    kind = _decimal_type(value)
    common = None if kind is None else wider_decimal([kind, target])
    return None if common is None else Literal(value, common)


def _decimal_type(value: Decimal) -> DecimalType | None:
    """The narrowest type that holds a decimal; `None` if none does."""
    if not value.is_finite():
        return None
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale, 1)
    return DecimalType(precision, scale) if precision <= 38 else None


def _for_time(value: Any, target: PrimitiveType, session_tz: str) -> Literal | None:
    name = target.name
    if isinstance(value, str):
        return _time_from_text(value.strip(), target, session_tz)
    if isinstance(value, datetime):
        if getattr(value, "nanosecond", 0) > 0:
            raise ValueError(f"{value!r} has nanoseconds, which the type can't hold")
        if name == "timestamp":
            moment = _in_utc(value) if value.tzinfo else in_utc(value, session_tz)
            return Literal(moment, target)
        return Literal(value, target) if name == "timestamp_ntz" and not value.tzinfo else None
    if not isinstance(value, date):
        return None
    if name == "date":
        return Literal(value, target)
    midnight = datetime(value.year, value.month, value.day)  # noqa: DTZ001 # its zone comes next
    if name == "timestamp_ntz":
        return Literal(midnight, target)
    return Literal(in_utc(midnight, session_tz), target)


def is_undecided(value: Any, session_tz: str) -> bool:
    """Whether a value has no zone and names an instant that only the engine knows."""
    try:
        _for_time(plain_value(value), _TIMESTAMP, session_tz)
    except UndecidedTimeError:
        return True
    except ValueError:
        return False
    return False


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{value} is outside the years 1 to 9999 in UTC") from None


def _time_from_text(text: str, target: PrimitiveType, session_tz: str) -> Literal | None:
    match = _DAY.fullmatch(text)
    is_date = target.name == "date"
    if is_date and match is None:
        raise ValueError(f"{text!r} is not a date (yyyy-MM-dd)")
    if match is not None and (is_date or match[4] is None):
        # `2024` and `2024-3` are their first days.
        day = date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        return _for_time(day, target, session_tz)
    if target.name == "timestamp_ntz" and re.search(r"(?:Z|[+-]\d{2}:?\d{2})\s*$", text[10:]):
        return None
    value = parse_value(text, target, session_tz)
    return None if value is None else Literal(value, target)


def unify(values: Sequence[Literal]) -> tuple[Literal, ...] | None:
    """The literals in one type, as `IN` compares them; `None` where they have no common type."""
    # By identity first: a list may be long, and its types are few.
    kinds = {*{id(v.data_type): v.data_type for v in values}.values()} - {None}
    if len(kinds) <= 1:
        return tuple(values)
    if all(isinstance(k, PrimitiveType) and k.name in _BITS for k in kinds):
        common: DataType = _LONG
    else:
        decimals = [k for k in kinds if isinstance(k, DecimalType)]
        wider = wider_decimal(decimals) if len(decimals) == len(kinds) else None
        if wider is None:
            return None
        common = wider
    return tuple(v if v.value is None else Literal(v.value, common) for v in values)


def comparable(left: Column, right: Column) -> bool:
    """Whether two columns can be compared without a cast: both of one orderable atomic type."""
    nested = ArrayType | MapType | StructType
    kind = left.data_type
    return kind == right.data_type and not isinstance(kind, nested) and kind not in _UNORDERED


def fills_up(first: Column, second: Column, schema: StructType) -> bool:
    """Whether one of two columns is filled up to be compared: both are CHAR, of other lengths."""
    one, other = char_limit(first, schema), char_limit(second, schema)
    return one is not None and other is not None and one.length != other.length


def char_limit(column: Column, schema: StructType) -> Limit | None:
    """Of a column that is a CHAR."""
    limit = limit_of(schema.get(column.path[0])) if len(column.path) == 1 else None
    return limit if limit is not None and limit.pads else None
