"""What a user may give a command: SQL text or Columns, checked before any file is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import Column
from pyspark.sql import functions as sf

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.values import as_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

__all__ = [
    "bare_text",
    "check_boolean",
    "check_expressions",
    "has_subquery",
    "names_another_frame",
    "refuse_as_join",
    "refuse_subquery",
    "refuse_subquery_about_rows",
    "text_of",
    "without_strings",
]

_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`", re.DOTALL)
_STRING = re.compile(r"(`(?:[^`]|``)*`)|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_SUBQUERY = re.compile(r"\(\s*(?:SELECT|WITH|VALUES|FROM|TABLE)\b", re.IGNORECASE)
_ABOUT_ROWS = re.compile(
    r"\b(?:IN|EXISTS)\s*\(\s*(?:SELECT|WITH|VALUES|FROM|TABLE)\b", re.IGNORECASE
)
# `DataFrame.scalar()` shows its columns and types in classic sessions, a word in Connect's.
_SUBQUERY_COLUMN = re.compile(r"\(\[[^\[\]]*: |\bSubqueryExpression\(|subquery")
_ABOUT_ROWS_COLUMN = re.compile(
    r"\b(?:IN|EXISTS) \(\[[^\[\]]*: |\btype=(?:exists|in)\b|\bexists\(|listquery"
)


def text_of(given: str | Column) -> str:
    """An expression as people know it."""
    if isinstance(given, str):
        return given
    return str(given).removeprefix("Column<'").removesuffix("'>")


def bare_text(given: str | Column) -> str:
    """The same without what is in quotes, to look for words of SQL in it."""
    return _QUOTED.sub("''", text_of(given))


def without_strings(given: str | Column) -> str:
    """The text of an expression with names in quotes, and with nothing in the strings."""
    return _STRING.sub(lambda each: each.group(1) or "''", text_of(given))


def refuse_subquery(given: str | Column, where: str, instead: str) -> None:
    """Refuse a query within an expression.

    Args:
        given: the expression.
        where: it stands, for the message: `DELETE`, `UPDATE clause of MERGE`.
        instead: what to do, as a sentence.

    Raises:
        DeltaAnalysisError: there is one.
    """
    if has_subquery(given):
        raise DeltaAnalysisError(
            f"[DELTA_UNSUPPORTED_SUBQUERY] Subqueries are not supported in the {where} "
            f"(condition = {text_of(given)}). {instead}",
            sql=text_of(given),
        )


def has_subquery(given: str | Column) -> bool:
    """Whether there is a query within an expression."""
    text = bare_text(given)
    # In SQL text the words of a Column may be names.
    return bool(
        _SUBQUERY.search(text) or (not isinstance(given, str) and _SUBQUERY_COLUMN.search(text))
    )


def refuse_subquery_about_rows(given: str | Column, where: str) -> None:
    """Refuse `IN (SELECT …)` and `EXISTS` in a new value, which may have a query for one value.

    Args:
        given: the value.
        where: it stands, for the message.

    Raises:
        DeltaAnalysisError: there is one.
    """
    text = bare_text(given)
    is_column = not isinstance(given, str)
    if _ABOUT_ROWS.search(text) or (is_column and _ABOUT_ROWS_COLUMN.search(text)):
        raise DeltaAnalysisError(
            "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_IN_EXISTS_SUBQUERY] A value in "
            f"the {where} may be a query for one value that does not depend on the row, but has "
            f"no IN or EXISTS of a query: {text_of(given)}. Join the query into the source of a "
            "MERGE.",
            sql=text_of(given),
        )


def check_boolean(given: str | Column, kind: str, what: str) -> None:
    """Refuse a condition that is none.

    Args:
        given: the condition.
        kind: its type, as people know it.
        what: it is: `condition of the DELETE`.

    Raises:
        DeltaAnalysisError: another type than boolean.
    """
    if kind != "boolean":
        raise DeltaAnalysisError(
            f"[DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN] the {what} {text_of(given)} is of the type "
            f"{kind}, and a condition must be boolean",
            sql=text_of(given),
        )


def names_another_frame(error: AnalysisException) -> bool:
    """Whether Spark refused a Column because it belongs to a DataFrame that is not read here."""
    found = error.getCondition() or ""
    return "DATAFRAME_COLUMN" in found or "ATTRIBUTES" in found


def refuse_as_join(rows: DataFrame, other: DataFrame, condition: Column) -> None:
    """Have Spark refuse what need not be the same when the rows are read twice.

    It accepts such expressions in a projection and a filter, but not in the condition of a join.

    Raises:
        AnalysisException: there is such an expression, or another that Spark can't resolve.
    """
    _ = rows.join(other, condition).schema


def check_expressions(
    rows: DataFrame, condition: str | Column | None, values: Sequence[str | Column], command: str
) -> None:
    """Refuse expressions that DELETE and UPDATE can't have.

    Args:
        rows: what the expressions see.
        condition: which rows are meant.
        values: what columns are set to.
        command: for messages.

    Raises:
        DeltaAnalysisError: a subquery in the condition, one about rows in a value, or a condition
            that is not boolean.
        AnalysisException: a name that is unknown or ambiguous, a function that is not
            deterministic, a subquery that depends on the row, or another expression that Spark
            can't resolve.
    """
    given = [*([] if condition is None else [condition]), *values]
    if condition is not None:
        refuse_subquery(condition, command, "Use MERGE, whose source may be any query.")
    for each in values:
        refuse_subquery_about_rows(each, command)
    try:
        _check_by_spark(rows, condition, given, command)
    except AnalysisException as exc:
        if names_another_frame(exc):
            exc.add_note(
                "A column of another DataFrame, df['x'], is none of the table's rows here (in a "
                "classic session, one of this DeltaTable's toDF() is, while the table has the "
                "same columns): name it, as functions.col('x') or in SQL."
            )
        raise


def _check_by_spark(
    rows: DataFrame, condition: str | Column | None, given: Sequence[str | Column], command: str
) -> None:
    if condition is not None:
        kind = rows.select(as_column(condition)).schema.fields[0].dataType
        check_boolean(condition, kind.simpleString(), f"condition of the {command},")
    if given:
        whole = as_column(given[0]).isNull()
        for each in given[1:]:
            whole |= as_column(each).isNull()
        other = rows.sparkSession.range(1).select(sf.col("id").alias("__lakelog_other"))
        refuse_as_join(rows, other, whole)
