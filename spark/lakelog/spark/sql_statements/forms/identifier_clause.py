"""`IDENTIFIER(…)`: names that a statement computes, written out.

Spark evaluates them when it parses, before anyone could ask which table they name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.identifiers import parse, quoted_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakelog.spark.sql_statements.forms.parameters import Parameters
    from lakelog.spark.sql_statements.text.statement import Edit, Statement
    from lakelog.spark.sql_statements.text.tokens import Token


def written_out(
    parameters: Parameters, value: Callable[[str], Any]
) -> tuple[Statement, Any] | None:
    """The statement with the names in the places of `IDENTIFIER(…)`, and what is left of its args.

    Args:
        parameters: the statement with its parameters.
        value: evaluates the text of an expression.

    Returns:
        `None` if it has none, or one that can't be evaluated: Spark says what is wrong with it.
    """
    statement = parameters.statement
    tokens = statement.tokens
    found = list(_clauses(tokens))
    if not found:
        return None
    edits: list[Edit] = []
    try:
        for first, end in found:
            # Most are plain strings, which need no query.
            name = parameters.known_text(first + 2, end - 1)
            if name is None:
                name = value(parameters.text(first + 2, end - 1))
            if name is None:
                return None
            edits.append((tokens[first].start, tokens[end - 1].end, quoted_name(parse(name))))
    except (DeltaAnalysisError, PySparkException):
        return None
    return statement.replaced(edits), parameters.remaining(found)


def _clauses(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The first token of each, and the one after it."""
    at = 0
    while at + 1 < len(tokens):
        is_call = tokens[at].upper == "IDENTIFIER" and tokens[at + 1].text == "("
        if not is_call or (at and tokens[at - 1].text == "."):
            at += 1
            continue
        depth, end = 1, at + 2
        while end < len(tokens) and depth:
            depth += {"(": 1, ")": -1}.get(tokens[end].text, 0)
            end += 1
        if depth:
            return
        yield at, end
        at = end
