"""A Column as SQL text, so that what it says of files and partitions can be understood.

A Column has no public form but the one it is printed in: `and(=(t.p, 'x'), <(n, 5))`, where quotes
within strings are not escaped, and, in Connect's, strings have none. So the text that is made of it
is only a guess, until Spark says that a filter by the text and one by the Column mean the same.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from lakelog.spark.dml.expressions import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

__all__ = ["sql_of"]

_BETWEEN = {
    **{each: each for each in ("=", "<", "<=", ">", ">=", "!=", "<=>", "+", "-", "/", "%")},
    "*": "*",
    "==": "=",
    "and": "AND",
    "or": "OR",
    "like": "LIKE",
}
_AFTER = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_CALL = re.compile(r"([^\s('`\"]+)\((.*)\)", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORDS = ("true", "false", "null")


def sql_of(given: str | Column, rows: DataFrame) -> str | None:
    """The SQL of a condition.

    Args:
        given: SQL text, which stays as it is, or a Column.
        rows: what it sees; none of them is read.

    Returns:
        `None` where it is a Column, and no text is known that means the same.
    """
    if isinstance(given, str):
        return given
    printed = text_of(given)
    # `expr` prints what it was given.
    if _means(rows, given, printed):
        return printed
    with suppress(RecursionError):
        text = _sql(printed, {name.lower() for name in rows.columns})
        if text is not None and _means(rows, given, text):
            return text
    return None


def _means(rows: DataFrame, given: Column, text: str) -> bool:
    try:
        return rows.where(given).sameSemantics(rows.where(sf.expr(text)))
    except PySparkException:
        return False


def _sql(text: str, known: set[str]) -> str | None:
    """What is printed, as SQL."""
    text = text.strip()
    call = _CALL.fullmatch(text)
    if call is None:
        return _atom(text, known)
    name, inside = call.group(1).lower(), call.group(2)
    if name == "cast":
        value, _, kind = inside.rpartition(" AS ")
        sql = _sql(value, known)
        return None if sql is None else f"CAST({sql} AS {kind})"
    parts = [_sql(each, known) for each in _arguments(inside)]
    given = [each for each in parts if each is not None]
    if not given or len(given) < len(parts):
        return None
    if name in _AFTER and len(given) == 1:
        return f"({given[0]} {_AFTER[name]})"
    if name in ("!", "not") and len(given) == 1:
        return f"(NOT {given[0]})"
    if name in _BETWEEN and len(given) == 2:
        return f"({given[0]} {_BETWEEN[name]} {given[1]})"
    if name == "in" and len(given) > 1:
        return f"({given[0]} IN ({', '.join(given[1:])}))"
    return f"{name}({', '.join(given)})" if name.isidentifier() else None


def _arguments(text: str) -> Iterator[str]:
    """What stands between the commas that are in no parentheses and no quotes."""
    depth, start, quote = 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'`":
            quote = char
        elif char == "," and not depth:
            yield text[start:at]
            start = at + 1
        depth += 0 if quote else (char == "(") - (char == ")")
    yield text[start:]


def _atom(text: str, known: set[str]) -> str | None:
    """A literal or the name of a column."""
    if _NUMBER.fullmatch(text) or text.lower() in _WORDS:
        return text
    if _DATE.fullmatch(text):
        return f"DATE '{text}'"
    if text.startswith("'"):
        return _string(text[1:-1]) if text.endswith("'") and len(text) > 1 else None
    if text.startswith("`"):
        return text
    if _NAME.fullmatch(text) and not known.isdisjoint(text.lower().split(".")):
        return text
    return _string(text)


def _string(value: str) -> str | None:
    # Others are spelled in ways that depend on the session.
    return None if "'" in value or "\\" in value else f"'{value}'"
