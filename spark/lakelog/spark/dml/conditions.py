"""The expressions of a MERGE before it runs: their names, their types, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.sql.function_names import AGGREGATES
from lakelog.spark.dml.expressions import (
    bare_text,
    check_boolean,
    names_another_frame,
    refuse_as_join,
    refuse_subquery,
    text_of,
)
from lakelog.spark.dml.values import as_column
from lakelog.spark.types.spark_types import to_delta_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakelog.core.schema import DataType

__all__ = ["Scope", "check_deterministic"]

_OURS = re.compile(r",? ?`__lakelog_\w+`")
_CALL = re.compile(r"\b(\w+)\s*\(")


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
            given: each with the place where it stands, for messages: `UPDATE clause`.

        Raises:
            DeltaAnalysisError: a name that is not in scope, an aggregate or a subquery.
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
        for (expression, _), each in zip(given, schema, strict=True):
            self.types[id(expression)] = each.data_type

    def _selected(self, expressions: Sequence[Any]) -> list[Any]:
        # With a column that is grouped by nothing, an aggregate is an error.
        columns = [as_column(each).alias(f"c{i}") for i, each in enumerate(expressions)]
        frame = self.frame.select(self.anchor.alias("anchor"), *columns)
        return list(to_delta_schema(frame.schema))[1:]

    def check_condition(self, expression: Any, what: str) -> None:
        """Refuse an expression that was resolved and is not a condition."""
        check_boolean(expression, str(self.types[id(expression)]), what)


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
    condition = as_column(given[0][0])
    for expression, _ in given[1:]:
        condition &= as_column(expression)
    try:
        refuse_as_join(frame, other, condition)
    except AnalysisException:
        for expression, what in given:
            try:
                refuse_as_join(frame, other, as_column(expression))
            except AnalysisException as exc:
                raise _refusal(exc, expression, what) from exc
        raise


def _refuse_by_text(given: Any, what: str) -> None:
    refuse_subquery(given, f"{what} of MERGE", "Join the subquery into the source.")
    text = bare_text(given)
    aggregate = next((c for c in _CALL.findall(text) if c.lower() in AGGREGATES), None)
    if aggregate is not None and not re.search(r"\bOVER\b", text, re.IGNORECASE):
        raise DeltaAnalysisError(
            f"[DELTA_AGGREGATION_NOT_SUPPORTED] Aggregate functions are not supported in the "
            f"{what} of MERGE: {aggregate} in {text_of(given)}.",
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
            "df['x'] of another DataFrame such as toDF().",
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
