"""Trees as Spark SQL again: for the log, for messages, and for an engine that knows more."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lakelog.core.expressions.tree import (
    Among,
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Comparison,
    Computed,
    In,
    Interval,
    IsNull,
    Lambda,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    NullTest,
    Opaque,
    Or,
    StartsWith,
    TruthTest,
    Variable,
)
from lakelog.core.schema.column_paths import dotted, sql_path

if TYPE_CHECKING:
    from lakelog.core.expressions.tree import Expression

_ATOMS: Final = (Literal, Column, Name, Variable, Call, Case, Cast, StartsWith)
"""What needs no parentheses anywhere."""
_COMPARED: Final = (*_ATOMS, Arithmetic, Negative)
"""What needs none beside an operator that compares."""
_LEAVES: Final = (*_ATOMS, Comparison, In, IsNull, Compare, Among, NullTest, TruthTest, Like)
"""What needs none within AND, OR and NOT."""
_PRODUCTS: Final = ("*", "/", "DIV", "%")


def to_sql(expr: Expression | Column) -> str:
    """The expression as Spark SQL; parsing it gives the same tree."""
    match expr:
        case And(parts):
            return " AND ".join(_within(p, _LEAVES) for p in parts) or "TRUE"
        case Or(parts):
            return " OR ".join(_within(p, _LEAVES) for p in parts) or "FALSE"
        case Not(NullTest(part)):
            return f"{_side(part)} IS NOT NULL"
        case Not(part):
            return f"NOT {_within(part, _LEAVES)}"
        case Comparison(op, left, right):
            return f"{to_sql(left)} {op} {to_sql(right)}"
        case In(column, values):
            return f"{to_sql(column)} IN ({', '.join(map(to_sql, values))})"
        case IsNull(column):
            return f"{to_sql(column)} IS NULL"
        case StartsWith(column, prefix):
            return f"startswith({to_sql(column)}, {_string(prefix)})"
        case Opaque(sql, _) | Computed(sql, _):
            return sql
        case Column(path) | Variable(path):
            return dotted(path)
        case Literal():
            return _literal(expr)
        case _:
            return _value(expr)


def _value(expr: Expression) -> str:
    match expr:
        case Name(path, quoted):
            return sql_path(path) if quoted else dotted(path)
        case Negative(part):
            text = _operand(part)
            return f"-({text})" if text.startswith("-") else f"-{text}"
        case Arithmetic():
            return _arithmetic(expr)
        case Interval(number, unit):
            return f"INTERVAL '{number}' {unit}"
        case Cast(part, target, safe):
            kind = str(target).upper()
            return f"{'TRY_' if safe else ''}CAST({to_sql(part)} AS {kind})"
        case Call(name, arguments):
            return f"{name.upper()}({', '.join(map(to_sql, arguments))})"
        case Lambda(variables, body):
            return f"({', '.join(dotted([each]) for each in variables)}) -> {to_sql(body)}"
        case Case(tests, results, otherwise):
            pairs = zip(tests, results, strict=True)
            arms = "".join(f" WHEN {to_sql(test)} THEN {to_sql(then)}" for test, then in pairs)
            return f"CASE{arms} ELSE {to_sql(otherwise)} END"
        case Compare(op, left, right):
            return f"{_side(left)} {op} {_side(right)}"
        case Between(part, low, high):
            return f"{_side(part)} BETWEEN {_side(low)} AND {_side(high)}"
        case Among(part, items):
            return f"{_side(part)} IN ({', '.join(map(to_sql, items))})"
        case NullTest(part):
            return f"{_side(part)} IS NULL"
        case TruthTest(part, wanted):
            return f"{_side(part)} IS {str(wanted).upper()}"
        case Like(part, pattern, ignores_case):
            word = "ILIKE" if ignores_case else "LIKE"
            return f"{_side(part)} {word} {_side(pattern)}"
    raise AssertionError(expr)


def _arithmetic(expr: Arithmetic) -> str:
    text, is_sum = _operand(expr.first), False
    for op, part in expr.rest:
        if is_sum and op in _PRODUCTS:
            text = f"({text})"
        is_sum = op not in _PRODUCTS
        right = to_sql(part) if isinstance(part, Interval) else _operand(part)
        text = f"{text} {op} {right}"
    return text


def _within(expr: Expression, bare: tuple[type, ...]) -> str:
    if isinstance(expr, Not) and isinstance(expr.part, NullTest) and bare is _LEAVES:
        return to_sql(expr)
    return to_sql(expr) if isinstance(expr, bare) else f"({to_sql(expr)})"


def _operand(expr: Expression) -> str:
    return _within(expr, _ATOMS)


def _side(expr: Expression) -> str:
    return _within(expr, _COMPARED)


def _literal(literal: Literal) -> str:
    value = literal.value
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
