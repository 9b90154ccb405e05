"""The expressions of a MERGE before it runs: their names, their types, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as sf

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.dml.given_expressions import (
    check_boolean,
    names_another_frame,
    refuse_as_join,
    refuse_subquery,
    refuse_subquery_about_rows,
    subqueries_in,
    text_of,
)
from lakelog.spark.dml.merge.clause_values import as_column
from lakelog.spark.session.unlogged import analyse, unlogged
from lakelog.spark.types.spark_types import to_delta_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakelog.core.schema import DataType

_OURS = re.compile(r",? ?`__lakelog_\w+`")
_STAR = re.compile(r"[(,]\s*\*\s*[,)]|unresolvedstar\(\)|(?<![\w.`])(\w+|`(?:[^`]|``)*`)\s*\.\s*\*")
_COUNT = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)


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
        if not given:
            return
        for expression in subqueries_in(self.frame, [each for each, _ in given]):
            self._judge_query(expression, next(what for each, what in given if each is expression))
        try:
            schema = self._selected([expression for expression, _ in given])
        except (AnalysisException, ParseException):
            for expression, what in given:
                try:
                    self._selected([expression])
                except AnalysisException as exc:
                    raise _refusal(exc, expression, what) from exc
            raise
        for (expression, _), each in zip(given, schema, strict=True):
            self.types[id(expression)] = each.data_type

    def _judge_query(self, expression: Any, what: str) -> None:
        if not what.endswith("clause"):
            refuse_subquery(expression, f"{what} of MERGE", "Join the subquery into the source.")
        try:
            refuse_subquery_about_rows(self.frame, expression, f"{what} of MERGE")
        except AnalysisException as exc:
            raise _refusal(exc, expression, what) from exc

    def _selected(self, expressions: Sequence[Any]) -> list[Any]:
        given = [as_column(each) for each in expressions]
        columns = [each.alias(f"c{i}") for i, each in enumerate(given)]
        selected = self.frame.select(self.anchor.alias("anchor"), *columns).schema
        # A filter has neither aggregates nor windows, nor what makes several rows of one.
        analyse(self.frame.where(sf.coalesce(*(each.isNull() for each in given))))
        return list(to_delta_schema(selected))[1:]

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
    condition = sf.lit(True)  # with which `null` is a condition too
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


def refuse_stars(frame: DataFrame, given: Any, alias: str | None, what: str) -> None:
    """Refuse `*` and `t.*` of the table, which has columns of lakelog's own here.

    Args:
        frame: what the expression sees.
        given: an expression.
        alias: what expressions call the table.
        what: where it stands, for the message.

    Raises:
        DeltaAnalysisError: there is one.
    """
    text = text_of(given)
    if "*" not in text and "star" not in text:
        return
    try:
        with unlogged():
            analyse(frame.orderBy(as_column(given).isNull()))
    except AnalysisException as exc:
        if exc.getCondition() != "INVALID_USAGE_OF_STAR_OR_REGEX":
            return
    else:
        return
    # There is a star; only the text says of what.
    for star in _STAR.finditer(_COUNT.sub("", text)):
        name = star.group(1)
        if name is None or name.strip("`").replace("``", "`").lower() == (alias or "").lower():
            raise DeltaAnalysisError(
                f"[INVALID_USAGE_OF_STAR_OR_REGEX] Invalid usage of '*' in the {what} of MERGE: "
                f"{text_of(given)}. Name the columns.",
                sql=text_of(given),
            )


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
