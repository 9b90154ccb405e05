"""Simple conditions of pyarrow as our own, which statistics and partition values answer.

An expression of pyarrow can't be inspected, but shown. What its text seems to say is built again,
and taken only where the result equals what was given. Numbers that may be NaN are left out: pyarrow
says of them what Spark does not.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelog.core.compute import pc
from lakelog.core.expressions.tree import And, Column, Comparison, In, IsNull, Literal, Not, Or
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import StructType

__all__ = ["plain_condition"]

_TOKEN = re.compile(
    r"\s*(\{nan_is_null=false\}|null_matching_behavior=MATCH\}|\{value_set=\w+:"
    r'|"[^"\\]*"|\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d\.\d{6}Z?)?|-?\d+|\w+|[<>!=]=|[<>]|[\[\](),])'
)
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_TYPES = tuple(
    PrimitiveType(name)
    for name in ("byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz")
)
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
    try:
        ours, theirs = _Reader(text, schema).whole()
        return ours if given.equals(theirs) else None
    except (_NotPlainError, ValueError):
        return None


class _NotPlainError(Exception):
    """The text has something else."""


class _Reader:
    def __init__(self, text: str, schema: StructType) -> None:
        self._schema = schema
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
                return self._is_in()
        raise _NotPlainError

    def _in_parentheses(self, level: int) -> _Both:
        following = self._tokens[-2:-1]
        if following and following[0] in _OPERATORS:
            name = self._column()
            operator = self._next()
            value = self._value()
            self._expect(")")
            ours = Comparison(
                "=" if operator == "==" else operator, Column((name,)), Literal(value)
            )
            return ours, _OPERATORS[operator](pc.field(name), value)
        left = self._condition(level + 1)
        word = self._next()
        right = self._condition(level + 1)
        self._expect(")")
        if word == "and":
            return And((left[0], right[0])), left[1] & right[1]
        if word == "or":
            return Or((left[0], right[0])), left[1] | right[1]
        raise _NotPlainError

    def _is_in(self) -> _Both:
        self._expect("(")
        name = self._column()
        self._expect(",")
        if not self._next().startswith("{value_set="):
            raise _NotPlainError
        self._expect("[")
        values = [self._value()]
        while (mark := self._next()) == ",":
            values.append(self._value())
        if mark != "]":
            raise _NotPlainError
        self._expect(",", "null_matching_behavior=MATCH}", ")")
        members = tuple(map(Literal, values))
        # Where pyarrow says false of null, and we say null, no row comes out either way; but the
        # opposite of the two differs.
        known = Not(IsNull(Column((name,))))
        return And((known, In(Column((name,)), members))), pc.field(name).isin(values)

    def _column(self) -> str:
        name = self._next()
        field = self._schema.get(name)
        if field is None or field.name != name or field.data_type not in _TYPES:
            raise _NotPlainError
        return name

    def _value(self) -> Any:
        text = self._next()
        if text.startswith('"'):
            return text[1:-1]
        if " " in text:
            return datetime.fromisoformat(text)
        return date.fromisoformat(text) if text[4:5] == "-" else int(text)

    def _next(self) -> str:
        if not self._tokens:
            raise _NotPlainError
        return self._tokens.pop()

    def _expect(self, *tokens: str) -> None:
        for each in tokens:
            if self._next() != each:
                raise _NotPlainError
