"""How deeply a condition may nest, and the error for one that nests deeper.

Filters are walked by functions that call themselves, sqlglot's parser among them, which takes
some seventeen frames for a pair of parentheses. Python ends that with a `RecursionError` that
names neither the filter nor a remedy.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.core.errors import InvalidPredicateError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LEVELS = 150
"""Levels of a tree: a walk with three frames per level fits Python's usual limit."""
_SHOWN = 60


@contextmanager
def explained_depth(sql: str) -> Iterator[None]:
    """Turn Python's `RecursionError` for deeply nested SQL into an error that says what to do.

    Raises:
        InvalidPredicateError: the SQL nests deeper than the stack has room for. Fields: `levels`,
            of parentheses.
    """
    try:
        yield
    except RecursionError:
        levels = _levels_of(sql)
        limit = sys.getrecursionlimit()
        raise InvalidPredicateError(
            f"the condition {_shortened(sql)!r} nests too deeply: {levels} levels of parentheses, "
            f"and Python's limit of {limit} frames (sys.setrecursionlimit) leaves room for about "
            f"{limit // 25}. Remove redundant parentheses, list values with IN, or pass the parts "
            "as a list of tuples.",
            levels=levels,
            limit=limit // 25,
        ) from None


def check_levels(levels: int) -> None:
    """Refuse a tree of too many levels.

    Raises:
        InvalidPredicateError: it has more than `MAX_LEVELS`.
    """
    if levels > MAX_LEVELS:
        raise InvalidPredicateError(
            f"the filter nests {levels} levels of AND, OR and NOT, and the limit is {MAX_LEVELS}; "
            "And(…) and Or(…) take any number of conditions on one level",
            levels=levels,
            limit=MAX_LEVELS,
        )


def _levels_of(sql: str) -> int:
    """The maximum number of open parentheses; those inside strings count too."""
    most = depth = 0
    for char in sql:
        depth += (char == "(") - (char == ")")
        most = max(most, depth)
    return most


def _shortened(sql: str) -> str:
    return sql if len(sql) <= _SHOWN else f"{sql[:_SHOWN]}…"
