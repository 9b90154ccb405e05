"""Filters as a small tree: what pruning, conflict detection and scans understand of SQL.

The meaning is Spark's: three-valued logic, `<=>` treats null as a value, NaN equals itself and is
greater than every number, -0.0 equals 0.0. What the tree can't express is kept as `Opaque`, which
is not evaluated here: pruning keeps every file for it, and a scan refuses it.

A tree that `normalize_filter` returned is *bound*: its columns are spelled as in the schema and
know their type, and in a `Comparison` of a column with a literal the column is on the left
and the literal's type is the one that both are compared in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelog.core.schema import DataType, PrimitiveType
from lakelog.core.schema.column_paths import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct."""

    path: tuple[str, ...]
    data_type: DataType | None = None
    """`None` until it is bound."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value: `bool`, `int`, `float`, `Decimal`, `str`, `bytes`, `date`, `datetime`, or null.

    A `datetime` of type `timestamp` is in UTC. As an expression a literal is true, false or null.
    """

    value: Any
    data_type: DataType | None = None
    """`None` for null, and until it is bound."""
    exact: bool = False
    """Whether text is compared as it is with a CHAR column, not filled up with spaces first."""


def lit(value: Any) -> Literal:
    """A value as it is, where text would be SQL.

        update_rows("/lake/people", {"name": lit("upper(name)")})

    Args:
        value: of Python, numpy or pandas, an Arrow scalar, or `None`.
    """
    return Literal(value)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`."""

    op: str
    """One of `=`, `!=`, `<`, `<=`, `>`, `>=`, `<=>`."""
    left: Column
    right: Column | Literal


@dataclass(frozen=True, slots=True)
class In:
    """Whether a column is one of some values; null where it is not and one of them is null."""

    column: Column
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a column is null; never null itself."""

    column: Column


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether a string begins with a prefix: `LIKE 'prefix%'`."""

    column: Column
    prefix: str


@dataclass(frozen=True, slots=True)
class And:
    """All parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any part."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; null stays null."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Opaque:
    """A condition that only an engine understands."""

    sql: str
    columns: frozenset[tuple[str, ...]] = frozenset()
    """The columns it is known to refer to; there may be more."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A condition of arithmetic, casts or functions, evaluated row by row.

    No statistics answer it, and it may have no result for some row.
    """

    sql: str
    columns: frozenset[tuple[str, ...]]
    """All that it refers to."""
    session_tz: str = "UTC"
    """The zone in which a timestamp has a date."""
    now_ms: int | None = None
    """The result of `current_timestamp()`, where that is used."""
    arrow: bytes | None = None
    """Instead of SQL an expression of pyarrow, pickled: two of those have no equality."""


Expression: TypeAlias = (
    Literal | Comparison | In | IsNull | StartsWith | And | Or | Not | Computed | Opaque
)

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "<=>")


def join_and(parts: Iterable[Expression]) -> Expression:
    """The conjunction, flattened; TRUE of nothing."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat)) if flat else Literal(True, _BOOLEAN)


def join_or(parts: Iterable[Expression]) -> Expression:
    """The disjunction, flattened; FALSE of nothing."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat)) if flat else Literal(False, _BOOLEAN)


_BOOLEAN = PrimitiveType("boolean")


def columns(expr: Expression) -> frozenset[tuple[str, ...]]:
    """The paths of all columns that the expression is known to refer to."""
    match expr:
        case And(parts) | Or(parts):
            return frozenset().union(*map(columns, parts))
        case Not(part):
            return columns(part)
        case Comparison(_, left, right):
            both = [left.path, right.path] if isinstance(right, Column) else [left.path]
            return frozenset(both)
        case In(column, _) | IsNull(column) | StartsWith(column, _):
            return frozenset([column.path])
        case Opaque(_, found) | Computed(_, found):
            return found
        case _:
            return frozenset()


def conjuncts(expr: Expression | None) -> list[Expression]:
    """The parts that must all hold; none for `None`."""
    if expr is None:
        return []
    if isinstance(expr, And):
        return [each for part in expr.parts for each in conjuncts(part)]
    return [expr]


def is_partition_only(expr: Expression, partition_columns: Iterable[str]) -> bool:
    """Whether partition values alone decide it, so that it is true or not for a whole file.

    Something opaque is not decided here, whatever it refers to.
    """
    if is_opaque(expr):
        return False
    names = {name.lower() for name in partition_columns}
    return all(len(path) == 1 and path[0].lower() in names for path in columns(expr))


def is_opaque(expr: Expression) -> bool:
    """Whether a part of it is one that only an engine understands."""
    match expr:
        case And(parts) | Or(parts):
            return any(map(is_opaque, parts))
        case Not(part):
            return is_opaque(part)
        case _:
            return isinstance(expr, Opaque)


def is_computed(expr: Expression) -> bool:
    """Whether a part of it may have no result for some row."""
    match expr:
        case And(parts) | Or(parts):
            return any(map(is_computed, parts))
        case Not(part):
            return is_computed(part)
        case _:
            return isinstance(expr, Computed)


def to_sql(expr: Expression) -> str:
    """The expression as Spark SQL; parsing it gives the same tree."""
    match expr:
        case And(parts):
            return " AND ".join(_in_parentheses(p) for p in parts) or "TRUE"
        case Or(parts):
            return " OR ".join(_in_parentheses(p) for p in parts) or "FALSE"
        case Not(part):
            return f"NOT {_in_parentheses(part)}"
        case Comparison(op, left, right):
            return f"{_operand(left)} {op} {_operand(right)}"
        case In(column, values):
            return f"{_operand(column)} IN ({', '.join(map(_operand, values))})"
        case IsNull(column):
            return f"{_operand(column)} IS NULL"
        case StartsWith(column, prefix):
            return f"startswith({_operand(column)}, {_string(prefix)})"
        case Opaque(sql, _) | Computed(sql, _):
            return sql
        case _:
            return _operand(expr)


def _in_parentheses(expr: Expression) -> str:
    simple = isinstance(expr, Literal | Comparison | In | IsNull | StartsWith)
    return to_sql(expr) if simple else f"({to_sql(expr)})"


def _operand(operand: Column | Literal) -> str:
    if isinstance(operand, Column):
        return dotted(operand.path)
    value = operand.value
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return f"{value!r}D"
        case float():
            text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"double('{text}')"
        case Decimal():
            return f"{value:f}BD"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime() if value.tzinfo is not None:
            return f"TIMESTAMP '{value.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}Z'"
        case datetime():
            return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return _string(str(value))


def _string(text: str) -> str:
    # Versions of Spark read doubled quotes in two ways; they agree on a backslash.
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
