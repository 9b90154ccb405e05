"""Turns a condition in any form that callers use into a tree bound to a schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast, get_args

from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.tree import And, Expression, Literal, Not, Or

if TYPE_CHECKING:
    from pyarrow.compute import Expression as ArrowExpression

    from lakelog.core.schema import StructType

Filter: TypeAlias = Union[
    Expression,
    "ArrowExpression",
    str,
    bool,
    tuple[str, str, Any],
    Sequence[tuple[str, str, Any]],
    Sequence[Sequence[tuple[str, str, Any]]],
]
"""What users may give: a tree, SQL text, an expression of `pyarrow.compute`, a bool for all rows
or none, or pyarrow's tuples, `("a", "=", 1)` alone, `[("a", "=", 1)]` for AND and a list of such
lists for OR of ANDs. Values are those of Python, numpy, pandas, or scalars of Arrow."""


def normalize_filter(
    given: Filter | None,
    schema: StructType,
    *,
    session_tz: str = "UTC",
    now_ms: int | None = None,
) -> Expression | None:
    """Make a bound tree of what a user gave; `None` where there is no filter.

    Args:
        given: `None`, a tree, SQL text, an expression of `pyarrow.compute`, which means what
            pyarrow means by it, a bool, or tuples. In tuples a name is that of a column,
            or a path such as `a.b`; the operators are those of SQL and `in`, `not in`, `is`,
            `is not` (the last two with `None`).
        schema: the table's schema.
        session_tz: the zone of timestamps without one.
        now_ms: what `current_timestamp()` and `current_date()` are computed from; where it is
            `None`, they are left to Spark.

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
        from lakelog.core.expressions.conditions import parse_filter

        found = parse_filter(given, schema, session_tz=session_tz, now_ms=now_ms)
        check_levels(_levels(found))
        return found
    from lakelog.core.expressions.binding import bind, from_tuples

    if isinstance(given, tuple) and len(given) == 3 and isinstance(given[0], str):
        given = [given]
    if isinstance(given, Sequence):
        return from_tuples(given, schema, session_tz=session_tz)
    from lakelog.core.expressions.arrow.given import arrow_condition, is_arrow_expression

    if is_arrow_expression(given):
        return arrow_condition(given, schema)
    if not isinstance(given, get_args(Expression)):
        raise InvalidPredicateError(
            f"{given!r} is not a filter. Give SQL text such as \"day = '2024-01-01' AND n > 1\", "
            "tuples such as [('n', '>', 1)], True, or an expression of lakelog.core.expressions"
        )
    tree = cast("Expression", given)
    check_levels(_levels(tree))
    return bind(tree, schema, session_tz=session_tz)


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
