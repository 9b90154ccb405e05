"""The expressions of a MERGE before it runs: their names, their types, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as sf

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.sql.function_names import AGGREGATES
from lakelog.spark.dml.expressions import (
    bare_text,
    check_boolean,
    has_subquery,
    names_another_frame,
    refuse_as_join,
    refuse_subquery,
    refuse_subquery_about_rows,
    text_of,
    without_strings,
)
from lakelog.spark.dml.values import as_column
from lakelog.spark.types.spark_types import to_delta_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakelog.core.schema import DataType

__all__ = ["Scope", "check_deterministic", "refuse_stars"]

_OURS = re.compile(r",? ?`__lakelog_\w+`")
_CALL = re.compile(r"\b(\w+)\s*\(")
_STAR = re.compile(r"[(,]\s*\*\s*[,)]|unresolvedstar\(\)|(?<![\w.`])(\w+|`(?:[^`]|``)*`)\s*\.\s*\*")
_COUNT = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
_QUERY = re.compile(r"\(\s*(?:(?:SELECT|WITH|VALUES|FROM|TABLE)\b|\[)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that some expressions of a MERGE see."""

    frame: DataFrame
    anchor: Column
    """A column of it that is not one of the user's expressions."""
    types: dict[int, DataType] = field(default_factory=dict)
    """`id` of an expression that was looked at -> its type."""

    def resolve(self, given: Sequence[tuple[Any, str]]) -> None:
        """Find the types of expressions.

        Args:
            given: each with the place where it stands, for messages: `UPDATE clause` for values,
                `UPDATE condition`.

        Raises:
            DeltaAnalysisError: a name that is not in scope, an aggregate, or a subquery other than
                one for a single value of a clause.
            AnalysisException: another reason why Spark does not accept an expression.
        """
        for expression, what in given:
            _refuse_by_text(expression, what)
        if not given:
            return
        try:
            schema = self._selected([expression for expression, _ in given])
        except (AnalysisException, ParseException):
            for expression, what in given:
                try:
                    self._selected([expression])
                except AnalysisException as exc:
                    raise _refusal(exc, expression, what) from exc
            raise
        for (expression, what), each in zip(given, schema, strict=True):
            self.types[id(expression)] = each.data_type
            if has_subquery(expression):
                self._refuse_correlated(expression, what)

    def _selected(self, expressions: Sequence[Any]) -> list[Any]:
        # With a column that is grouped by nothing, an aggregate is an error.
        columns = [as_column(each).alias(f"c{i}") for i, each in enumerate(expressions)]
        frame = self.frame.select(self.anchor.alias("anchor"), *columns)
        return list(to_delta_schema(frame.schema))[1:]

    def _refuse_correlated(self, expression: Any, what: str) -> None:
        """Refuse a query that depends on the row, which Spark accepts in a projection."""
        one = self.frame.sparkSession.range(1).select(sf.col("id").alias("__lakelog_other"))
        try:
            refuse_as_join(self.frame, one, as_column(expression).isNull())
        except AnalysisException as exc:
            if (exc.getCondition() or "").startswith("UNSUPPORTED_SUBQUERY"):
                raise DeltaAnalysisError(
                    "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY."
                    "UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY] A query in the "
                    f"{what} of MERGE must not depend on the row: {text_of(expression)}. Join it "
                    "into the source.",
                    sql=text_of(expression),
                ) from exc

    def check_condition(self, expression: Any, what: str) -> None:
        """Refuse an expression that was resolved and is not a condition.

        A clause takes a null without a type: it is never true.
        """
        kind = str(self.types[id(expression)])
        if what == "search condition" and kind != "boolean":
            raise DeltaAnalysisError(
                f"[JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE] the {what} {text_of(expression)} of MERGE "
                f"is of the type {kind}, and a condition must be boolean",
                sql=text_of(expression),
            )
        if kind != "void":
            check_boolean(expression, kind, what)


def check_deterministic(
    frame: DataFrame, other: DataFrame, given: Sequence[tuple[Any, str]]
) -> None:
    """Refuse conditions that need not give the same for the same rows.

    Args:
        frame: with `other`, has the columns of the conditions.
        other: see `frame`.
        given: each with the place where it stands.

    Raises:
        DeltaAnalysisError: a function that is not deterministic.
    """
    if not given:
        return
    condition = sf.lit(True)  # with which `null` is a condition, too
    for expression, _ in given:
        condition &= as_column(expression)
    try:
        refuse_as_join(frame, other, condition)
    except AnalysisException:
        for expression, what in given:
            try:
                refuse_as_join(frame, other, sf.lit(True) & as_column(expression))
            except AnalysisException as exc:
                raise _refusal(exc, expression, what) from exc
        raise


def refuse_stars(given: Any, alias: str | None, what: str) -> None:
    """Refuse `*` and `t.*` of the table, which has columns of lakelog's own here.

    Args:
        given: an expression.
        alias: what expressions call the table.
        what: where it stands, for the message.

    Raises:
        DeltaAnalysisError: there is one.
    """
    text = _without_queries(without_strings(given))
    for star in _STAR.finditer(_COUNT.sub("", text)):
        name = star.group(1)
        if name is None or name.strip("`").replace("``", "`").lower() == (alias or "").lower():
            raise DeltaAnalysisError(
                f"[INVALID_USAGE_OF_STAR_OR_REGEX] Invalid usage of '*' in the {what} of MERGE: "
                f"{text_of(given)}. Name the columns.",
                sql=text_of(given),
            )


def _refuse_by_text(given: Any, what: str) -> None:
    if what.endswith("clause"):
        refuse_subquery_about_rows(given, f"{what} of MERGE")
    else:
        refuse_subquery(given, f"{what} of MERGE", "Join the subquery into the source.")
    text = _without_queries(bare_text(given))
    aggregate = next((c for c in _CALL.findall(text) if c.lower() in AGGREGATES), None)
    if aggregate is not None and not re.search(r"\bOVER\b", text, re.IGNORECASE):
        raise DeltaAnalysisError(
            f"[DELTA_AGGREGATION_NOT_SUPPORTED] Aggregate functions are not supported in the "
            f"{what} of MERGE: {aggregate} in {text_of(given)}.",
            sql=text_of(given),
        )


def _without_queries(text: str) -> str:
    """The text of an expression without the queries in it, which have aggregates of their own."""
    while (found := _QUERY.search(text)) is not None:
        depth, end = 0, len(text)
        for at in range(found.start(), len(text)):
            depth += (text[at] == "(") - (text[at] == ")")
            if depth == 0:
                end = at + 1
                break
        text = f"{text[: found.start()]} {text[end:]}"
    return text


def _refusal(exc: AnalysisException, given: Any, what: str) -> Exception:
    condition = exc.getCondition() or ""
    said = _OURS.sub("", str(exc).split(" SQLSTATE:")[0].split(";")[0].strip())
    if names_another_frame(exc):
        return DeltaAnalysisError(
            "[DELTA_MERGE_UNRESOLVED_EXPRESSION] Cannot resolve "
            f"{text_of(given)} in the {what}: it "
            "has a column of a DataFrame that is neither the table as MERGE reads it nor its "
            "source. Name the column by the alias, as functions.col('t.x') or in SQL, instead of "
            "df['x'] of another DataFrame. (In a classic session, toDF() of this DeltaTable may be "
            "named so while the table has the same columns.)",
            sql=text_of(given),
        )
    if condition.startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")):
        return DeltaAnalysisError(
            f"[DELTA_MERGE_UNRESOLVED_EXPRESSION] Cannot resolve {text_of(given)} in the {what}: "
            f"{said}",
            sql=text_of(given),
        )
    if "NON_DETERMINISTIC" in condition:
        return DeltaAnalysisError(
            "[DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED] Non-deterministic functions are not "
            f"supported in the {what} of MERGE: {text_of(given)}.",
            sql=text_of(given),
        )
    if condition.startswith(("MISSING_GROUP_BY", "MISSING_AGGREGATION", "INVALID_WHERE")):
        return DeltaAnalysisError(
            "[DELTA_AGGREGATION_NOT_SUPPORTED] Aggregate functions are not supported in the "
            f"{what} of MERGE: {text_of(given)}.",
            sql=text_of(given),
        )
    return exc
