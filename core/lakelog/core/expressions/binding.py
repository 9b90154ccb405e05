"""Binding a filter to a schema: which column is meant, and in which type values are compared.

Types follow Spark's rules for ANSI mode, its default: a literal is brought to the column's type
where that loses nothing, integers and fractions meet as decimals or doubles, text is parsed as the
column's type. Where Spark would cast the *column* instead, we do not follow (`None` below): SQL
becomes `Opaque`, tuples are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.coerce import (
    char_limit,
    coerce,
    comparable,
    fills_up,
    is_undecided,
    resolve,
    unify,
)
from lakelog.core.expressions.conditions import bound_condition
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    OPERATORS,
    And,
    Column,
    Compare,
    Comparison,
    Computed,
    Expression,
    In,
    IsNull,
    Literal,
    Name,
    Not,
    Opaque,
    Or,
    StartsWith,
    join_and,
    join_or,
)
from lakelog.core.plain_values import plain_value
from lakelog.core.schema import PrimitiveType, StructType
from lakelog.core.schema.column_paths import dotted, split_path, unknown_column

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMESTAMP = PrimitiveType("timestamp")


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
        if target.data_type == _TIMESTAMP and is_undecided(given.value, session_tz):
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
            limit = char_limit(found, schema)
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
            root = Compare(op, Name(first.path, quoted=True), Name(second.path, quoted=True))
            both_paths = frozenset([first.path, second.path])
            return Computed(to_sql(both), both_paths, session_tz, root=root)
        case In(given, values):
            found = column(given)
            is_bound = found == given and all(v.data_type or v.value is None for v in values)
            limit = char_limit(found, schema)
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
        case Literal() | Computed() | Opaque():
            return expr
        case _:
            return bound_condition(expr, schema, session_tz=session_tz)


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
