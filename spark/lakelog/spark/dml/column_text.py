"""A Column as SQL text, so that what it says of files and partitions can be understood.

A Column has no public form but the one it is printed in: `and(=(t.p, 'x'), <(n, 5))`, where quotes
within strings are not escaped, and, in Connect's, strings have none. So the text that is made of it
is only a guess, until Spark says that the text and the Column mean the same.
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
from lakelog.spark.session.unlogged import unlogged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
_NUMBER = re.compile(r"-?\d+(?:\.\d+|L)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORDS = ("true", "false", "null")


def as_texts(given: Sequence[str | Column], rows: DataFrame) -> list[str | Column]:
    """Expressions with SQL text in the place of each Column of which one is known to mean the same.

    From there on both forms go the same ways; what stays a Column is Spark's alone.

    Args:
        given: SQL texts, which stay as they are, and Columns.
        rows: what the expressions see; none of them is read.
    """
    columns = [each for each in given if not isinstance(each, str)]
    if not columns:
        return list(given)
    known = Counter(name.lower() for name in rows.columns)
    guesses = {id(each): _guesses(each, known) for each in columns}
    firsts = [(each, text) for each in columns for text in guesses[id(each)][:1]]
    # All of them are asked about at once, since most guesses are right; else each of them alone.
    if len(firsts) > 1 and _mean_the_same(firsts, rows):
        found = {id(each): text for each, text in firsts}
    else:
        found = {
            id(each): text
            for each in columns
            for text in guesses[id(each)][::-1]
            if _mean_the_same([(each, text)], rows)
        }
    return [found.get(id(each), each) for each in given]


def _guesses(column: Column, known: Mapping[str, int]) -> list[str]:
    """What may be the text of a Column, the likeliest first."""
    printed = text_of(column)
    if printed.upper() == "DEFAULT":
        return []  # as a text it would stand for the default of the column that is set
    # `expr` prints what it was given.
    texts: list[str | None] = [] if _is_call(printed) else [printed]
    with suppress(RecursionError):
        texts += [_sql(printed, _Known(known, fraction)) for fraction in ("", "D")]
    return list(dict.fromkeys(text for text in texts if text is not None))


def _mean_the_same(pairs: Sequence[tuple[Column, str]], rows: DataFrame) -> bool:
    """Whether Spark's analysis makes the same of Columns and of texts."""
    with unlogged(), suppress(PySparkException, RecursionError):
        columns = rows.select(*(each.alias(f"c{i}") for i, (each, _) in enumerate(pairs)))
        texts = rows.select(*(sf.expr(text).alias(f"c{i}") for i, (_, text) in enumerate(pairs)))
        return columns.sameSemantics(texts)
    return False


@dataclass(frozen=True, slots=True)
class _Known:
    columns: Mapping[str, int]
    """Names, and how many have them."""
    fraction: str = ""
    """What is after a number with a point: such a text is a decimal, and a `float` prints alike."""


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


def _atom(text: str, known: _Known) -> str | None:
    """A literal or the name of a column."""
    if _NUMBER.fullmatch(text):
        return text + known.fraction if "." in text else text
    if text.lower() in _WORDS:
        return text
    if _DATE.fullmatch(text):
        return f"DATE '{text}'"
    if _TIME.fullmatch(text):
        return f"TIMESTAMP '{text}'"
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
