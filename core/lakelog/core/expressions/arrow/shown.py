"""Simple conditions of pyarrow as our own, which statistics and partition values answer.

An expression of pyarrow can't be inspected, but shown. What its text seems to say is built again,
and taken only where the result equals what was given: with values as Python has them or, as DuckDB
gives them, in the types of the columns.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.compute import pc
from lakelog.core.expressions.tree import And, Column, Comparison, In, IsNull, Literal, Not, Or
from lakelog.core.schema import DecimalType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import DataType, StructType

_TOKEN = re.compile(
    r"\s*(\{nan_is_null=false\}|null_matching_behavior=MATCH\}|null\[bool\]"
    r"|\{value_set=\w+(?:\[\w+\])?:"
    r'|"[^"\\]*"|\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d\.\d{6}Z?)?'
    r"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\w+|[<>!=]=|[<>]|[\[\](),])"
)
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), datetime.fromisoformat),
    "date": date.fromisoformat,
}
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_MOST_TEXT = 20_000
_MOST_LEVELS = 50

_Both: TypeAlias = "tuple[Expression, Any]"
"""A condition as ours, and as pyarrow's."""


def plain_condition(given: Any, schema: StructType) -> Expression | None:
    """The same condition, not bound yet; `None` for one that has other parts than comparisons.

    Args:
        given: a `pyarrow.compute.Expression`.
        schema: the table's.
    """
    text = str(given)
    if len(text) > _MOST_TEXT:
        return None
    for in_types in (False, True):
        try:
            ours, theirs = _Reader(text, schema, in_types=in_types).whole()
        except (_NotPlainError, ValueError, ArithmeticError, pa.ArrowException):
            return None
        if given.equals(theirs):
            return ours
    return None


class _NotPlainError(Exception):
    """The text has something else."""


class _Reader:
    def __init__(self, text: str, schema: StructType, *, in_types: bool) -> None:
        self._schema = schema
        self._in_types = in_types
        self._tokens: list[str] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise _NotPlainError
            self._tokens.append(found[1])
            at = found.end()
        self._tokens.reverse()

    def whole(self) -> _Both:
        found = self._condition(0)
        if self._tokens:
            raise _NotPlainError
        return found

    def _condition(self, level: int) -> _Both:
        if level > _MOST_LEVELS:
            raise _NotPlainError
        match self._next():
            case "(":
                return self._in_parentheses(level)
            case "invert":
                self._expect("(")
                ours, theirs = self._condition(level + 1)
                self._expect(")")
                return Not(ours), ~theirs
            case "is_null":
                self._expect("(")
                name = self._column()
                self._expect(",", "{nan_is_null=false}", ")")
                return IsNull(Column((name,))), pc.field(name).is_null()
            case "is_valid":
                self._expect("(")
                name = self._column()
                self._expect(")")
                return Not(IsNull(Column((name,)))), pc.field(name).is_valid()
            case "is_in":
                name, members, theirs = self._is_in()
                # Where pyarrow says false of null, and we say null, no row comes out either way;
                # but the opposite of the two differs.
                return And((Not(IsNull(Column((name,)))), members)), theirs
            case "if_else":
                return self._is_in_or_null()
        raise _NotPlainError

    def _in_parentheses(self, level: int) -> _Both:
        following = self._tokens[-2:-1]
        if following and following[0] in _OPERATORS:
            return self._comparison()
        left = self._condition(level + 1)
        word = self._next()
        right = self._condition(level + 1)
        self._expect(")")
        if word == "and":
            return And((left[0], right[0])), left[1] & right[1]
        if word == "or":
            return Or((left[0], right[0])), left[1] | right[1]
        raise _NotPlainError

    def _comparison(self) -> _Both:
        name = self._column()
        column, operator = Column((name,)), self._next()
        value, given = self._value(name)
        self._expect(")")
        theirs = _OPERATORS[operator](pc.field(name), given)
        literal = Literal(value, exact=True)
        ours: Expression = Comparison("=" if operator == "==" else operator, column, literal)
        if operator in (">", ">=") and self._type(name) in _FLOATS:
            # To pyarrow NaN is not greater than a number.
            ours = And((ours, Comparison("<", column, Literal(math.nan))))
        return ours, theirs

    def _is_in(self) -> tuple[str, Expression, Any]:
        self._expect("(")
        name = self._column()
        if self._type(name) in _FLOATS:
            raise _NotPlainError
        self._expect(",")
        if not self._next().startswith("{value_set="):
            raise _NotPlainError
        self._expect("[")
        values = [self._value(name)]
        while (mark := self._next()) == ",":
            values.append(self._value(name))
        if mark != "]":
            raise _NotPlainError
        self._expect(",", "null_matching_behavior=MATCH}", ")")
        plain = [value for value, _ in values]
        given = array_of(plain, self._arrow(name)) if self._in_types else plain
        members = In(Column((name,)), tuple(Literal(each, exact=True) for each in plain))
        return name, members, pc.field(name).isin(given)

    def _is_in_or_null(self) -> _Both:
        """As DuckDB spells IN: null where the value is."""
        self._expect("(", "is_valid", "(")
        name = self._column()
        self._expect(")", ",", "is_in")
        again, ours, theirs = self._is_in()
        self._expect(",", "null[bool]", ")")
        if again != name:
            raise _NotPlainError
        nothing = pa.scalar(None, pa.bool_())
        return ours, pc.if_else(pc.field(name).is_valid(), theirs, nothing)

    def _column(self) -> str:
        name = self._next()
        field = self._schema.get(name)
        if field is None or field.name != name:
            raise _NotPlainError
        kind = field.data_type
        is_read = isinstance(kind, PrimitiveType) and kind.name in ("string", *_READERS)
        if not is_read and not isinstance(kind, DecimalType):
            raise _NotPlainError
        return name

    def _type(self, name: str) -> DataType:
        found = self._schema.get(name)
        assert found is not None
        return found.data_type

    def _arrow(self, name: str) -> pa.DataType:
        return to_arrow_type(self._type(name))

    def _value(self, name: str) -> tuple[Any, Any]:
        """A value for us, and one for pyarrow."""
        text, kind = self._next(), self._type(name)
        if kind == PrimitiveType("string"):
            if not text.startswith('"'):
                raise _NotPlainError
            value: Any = text[1:-1]
        elif isinstance(kind, DecimalType):
            value = Decimal(text)
        else:
            assert isinstance(kind, PrimitiveType)
            value = _READERS[kind.name](text)
        if value != value:  # NaN
            raise _NotPlainError
        if not self._in_types:
            return value, value
        scalar = scalar_of(value, self._arrow(name))
        return scalar.as_py(), scalar

    def _next(self) -> str:
        if not self._tokens:
            raise _NotPlainError
        return self._tokens.pop()

    def _expect(self, *tokens: str) -> None:
        for each in tokens:
            if self._next() != each:
                raise _NotPlainError
