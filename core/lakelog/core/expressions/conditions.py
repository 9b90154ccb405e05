"""Conditions bound to a schema: what statistics can answer gets a node of its own.

A bound condition must never be narrower than what Spark would evaluate: what is not a comparison of
a column with a value is computed row by row, and what can't be computed here is left `Opaque`.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.arrow.partitions import parse_value
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.coerce import coerce, comparable, fills_up, resolve, unify
from lakelog.core.expressions.nesting import explained_depth
from lakelog.core.expressions.parse.sql import parse_as_spark, parse_sql
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    FLIPPED,
    Among,
    And,
    Between,
    Call,
    Cast,
    Column,
    Compare,
    Comparison,
    Computed,
    Expression,
    In,
    IsNull,
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
    calls,
    holds,
    join_and,
    join_or,
    names,
    walk,
)
from lakelog.core.expressions.values.evaluate import constant_of, value_type
from lakelog.core.expressions.values.evaluator import is_now
from lakelog.core.schema import DecimalType, PrimitiveType, StructType
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_paths import unknown_column

if TYPE_CHECKING:
    from lakelog.core.schema import DataType

_BOOLEAN, _VOID = PrimitiveType("boolean"), PrimitiveType("void")
_STRING: Final = PrimitiveType("string")
_TIMES: Final = tuple(map(PrimitiveType, ("date", "timestamp", "timestamp_ntz")))
_NO_LITERALS: Final = tuple(map(PrimitiveType, ("boolean", "string", "binary", "variant")))


def parse_filter(
    sql: str, schema: StructType, *, session_tz: str = "UTC", now_ms: int | None = None
) -> Expression:
    """Parse a condition of Spark SQL and bind it to a schema.

    Args:
        sql: what follows `WHERE`.
        schema: the table's schema.
        session_tz: the zone of timestamps without one.
        now_ms: what `current_timestamp()` and `current_date()` are computed from; where it is
            `None`, they are left to Spark.

    Raises:
        InvalidPredicateError: it does not parse, names an unknown column, or has a string that is
            not a value of the column's type. Fields: `position`, 0-based, where it is known.
    """
    if not sql.strip():
        raise InvalidPredicateError("a filter can't be empty; None means all rows")
    binder = _Binder(schema, session_tz, now_ms)
    with explained_depth(sql):
        # First with every function under its own name, so that it is evaluated as it was written;
        # sqlglot's Spark grammar then covers forms that this one does not.
        with contextlib.suppress(InvalidPredicateError):
            return binder.bind(parse_sql(sql))
        return binder.bind(parse_as_spark(sql))


def bound_condition(
    root: Expression, schema: StructType, *, session_tz: str = "UTC", now_ms: int | None = None
) -> Expression:
    """Bind a tree of the parser; see `parse_filter`.

    Raises:
        InvalidPredicateError: an unknown column, or a string that is not a value of its type.
    """
    return _Binder(schema, session_tz, now_ms).bind(root)


class _Binder:
    """One walk over AND, OR and NOT, and what each of their parts is."""

    def __init__(self, schema: StructType, session_tz: str, now_ms: int | None) -> None:
        self._schema = schema
        self._tz = session_tz
        self._now_ms = now_ms

    def bind(self, expr: Expression) -> Expression:
        match expr:
            case And(parts):
                return join_and(map(self.bind, parts))
            case Or(parts):
                return join_or(map(self.bind, parts))
            case Not(part):
                return Not(self.bind(part))
            case Literal(bool() | None):
                return Literal(expr.value, _BOOLEAN if expr.value is not None else None)
            case _:
                return self._simple(expr) or self._computed(expr) or self._opaque(expr)

    def _simple(self, expr: Expression) -> Expression | None:
        """What statistics answer; `None` of anything else."""
        match expr:
            case Name():
                return self._truth(expr, "=", wanted=True)
            case NullTest(part):
                column = self._column(part)
                return None if column is None else IsNull(column)
            case TruthTest(part, wanted):
                return self._truth(part, "<=>", wanted=wanted)
            case Compare():
                return self._comparison(expr)
            case Among():
                return self._in(expr)
            case Between():
                return self._between(expr)
            case Like(ignores_case=False):
                return self._like(expr)
            case Call("startswith", (text, start)):
                column, literal = self._column(text), self._literal(start)
                prefix = literal.value if literal is not None else None
                if column is not None and column.data_type == _STRING and isinstance(prefix, str):
                    return StartsWith(column, prefix)
        return None

    # What is evaluated row by row, or not here ---------------------------------------------------

    def _computed(self, expr: Expression) -> Expression | None:
        columns = self._columns(expr)
        if columns is None:
            return None
        if not columns:
            constant = constant_of(expr, session_tz=self._tz, now_ms=self._now_ms)
            if constant is None or constant.data_type not in (_BOOLEAN, _VOID):
                return None
            return Literal(constant.data.as_py(), _BOOLEAN)
        zone, now = self._tz, self._now_ms
        kind = value_type("", self._schema, session_tz=zone, now_ms=now, root=expr)
        if kind != _BOOLEAN:
            return None
        asks_now = any(map(is_now, (*calls(expr), *(each.path[0] for each in names(expr)))))
        return Computed(to_sql(expr), columns, zone, now if asks_now else None, root=expr)

    def _columns(self, expr: Expression) -> frozenset[tuple[str, ...]] | None:
        """The columns of a tree; `None` where something else may be among them."""
        if any(isinstance(each, Opaque) for each in walk(expr)):
            return None
        named = [each for each in names(expr) if not self._is_now(each)]
        found = [self._column(each) for each in named]
        known = frozenset(each.path for each in found if each is not None)
        return None if None in found else known

    def _opaque(self, expr: Expression) -> Opaque:
        # Names inside a lambda or a subquery can't be resolved here.
        required = not holds(expr) & {"lambda", "subquery"}
        found = [self._column(each, required=required) for each in names(expr)]
        return Opaque(to_sql(expr), frozenset(each.path for each in found if each is not None))

    def _is_now(self, name: Expression) -> bool:
        """`current_date` without parentheses, which a column of that name hides."""
        if not isinstance(name, Name) or len(name.path) != 1 or name.quoted:
            return False
        return is_now(name.path[0]) and resolve(name.path, self._schema) is None

    # Columns and values --------------------------------------------------------------------------

    def _column(self, name: Expression, *, required: bool = True) -> Column | None:
        """The column that is named; `None` where it is not a column, or is part of an array."""
        if not isinstance(name, Name) or self._is_now(name):
            return None
        path = name.path
        found = resolve(path, self._schema)
        if found is not None or not required or path[0] == "_metadata":
            return found
        if resolve(path[:1], self._schema) is not None and not _only_structs(path, self._schema):
            return None
        start = None if name.span is None else name.span[0]
        error = unknown_column(path, self._schema, "" if start is None else f" at position {start}")
        error.fields["position"] = start
        raise error

    def _literal(self, expr: Expression) -> Literal | None:
        """The value of an expression without columns; `None` where there is none."""
        match expr:
            case Literal():
                return expr
            case Negative(Literal(int() | float() | Decimal() as value, kind)) if kind != _BOOLEAN:
                return Literal(-value, kind)
            case Cast(part, target):
                return self._cast(part, target) or self._folded(expr)
            case Name() if not self._is_now(expr):
                return None
        return self._folded(expr)

    def _cast(self, part: Expression, kind: DataType) -> Literal | None:
        """`DATE '…'`, `1L`, `CAST('…' AS DATE)`."""
        inner = self._literal(part) if isinstance(part, Literal | Negative) else None
        text = "" if inner is None or inner.value is None else str(inner.value).strip()
        is_number = inner is not None and not isinstance(inner.value, str)
        if not text or kind in _NO_LITERALS or (is_number and kind in _TIMES):
            return None  # A number is not the text of a time: 2024 is not a year.
        try:
            if kind == PrimitiveType("date"):
                return coerce(Literal(text), kind, self._tz)
            return Literal(parse_value(text, kind, self._tz), kind)
        except ValueError:
            return None

    def _folded(self, expr: Expression) -> Literal | None:
        if self._columns(expr) != frozenset():
            return None
        found = constant_of(expr, session_tz=self._tz, now_ms=self._now_ms)
        if found is None:
            return None
        try:
            value = found.data.as_py()
        except (OverflowError, ValueError):
            return None  # A time that Python can't represent; Arrow compares with it.
        if found.data_type == _VOID or value is None:
            return Literal(None)
        is_decimal = isinstance(found.data_type, DecimalType)
        return Literal(value) if is_decimal else Literal(value, found.data_type)

    def _coerced(self, literal: Literal, column: Column, expr: Expression) -> Literal | None:
        """The literal in the type in which it is compared; `None` where Spark casts the column."""
        assert column.data_type is not None
        try:
            return coerce(literal, column.data_type, self._tz)
        except ValueError as exc:
            raise InvalidPredicateError(
                f"in {to_sql(expr)!r}: column {'.'.join(column.path)} is of type "
                f"{column.data_type}: {exc}"
            ) from None

    # Comparisons ---------------------------------------------------------------------------------

    def _truth(self, part: Expression, op: str, *, wanted: bool) -> Expression | None:
        column = self._column(part)
        if column is None or column.data_type != _BOOLEAN:
            return None
        return Comparison(op, column, Literal(wanted, _BOOLEAN))

    def _comparison(self, expr: Compare) -> Expression | None:
        left, right = self._column(expr.left), self._column(expr.right)
        if left is not None and right is not None:
            is_plain = comparable(left, right) and not fills_up(left, right, self._schema)
            return Comparison(expr.op, left, right) if is_plain else None
        op = expr.op if left is not None else FLIPPED.get(expr.op, expr.op)
        return self._with_value(op, left or right, expr.right if left else expr.left, expr)

    def _with_value(
        self, op: str, column: Column | None, value: Expression, expr: Expression
    ) -> Comparison | None:
        literal = None if column is None else self._literal(value)
        if column is None or literal is None:
            return None
        typed = self._coerced(literal, column, expr)
        return None if typed is None else Comparison(op, column, typed)

    def _in(self, expr: Among) -> Expression | None:
        column = self._column(expr.part)
        if column is None:
            return None
        values = []
        for item in expr.items:
            literal = item if isinstance(item, Literal) else self._literal(item)
            typed = None if literal is None else self._coerced(literal, column, expr)
            if typed is None:
                return None
            values.append(typed)
        # Spark compares all of a mixed list in one type, which may not be ours.
        same = unify(values)
        return In(column, same) if same else None

    def _between(self, expr: Between) -> Expression | None:
        column = self._column(expr.part)
        parts = [
            self._with_value(">=", column, expr.low, expr),
            self._with_value("<=", column, expr.high, expr),
        ]
        known = [each for each in parts if each is not None]
        if column is None or len(known) < len(parts):
            return None
        if self._is_char(column):
            # Unlike `>=` and `<=`, BETWEEN compares a CHAR with the text as it is.
            known = [replace(each, right=_exact(each.right)) for each in known]
        return join_and(known)

    def _is_char(self, column: Column) -> bool:
        limit = limit_of(self._schema.get(column.path[0])) if len(column.path) == 1 else None
        return limit is not None and limit.pads

    def _like(self, expr: Like) -> Expression | None:
        column, literal = self._column(expr.part), self._literal(expr.pattern)
        pattern = literal.value if literal is not None else None
        if column is None or column.data_type != _STRING or not isinstance(pattern, str):
            return None
        stem = pattern.removesuffix("%")
        if re.search(r"[%_\\]", stem):
            return None
        if stem != pattern:
            return StartsWith(column, stem)
        if self._is_char(column):
            return None  # LIKE, unlike `=`, counts the spaces.
        return Comparison("=", column, Literal(stem, _STRING))


def _exact(value: Any) -> Any:
    return replace(value, exact=True) if isinstance(value, Literal) else value


def _only_structs(path: tuple[str, ...], schema: StructType) -> bool:
    """Whether a path leads through structs only."""
    current: DataType = schema
    for part in path:
        if not isinstance(current, StructType):
            return isinstance(current, PrimitiveType | DecimalType)
        each = current.get(part)
        if each is None:
            return True
        current = each.data_type
    return True
