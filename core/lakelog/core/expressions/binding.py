"""Binding a filter to a schema: which column is meant, and in which type values are compared.

Types follow Spark's rules for ANSI mode, its default: a literal is brought to the column's type
where that loses nothing, integers and fractions meet as decimals or doubles, text is parsed as the
column's type. Where Spark would cast the *column* instead, we do not follow (`None` below): SQL
becomes `Opaque`, tuples are refused.
"""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakelog.core.arrow.partitions import parse_value
from lakelog.core.arrow.time_zones import UndecidedTimeError, in_utc
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.tree import (
    OPERATORS,
    And,
    Column,
    Comparison,
    Computed,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
    join_and,
    join_or,
    to_sql,
)
from lakelog.core.plain_values import plain_value
from lakelog.core.schema import ArrayType, DecimalType, MapType, PrimitiveType, StructType
from lakelog.core.schema.char_varchar import Limit, limit_of
from lakelog.core.schema.column_paths import dotted, find_column, split_path, unknown_column
from lakelog.core.schema.types import DAY_TIME, VARIANT, YEAR_MONTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.schema import DataType

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}

_DOUBLE = PrimitiveType("double")

_LONG = PrimitiveType("long")
_TIMESTAMP = PrimitiveType("timestamp")

_UNORDERED = (PrimitiveType("void"), VARIANT, DAY_TIME, YEAR_MONTH)

_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?(?:[ T].*)?", re.DOTALL)

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The equivalent operator with the sides exchanged, where it is a different one."""


def resolve(path: Sequence[str], schema: StructType) -> Column | None:
    """The column at a path, ignoring case, in the schema's spelling; `None` if there is none."""
    found = find_column(path, schema)
    return Column(*found) if found else None


def coerce(literal: Literal, target: DataType, session_tz: str = "UTC") -> Literal | None:
    """The literal in the type in which a column of type `target` is compared with it.

    Returns:
        The typed literal, or `None` where the comparison is not supported here.

    Raises:
        ValueError: a string that is not a value of the column's type, which Spark refuses too, or a
            scalar that Python can't represent.
    """
    value = plain_value(literal.value)
    if value is None:
        return Literal(None)
    if isinstance(target, DecimalType):
        return _for_decimal(value, target)
    if not isinstance(target, PrimitiveType):
        return None
    name = target.name
    if name in _BITS:
        return _for_integer(value, target)
    if name in ("float", "double"):
        return _for_float(value)
    if name in ("date", "timestamp", "timestamp_ntz"):
        with contextlib.suppress(UndecidedTimeError):
            return _for_time(value, target, session_tz)
        return None
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
    if kind is None:
        return None
    scale = max(kind.scale, target.scale)
    whole = max(kind.precision - kind.scale, target.precision - target.scale)
    return Literal(value, DecimalType(whole + scale, scale)) if whole + scale <= 38 else None


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


def _is_undecided(value: Any, session_tz: str) -> bool:
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
    if target.name == "date":
        match = _DAY.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a date (yyyy-MM-dd)")
        return Literal(date(int(match[1]), int(match[2] or 1), int(match[3] or 1)), target)
    if target.name == "timestamp_ntz" and re.search(r"(?:Z|[+-]\d{2}:?\d{2})\s*$", text[10:]):
        return None
    value = parse_value(text, target, session_tz)
    return None if value is None else Literal(value, target)


def unify(values: Sequence[Literal]) -> tuple[Literal, ...] | None:
    """The literals in one type, as `IN` compares them; `None` where they have no common type."""
    kinds = {v.data_type for v in values if v.data_type is not None}
    if len(kinds) <= 1:
        return tuple(values)
    if all(isinstance(k, PrimitiveType) and k.name in _BITS for k in kinds):
        common: DataType = _LONG
    else:
        decimals = [k for k in kinds if isinstance(k, DecimalType)]
        scale = max((k.scale for k in decimals), default=0)
        whole = max((k.precision - k.scale for k in decimals), default=0)
        if len(decimals) < len(kinds) or whole + scale > 38:
            return None
        common = DecimalType(whole + scale, scale)
    return tuple(v if v.value is None else Literal(v.value, common) for v in values)


def comparable(left: Column, right: Column) -> bool:
    """Whether two columns can be compared without a cast: both of one orderable atomic type."""
    nested = ArrayType | MapType | StructType
    kind = left.data_type
    return kind == right.data_type and not isinstance(kind, nested) and kind not in _UNORDERED


def bind(expr: Expression, schema: StructType, *, session_tz: str = "UTC") -> Expression:
    """Resolve the columns of a tree and type its literals.

    Raises:
        InvalidPredicateError: an unknown column, an unknown operator, or types that can't be
            compared.
    """

    def column(given: Column) -> Column:
        found = resolve(given.path, schema)
        if found is None:
            raise unknown_column(given.path, schema)
        return found

    def typed(given: Literal, target: Column) -> Literal | None:
        """`None` where the engine has to say what time is meant."""
        if target.data_type == _TIMESTAMP and _is_undecided(given.value, session_tz):
            return None
        return _typed_or_refused(given, target, session_tz)

    match expr:
        case And(()) | Or(()):
            # A condition that a loop built from nothing would match every row, or none.
            raise InvalidPredicateError(
                "And and Or need at least one condition; Literal(True) means all rows"
            )
        case And(parts):
            return And(tuple(bind(p, schema, session_tz=session_tz) for p in parts))
        case Or(parts):
            return Or(tuple(bind(p, schema, session_tz=session_tz) for p in parts))
        case Not(part):
            return Not(bind(part, schema, session_tz=session_tz))
        case Comparison(op, _, _) if op not in OPERATORS:
            raise InvalidPredicateError(f"unknown operator {op!r}; known: {', '.join(OPERATORS)}")
        case Comparison(op, left, Literal() as right):
            found = column(left)
            value = typed(right, found)
            if value is None:
                return Opaque(to_sql(Comparison(op, found, right)), frozenset([found.path]))
            limit = _limit(found, schema)
            if limit is not None and isinstance(value.value, str) and not right.exact:
                op, text = limit.compared(op, value.value)
                value = Literal(text, value.data_type)
            return Comparison(op, found, replace(value, exact=right.exact))
        case Comparison(op, left, Column() as right):
            first, second = column(left), column(right)
            if not comparable(first, second):
                raise _incomparable(first, str(second.data_type), dotted(second.path))
            both = Comparison(op, first, second)
            if not fills_up(first, second, schema):
                return both
            return Computed(to_sql(both), frozenset([first.path, second.path]), session_tz)
        case In(given, values):
            found = column(given)
            is_bound = found == given and all(v.data_type or v.value is None for v in values)
            limit = _limit(found, schema)
            if is_bound and limit is None:
                return expr  # Already bound, and it may be long.
            each = [v for v in (typed(v, found) for v in values) if v is not None]
            if len(each) < len(values):
                return Opaque(to_sql(In(found, values)), frozenset([found.path]))
            if limit is not None:
                each = [
                    Literal(limit.compared("=", v.value)[1], v.data_type)
                    if isinstance(v.value, str) and not given.exact
                    else replace(v, exact=given.exact)
                    for v, given in zip(each, values, strict=True)
                ]
            same = unify(each)
            return In(found, same) if same else join_or(Comparison("=", found, v) for v in each)
        case IsNull(given):
            return IsNull(column(given))
        case StartsWith(given, prefix):
            found = column(given)
            if found.data_type != PrimitiveType("string"):
                raise _incomparable(found, "string", repr(prefix))
            return StartsWith(found, prefix)
        case _:
            return expr


def _typed_or_refused(given: Literal, target: Column, session_tz: str) -> Literal:
    assert target.data_type is not None
    try:
        found = coerce(given, target.data_type, session_tz)
    except ValueError as exc:
        raise InvalidPredicateError(
            f"column {dotted(target.path)} is of type {target.data_type}: {exc}"
        ) from None
    if found is None:
        raise _incomparable(target, type(given.value).__name__, repr(given.value))
    return found


def fills_up(first: Column, second: Column, schema: StructType) -> bool:
    """Whether one of two columns is filled up to be compared: both are CHAR, of other lengths."""
    one, other = _limit(first, schema), _limit(second, schema)
    return one is not None and other is not None and one.length != other.length


def _limit(column: Column, schema: StructType) -> Limit | None:
    """Of a column that is a CHAR."""
    limit = limit_of(schema.get(column.path[0])) if len(column.path) == 1 else None
    return limit if limit is not None and limit.pads else None


def _incomparable(left: Column, kind: str, what: str) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"column {dotted(left.path)} of type {left.data_type} can't be compared with {what} "
        f"of type {kind}"
    )


def from_tuples(given: Sequence[Any], schema: StructType, *, session_tz: str) -> Expression:
    """A bound tree from pyarrow's tuples: a list is AND, a list of lists is OR of ANDs.

    Raises:
        InvalidPredicateError: a malformed tuple, and what `bind` raises.
    """
    if not given:
        raise InvalidPredicateError("a filter of tuples can't be empty; None means all rows")
    if all(isinstance(each, list) for each in given):
        if not all(given):
            raise InvalidPredicateError(
                "a list of conditions within a filter can't be empty, since it would match every "
                f"row: {given!r}; None means all rows"
            )
        groups = [join_and(_from_tuple(t, schema) for t in group) for group in given]
        return bind(join_or(groups), schema, session_tz=session_tz)
    return bind(join_and(_from_tuple(t, schema) for t in given), schema, session_tz=session_tz)


def _from_tuple(given: Any, schema: StructType) -> Expression:
    if not isinstance(given, tuple) or len(given) != 3 or not isinstance(given[0], str):
        raise InvalidPredicateError(f"{given!r} is not a (column, operator, value) tuple")
    name, op, value = given
    value = _plain(value, given)
    column = Column((name,)) if schema.get(name) else Column(_path(name))
    word = " ".join(str(op).lower().split())
    if word in ("is", "is not"):
        if value is not None:
            raise InvalidPredicateError(f"{given!r}: {word!r} takes None")
        return IsNull(column) if word == "is" else Not(IsNull(column))
    if word in ("in", "not in"):
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise InvalidPredicateError(f"{given!r}: {word!r} takes a list of values")
        found = In(column, tuple(Literal(v) for v in value))
        return found if word == "in" else Not(found)
    word = {"==": "=", "<>": "!="}.get(word, word)
    if value is None and word != "<=>":
        raise InvalidPredicateError(f"{given!r} is never true; use ({name!r}, 'is', None)")
    return Comparison(word, column, Literal(value))


def _plain(value: Any, given: Any) -> Any:
    try:
        return plain_value(value)
    except ValueError as exc:
        raise InvalidPredicateError(f"in the condition on {given[0]}: {exc}") from None


def _path(name: str) -> tuple[str, ...]:
    try:
        return split_path(name)
    except ValueError as exc:
        raise InvalidPredicateError(str(exc)) from None
