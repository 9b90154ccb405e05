"""Turns a condition in any form that callers use into a tree bound to a schema."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, get_args

from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.context import DEFAULTS, EvalContext
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    join_and,
    join_or,
)
from lakelog.core.plain_values import plain_value
from lakelog.core.schema.column_paths import split_path

if TYPE_CHECKING:
    from lakelog.core.schema import StructType


class ArrowCondition(Protocol):
    """An expression of `pyarrow.compute`, whose class has no type where stubs are missing."""

    def is_valid(self) -> Any:
        """Whether it is not null."""
        ...

    def isin(self, values: Any, /) -> Any:
        """Whether it is one of some values."""
        ...


Filter: TypeAlias = (
    Expression
    | ArrowCondition
    | str
    | bool
    | tuple[str, str, Any]
    | Sequence[tuple[str, str, Any]]
    | Sequence[Sequence[tuple[str, str, Any]]]
)
"""What users may give: a tree, SQL text, an expression of `pyarrow.compute`, a bool for all rows
or none, or pyarrow's tuples, `("a", "=", 1)` alone, `[("a", "=", 1)]` for AND and a list of such
lists for OR of ANDs. Values are those of Python, numpy, pandas, or scalars of Arrow."""


def normalize_filter(
    given: Filter | None, schema: StructType, context: EvalContext = DEFAULTS
) -> Expression | None:
    """Make a bound tree of what a user gave; `None` where there is no filter.

    Args:
        given: `None`, a tree, SQL text, an expression of `pyarrow.compute`, which means what
            pyarrow means by it, a bool, or tuples. In tuples a name is that of a column,
            or a path such as `a.b`; the operators are those of SQL and `in`, `not in`, `is`,
            `is not` (the last two with `None`).
        schema: the table's schema.
        context: of the evaluation; without a time, functions of the current one are left to Spark.

    Raises:
        InvalidPredicateError: it can't be parsed, names a column that does not exist, or compares
            a column with a value of a type that is not comparable.
    """
    if given is None:
        return None
    if isinstance(given, bool):
        return Literal(given)
    from lakelog.core.expressions.nesting import check_levels

    if isinstance(given, str):
        found = parse_filter(given, schema, context)
        check_levels(_levels(found))
        return found
    from lakelog.core.expressions.arrow.given import arrow_condition, is_arrow_expression
    from lakelog.core.expressions.binding import bind

    if isinstance(given, Sequence):
        one = isinstance(given, tuple) and len(given) == 3 and isinstance(given[0], str)
        tree = _from_tuples([given] if one else given, schema)
    elif is_arrow_expression(given):
        return arrow_condition(given, schema)
    elif isinstance(given, get_args(Expression)):
        tree = cast("Expression", given)
        check_levels(_levels(tree))
    else:
        raise InvalidPredicateError(
            f"{given!r} is not a filter. Give SQL text such as \"day = '2024-01-01' AND n > 1\", "
            "tuples such as [('n', '>', 1)], True, or an expression of lakelog.core.expressions"
        )
    return bind(tree, schema, context)


def parse_filter(sql: str, schema: StructType, context: EvalContext = DEFAULTS) -> Expression:
    """Parse a condition of Spark SQL and bind it to a schema; see `normalize_filter`.

    Raises:
        InvalidPredicateError: it does not parse, names an unknown column, or has a string that is
            not a value of the column's type. Fields: `position`, 0-based, where it is known.
    """
    from lakelog.core.expressions.binding import bind
    from lakelog.core.expressions.nesting import explained_depth
    from lakelog.core.expressions.parse.sql import parse_as_spark, parse_sql

    if not sql.strip():
        raise InvalidPredicateError("a filter can't be empty; None means all rows")
    with explained_depth(sql):
        # First with every function under its own name, so that it is evaluated as it was written;
        # sqlglot's Spark grammar then covers forms that this one does not.
        with contextlib.suppress(InvalidPredicateError):
            return bind(parse_sql(sql), schema, context)
        return bind(parse_as_spark(sql), schema, context)


def _from_tuples(given: Sequence[Any], schema: StructType) -> Expression:
    """A tree of pyarrow's tuples: a list is AND, a list of lists is OR of ANDs."""
    if not given:
        raise InvalidPredicateError("a filter of tuples can't be empty; None means all rows")
    if all(isinstance(each, list) for each in given):
        if not all(given):
            raise InvalidPredicateError(
                "a list of conditions within a filter can't be empty, since it would match every "
                f"row: {given!r}; None means all rows"
            )
        return join_or(join_and(_from_tuple(t, schema) for t in group) for group in given)
    return join_and(_from_tuple(t, schema) for t in given)


def _from_tuple(given: Any, schema: StructType) -> Expression:
    if not isinstance(given, tuple) or len(given) != 3 or not isinstance(given[0], str):
        raise InvalidPredicateError(f"{given!r} is not a (column, operator, value) tuple")
    name, op, value = given
    try:
        value = plain_value(value)
    except ValueError as exc:
        raise InvalidPredicateError(f"in the condition on {name}: {exc}") from None
    try:
        column = Column((name,) if schema.get(name) else split_path(name))
    except ValueError as exc:
        raise InvalidPredicateError(str(exc)) from None
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


def _levels(expr: Expression) -> int:
    """How deeply AND, OR and NOT are nested, found without recursion."""
    levels, current = 0, [expr]
    while current:
        inner: list[Expression] = []
        for each in current:
            if isinstance(each, And | Or):
                inner += each.parts
            elif isinstance(each, Not):
                inner.append(each.part)
        levels += bool(inner)
        current = inner
    return levels
