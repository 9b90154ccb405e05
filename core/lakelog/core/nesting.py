"""How deep a condition may nest, and what is said of one that goes deeper.

Filters are walked by functions that call themselves, sqlglot's parser among them, which takes
some seventeen frames for a pair of parentheses. Python ends that with a `RecursionError` that
names neither the filter nor the way out.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.core.errors import InvalidPredicateError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_LEVELS", "check_levels", "explained_depth"]

MAX_LEVELS = 150
"""Of a tree: so many that a walk with three frames a level fits Python's usual limit."""
_SHOWN = 60


@contextmanager
def explained_depth(sql: str) -> Iterator[None]:
    """Turn Python's end of a recursion over some SQL into an error that says what to do.

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
            f"{limit // 25}. Take out parentheses that say nothing, list values with IN, or give "
            "the parts as a list of tuples.",
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
            f"the filter nests {levels} levels of AND, OR and NOT, and {MAX_LEVELS} are the limit; "
            "And(…) and Or(…) take any number of parts side by side",
            levels=levels,
            limit=MAX_LEVELS,
        )


def _levels_of(sql: str) -> int:
    """The most parentheses that are open at once; those in texts count too."""
    most = depth = 0
    for char in sql:
        depth += (char == "(") - (char == ")")
        most = max(most, depth)
    return most


def _shortened(sql: str) -> str:
    return sql if len(sql) <= _SHOWN else f"{sql[:_SHOWN]}…"
