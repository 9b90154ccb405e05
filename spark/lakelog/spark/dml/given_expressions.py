"""What a user may give a command: SQL text or Columns, checked before any file is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Never

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column
from pyspark.sql import functions as sf

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.merge.clause_values import as_column
from lakelog.spark.reading.row_positions import METADATA
from lakelog.spark.session.unlogged import analyse, unlogged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from lakelog.core.schema import StructType

_QUERY_WORD = re.compile(r"\b(?:SELECT|FROM|TABLE|VALUES|MAP|REDUCE)\b", re.IGNORECASE)
"""Every query in SQL text has one of these; so have names, strings and comments."""
_IN_LAMBDA = "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.HIGHER_ORDER_FUNCTION"
_REFUSED_QUERIES = {
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_IN_EXISTS_SUBQUERY": (
        "and not IN or EXISTS of a query"
    ),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY": (
        "and this one does"
    ),
}


def text_of(given: str | Column) -> str:
    """An expression as people know it: for messages and histories, and to judge nothing by."""
    if isinstance(given, str):
        return given
    return str(given).removeprefix("Column<'").removesuffix("'>")


def may_ask_metadata(given: Iterable[object], schema: StructType) -> bool:
    """Whether expressions may mean Spark's `_metadata`, the facts about the file of each row.

    Args:
        given: SQL texts, Columns, or nothing.
        schema: the table's, which may have a column of that name.
    """
    if schema.get(METADATA) is not None:
        return False
    expressions = [each for each in given if isinstance(each, str | Column)]
    return any(METADATA in text_of(each).lower() for each in expressions)


def subqueries_in(rows: DataFrame, given: Iterable[str | Column]) -> list[str | Column]:
    """The expressions within which there is a query, as Spark's analysis has it.

    Spark refuses a query within a lambda, by a condition of its own: so each is put into one. What
    it can't resolve does not count as a query here, and is refused where the expression is used.

    Args:
        rows: what the expressions see.
        given: the expressions.
    """
    asked = [each for each in given if not isinstance(each, str) or _QUERY_WORD.search(each)]
    if not asked or _in_lambda(rows, asked) is None:
        return []
    return [each for each in asked if _in_lambda(rows, [each]) == _IN_LAMBDA]


def _in_lambda(rows: DataFrame, given: Sequence[str | Column]) -> str | None:
    """The condition by which Spark refuses expressions in a lambda, empty for one unnamed."""
    try:
        with unlogged():
            whole = sf.struct(*map(as_column, given))
            analyse(rows.select(sf.transform(sf.array(sf.lit(0)), lambda _: whole)))
    except (AnalysisException, ParseException) as exc:
        return exc.getCondition() or ""
    return None


def refuse_subquery(given: str | Column, where: str, instead: str) -> Never:
    """Refuse an expression with a query within it.

    Args:
        given: the expression.
        where: it stands, for the message: `DELETE`, `UPDATE clause of MERGE`.
        instead: what to do, as a sentence.

    Raises:
        DeltaAnalysisError: always.
    """
    raise DeltaAnalysisError(
        f"[DELTA_UNSUPPORTED_SUBQUERY] Subqueries are not supported in the {where} "
        f"(condition = {text_of(given)}). {instead}",
        sql=text_of(given),
    )


def refuse_subquery_about_rows(rows: DataFrame, given: str | Column, where: str) -> None:
    """Refuse a new value with a query, unless that is for one value, the same for all rows.

    An order takes no other query.

    Args:
        rows: what the value sees.
        given: the value, which has a query within it.
        where: it stands, for the message.

    Raises:
        DeltaAnalysisError: `IN (SELECT …)`, `EXISTS`, or a query that depends on the row.
        AnalysisException: something else that an order does not take.
    """
    try:
        analyse(rows.orderBy(as_column(given).isNull()))
    except AnalysisException as exc:
        said = _REFUSED_QUERIES.get(exc.getCondition() or "")
        if said is None:
            raise
        raise DeltaAnalysisError(
            f"[{exc.getCondition()}] A value in the {where} may be a query for one value that does "
            f"not depend on the row, {said}: {text_of(given)}. Join the query into the source of a "
            "MERGE.",
            sql=text_of(given),
        ) from exc


def check_boolean(given: str | Column, kind: str, what: str) -> None:
    """Refuse a condition that is not boolean.

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
    analyse(rows.join(other, condition))


def check_expressions(
    rows: DataFrame, condition: str | Column | None, values: Sequence[str | Column], command: str
) -> None:
    """Refuse expressions that DELETE and UPDATE can't have.

    Args:
        rows: what the expressions see.
        condition: of the rows that change.
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
    queries = subqueries_in(rows, given)
    for each in queries:
        if each is condition:
            refuse_subquery(each, command, "Use MERGE, whose source may be any query.")
        refuse_subquery_about_rows(rows, each, command)
    try:
        _check_by_spark(rows, condition, given, command)
    except AnalysisException as exc:
        if names_another_frame(exc):
            exc.add_note(
                "A column of another DataFrame, df['x'], does not belong to the table here (in a "
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
