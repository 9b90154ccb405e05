"""Spark's errors about a text that was rewritten, with the place in the text as written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException, QueryContextType

from lakelog.spark.sql_statements.text.syntax_errors import marked_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.errors import QueryContext

_PLACE = re.compile(r"\bline \d+ pos \d+")
_OWN_COLUMNS = re.compile(r"(?:`[^`]*`\.)*`__lakelog_\w+`(?:, )?")
"""Columns that are there while a command runs, as Spark proposes them."""
_VIEW_NAMES = ("_pyspark_" + "0" * 32, "_pyspark_connect_temp_view_" + "0" * 32)
"""As long as the names that PySpark gives to views of DataFrames, in sessions of either kind."""


class PlacedAnalysisException(AnalysisException):
    """An `AnalysisException` of Spark's whose place is one in the user's text.

    What Spark raised is its cause, and answers all questions but those for the text.
    """

    def __init__(self, error: AnalysisException, sql: str, at: int) -> None:
        """Say the same of another text.

        Args:
            error: what Spark raised.
            sql: the user's text.
            at: the offset of the place in it.
        """
        line, column, shown = marked_place(sql, at)
        message = _PLACE.sub(f"line {line} pos {column - 1}", _OWN_COLUMNS.sub("", str(error)))
        message = message.replace(", ]. ", "]. ")
        super().__init__(
            message=f"{message.rstrip()}\n\n== SQL ==\n{shown}",
            errorClass=error.getCondition(),
            messageParameters=error.getMessageParameters(),
            contexts=error.getQueryContext(),
        )
        self.error = error
        """What Spark raised."""

    def __str__(self) -> str:
        return self._message

    def getMessage(self) -> str:  # noqa: N802  # PySpark's name
        """The text, which begins with the condition."""
        return self._message

    def getSqlState(self) -> str | None:  # noqa: N802  # PySpark's name
        """As Spark has it."""
        return self.error.getSqlState()


def placed(error: AnalysisException, sql: str, edits: Sequence[tuple[int, int, str]]) -> Exception:
    """The error for the text before some of its parts were replaced.

    Args:
        error: what Spark raised.
        sql: the text as it was.
        edits: start and end of what was replaced, in their order, and what stands there: a name in
            braces for the view of a DataFrame.

    Returns:
        The same error, if it does not say where it is.
    """
    found = _context(error)
    if found is None:
        return error
    start, fragment = found
    # The error does not say of which kind of session it is; the text does, as one of the two has
    # the fragment where the error says.
    for name in _VIEW_NAMES:
        text, places = _replaced(sql, edits, name)
        if text[start : start + len(fragment)] == fragment and fragment:
            return PlacedAnalysisException(error, sql, places[start])
    return error


def placed_by_words(error: AnalysisException, sql: str) -> Exception:
    """The error for the statement that an expression comes from.

    Args:
        error: what Spark raised, for the expression alone.
        sql: the statement.

    Returns:
        The same error, unless what it is about stands at one place of the statement.
    """
    found = None if isinstance(error, ParseException) else _context(error)
    if found is None or not found[1]:
        return error
    words = rf"(?<![\w`.]){re.escape(found[1])}(?![\w`])"
    places = [each.start() for each in re.finditer(words, sql)]
    # No place is better than a wrong one.
    if len(places) != 1:
        return error
    spark_s = error.error if isinstance(error, PlacedAnalysisException) else error
    return PlacedAnalysisException(spark_s, sql, places[0])


def _context(error: AnalysisException) -> tuple[int, str] | None:
    """Where in Spark's text the error is, and what stands there."""
    for each in error.getQueryContext():
        if _is_of_text(each):
            return each.startIndex(), each.fragment()
    return None


def _is_of_text(context: QueryContext) -> bool:
    return context.contextType() == QueryContextType.SQL and not context.objectType()


def _replaced(
    sql: str, edits: Sequence[tuple[int, int, str]], name: str
) -> tuple[str, Sequence[int]]:
    """The text as Spark had it, and for each character of it the place of the user's text."""
    text: list[str] = []
    places: list[int] = []
    for start, end, new in _with_kept(sql, edits):
        part = sql[start:end] if new is None else name if new.startswith("{") else new
        text.append(part)
        places += range(start, end) if new is None else [start] * len(part)
    return "".join(text), places


def _with_kept(
    sql: str, edits: Sequence[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str | None]]:
    at = 0
    for start, end, new in edits:
        yield at, start, None
        yield start, end, new
        at = end
    yield at, len(sql), None
