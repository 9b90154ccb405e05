"""Binding a condition to a schema: the column of each name, and the type in which values compare.

What statistics can answer gets a node of its own. A bound condition must never be narrower than
what Spark would evaluate: what is not a comparison of a column with a value is computed row by row,
and what can't be computed here is left `Opaque`.

Types follow Spark's rules for ANSI mode, its default: a literal is brought to the column's type
where that loses nothing, integers and fractions meet as decimals or doubles, text is parsed as the
column's type. Where Spark would cast the *column* instead, text is computed, and a `Comparison` or
an `In` that a user built is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lakelog.core.arrow.partitions import parse_value
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
from lakelog.core.expressions.context import DEFAULTS, EvalContext
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    FLIPPED,
    OPERATORS,
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
from lakelog.core.expressions.values.typed import is_now
from lakelog.core.schema import DecimalType, PrimitiveType, StructType
from lakelog.core.schema.column_paths import dotted, unknown_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.schema import DataType

_BOOLEAN, _VOID = PrimitiveType("boolean"), PrimitiveType("void")
_STRING, _TIMESTAMP = PrimitiveType("string"), PrimitiveType("timestamp")
_TIMES: Final = tuple(map(PrimitiveType, ("date", "timestamp", "timestamp_ntz")))
_NO_LITERALS: Final = tuple(map(PrimitiveType, ("boolean", "string", "binary", "variant")))


def bind(expr: Expression, schema: StructType, context: EvalContext = DEFAULTS) -> Expression:
    """Resolve the columns of a tree and type its literals.

    Args:
        expr: as users build it, or as the parser made it; one that is bound stays as it is.
        schema: of the rows.
        context: of the evaluation; without a time, functions of the current one are left to Spark.

    Raises:
        InvalidPredicateError: an unknown column, an unknown operator, a string that is not a value
            of the column's type, or a `Comparison` or `In` of types that can't be compared.
            Fields: `position` of an unknown column in a text, 0-based.
    """
    return _Binder(schema, context).bind(expr)


class _Binder:
    """One walk over AND, OR and NOT, and what each of their parts is."""

    def __init__(self, schema: StructType, context: EvalContext) -> None:
        self._schema = schema
        self._context = context
        self._tz = context.session_tz

    def bind(self, expr: Expression) -> Expression:
        match expr:
            case And(()) | Or(()):
                # A condition that a loop built from nothing would match every row, or none.
                raise InvalidPredicateError(
                    "And and Or need at least one condition; Literal(True) means all rows"
                )
            case And(parts):
                return join_and(map(self.bind, parts))
            case Or(parts):
                return join_or(map(self.bind, parts))
            case Not(part):
                return Not(self.bind(part))
            case Literal(bool() | None):
                return Literal(expr.value, _BOOLEAN if expr.value is not None else None)
            case Computed():
                return expr
            case Opaque(names=()):
                return expr
            case Comparison() | In() | IsNull() | StartsWith():
                return self._built(expr)
            case _:
                return self._simple(expr) or self._computed(expr) or self._opaque(expr)

    # What users build, and what is bound already ----------------------------

    def _built(self, expr: Comparison | In | IsNull | StartsWith) -> Expression:
        column = self._built_column(expr.left if isinstance(expr, Comparison) else expr.column)
        match expr:
            case Comparison(op) if op not in OPERATORS:
                known = ", ".join(OPERATORS)
                raise InvalidPredicateError(f"unknown operator {op!r}; known: {known}")
            case Comparison(op, _, Column() as right):
                other = self._built_column(right)
                found = self._of_columns(op, column, other)
                if found is None:
                    raise _incomparable(column, str(other.data_type), dotted(other.path))
                return found
            case Comparison(op, _, Literal() as right):
                if self._is_undecided(column, [right]):
                    return Opaque(to_sql(Comparison(op, column, right)), frozenset([column.path]))
                ((op, value),) = self._compared(op, column, [right])
                return Comparison(op, column, value)
            case In(given, values):
                is_bound = column == given and all(v.data_type or v.value is None for v in values)
                if is_bound and char_limit(column, self._schema) is None:
                    return expr  # and it may be long
                if self._is_undecided(column, values):
                    return Opaque(to_sql(In(column, values)), frozenset([column.path]))
                listed = [value for _, value in self._compared("=", column, values)]
                same = unify(listed)
                if not same:
                    return join_or(Comparison("=", column, each) for each in listed)
                return In(column, same)
            case StartsWith(_, prefix):
                if column.data_type != _STRING:
                    raise _incomparable(column, "string", repr(prefix))
                return StartsWith(column, prefix)
            case _:
                return IsNull(column)

    def _built_column(self, given: Column) -> Column:
        found = resolve(given.path, self._schema)
        if found is None:
            raise unknown_column(given.path, self._schema)
        return found

    def _is_undecided(self, column: Column, given: Sequence[Literal]) -> bool:
        """Whether the engine has to say what time is meant."""
        return column.data_type == _TIMESTAMP and any(
            is_undecided(each.value, self._tz) for each in given
        )

    def _compared(
        self, op: str, column: Column, given: Sequence[Literal]
    ) -> Iterator[tuple[str, Literal]]:
        """How a column is compared with values, which a CHAR fills up."""
        limit = char_limit(column, self._schema)
        for literal, value in zip(given, self._coerced(column, given), strict=True):
            if value is None:
                raise _incomparable(column, type(literal.value).__name__, _shown(literal.value))
            if literal.exact:
                yield op, replace(value, exact=True)
            elif limit is None or not isinstance(value.value, str):
                yield op, value
            else:
                changed, text = limit.compared(op, value.value)
                yield changed, Literal(text, value.data_type)

    # What statistics answer ----------------------------

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

    def _truth(self, part: Expression, op: str, *, wanted: bool) -> Expression | None:
        column = self._column(part)
        if column is None or column.data_type != _BOOLEAN:
            return None
        return Comparison(op, column, Literal(wanted, _BOOLEAN))

    def _comparison(self, expr: Compare) -> Expression | None:
        left, right = self._column(expr.left), self._column(expr.right)
        if left is not None and right is not None:
            return self._of_columns(expr.op, left, right)
        op = expr.op if left is not None else FLIPPED.get(expr.op, expr.op)
        column, value = left or right, expr.right if left else expr.left
        found = None if column is None else self._beside(column, [value], expr)
        return Comparison(op, column, found[0]) if column and found else None

    def _of_columns(self, op: str, first: Column, second: Column) -> Expression | None:
        if not comparable(first, second):
            return None
        if not fills_up(first, second, self._schema):
            return Comparison(op, first, second)
        both = (Name(each.path, quoted=True) for each in (first, second))
        return self._computed(Compare(op, *both))

    def _in(self, expr: Among) -> Expression | None:
        column = self._column(expr.part)
        if column is None:
            return None
        # Spark compares all of a mixed list in one type, which may not be ours.
        same = unify(self._beside(column, expr.items, expr))
        return In(column, same) if same else None

    def _between(self, expr: Between) -> Expression | None:
        column = self._column(expr.part)
        if column is None:
            return None
        found = self._beside(column, [expr.low, expr.high], expr)
        if not found:
            return None
        if char_limit(column, self._schema) is not None:
            # Unlike `>=` and `<=`, BETWEEN compares a CHAR with the text as it is.
            found = [replace(each, exact=True) for each in found]
        low, high = found
        return And((Comparison(">=", column, low), Comparison("<=", column, high)))

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
        if char_limit(column, self._schema) is not None:
            return None  # LIKE, unlike `=`, counts the spaces.
        return Comparison("=", column, Literal(stem, _STRING))

    # What is evaluated row by row, or not here ----------------------------

    def _computed(self, expr: Expression) -> Expression | None:
        columns = self._columns(expr)
        if columns is None:
            return None
        if not columns:
            constant = constant_of(expr, self._context)
            if constant is None or constant.data_type not in (_BOOLEAN, _VOID):
                return None
            return Literal(constant.of(None).as_py(), _BOOLEAN)
        if value_type("", self._schema, self._context, root=expr) != _BOOLEAN:
            return None
        asks_now = any(map(is_now, (*calls(expr), *(each.path[0] for each in names(expr)))))
        context = self._context if asks_now else self._context.timeless
        return Computed(to_sql(expr), columns, context, root=expr)

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

    # Columns and values ----------------------------

    def _is_now(self, name: Expression) -> bool:
        """`current_date` without parentheses, which a column of that name hides."""
        if not isinstance(name, Name) or len(name.path) != 1 or name.quoted:
            return False
        return is_now(name.path[0]) and resolve(name.path, self._schema) is None

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
        found = constant_of(expr, self._context)
        if found is None:
            return None
        try:
            value = found.of(None).as_py()
        except (OverflowError, ValueError):
            return None  # A time that Python can't represent; Arrow compares with it.
        if found.data_type == _VOID or value is None:
            return Literal(None)
        is_decimal = isinstance(found.data_type, DecimalType)
        return Literal(value) if is_decimal else Literal(value, found.data_type)

    def _beside(
        self, column: Column, values: Sequence[Expression], expr: Expression
    ) -> list[Literal]:
        """Values in the type in which they are compared; none where that of one is not known."""
        literals = []
        for each in values:
            literal = each if isinstance(each, Literal) else self._literal(each)
            if literal is None:
                return []
            literals.append(literal)
        found = self._coerced(column, literals, expr)
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else []

    def _coerced(
        self, column: Column, given: Sequence[Literal], expr: Expression | None = None
    ) -> list[Literal | None]:
        """Literals in the type in which they are compared; `None` where Spark casts the column."""
        kind, zone = column.data_type, self._tz
        assert kind is not None
        try:
            return [coerce(each, kind, zone) for each in given]
        except ValueError as exc:
            where = "" if expr is None else f"in {to_sql(expr)!r}: "
            raise InvalidPredicateError(
                f"{where}column {dotted(column.path)} is of type {kind}: {exc}"
            ) from None


def _incomparable(left: Column, kind: str, what: str) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"column {dotted(left.path)} of type {left.data_type} can't be compared with {what} "
        f"of type {kind}"
    )


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"  # for which Python has no text


def _only_structs(path: Sequence[str], schema: StructType) -> bool:
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
