"""A Column as SQL text, so that what it says of files and partitions can be understood.

A Column has no public form but the one it is printed in: `and(=(t.p, 'x'), <(n, 5))`, where quotes
within strings are not escaped, and, in Connect's, strings have none. So the text that is made of it
is only a guess, until Spark says that a filter by the text and one by the Column mean the same.
What can only be wrong is not asked about: PySpark logs each expression that it can't resolve.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from lakelog.spark.dml.given_expressions import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame

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
_QUOTED = re.compile(r"'[^']*'|`[^`]*`")
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
    known = _Known(
        Counter(name.lower() for name in rows.columns), rows.sparkSession.catalog.functionExists
    )
    printed = text_of(given)
    with suppress(PySparkException, RecursionError):
        # `expr` prints what it was given.
        text = _sql(printed, known) if _is_call(printed) else printed
        if text is not None and rows.where(given).sameSemantics(rows.where(sf.expr(text))):
            return text
    return None


@dataclass(frozen=True, slots=True)
class _Known:
    columns: Mapping[str, int]
    """Names, and how many have them."""
    is_function: Callable[[str], bool]


def _is_call(text: str) -> bool:
    """Whether a text is `name(…)` as a whole: its first parenthesis is closed by its last."""
    call = _CALL.fullmatch(text)
    if call is None:
        return False
    depth = 0
    for char in _QUOTED.sub("", call.group(2)):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return True


def _sql(text: str, known: _Known) -> str | None:
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
    is_function = name.isidentifier() and known.is_function(name)
    return f"{name}({', '.join(given)})" if is_function else None


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


def _atom(text: str, known: _Known) -> str | None:
    """A literal or the name of a column."""
    if _NUMBER.fullmatch(text) or text.lower() in _WORDS:
        return text
    if _DATE.fullmatch(text):
        return f"DATE '{text}'"
    if text.startswith("'"):
        return _string(text[1:-1]) if text.endswith("'") and len(text) > 1 else None
    if text.startswith("`"):
        return text
    parts = text.lower().split(".")
    if _NAME.fullmatch(text) and not known.columns.keys().isdisjoint(parts):
        return None if known.columns.get(text.lower(), 0) > 1 else text
    return _string(text)


def _string(value: str) -> str | None:
    # Others are spelled in ways that depend on the session.
    return None if "'" in value or "\\" in value else f"'{value}'"
