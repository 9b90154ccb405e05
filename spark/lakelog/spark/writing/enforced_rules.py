"""Rules on rows, checked by the plan that writes them.

The check is a filter that raises. Its condition is made non-deterministic on purpose: Spark
pushes an ordinary filter down, below joins and limits, and would then raise for rows that the
query never returns. A non-deterministic one stays where it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lakelog.core.engine.conditions import check_stored
from lakelog.core.engine.rows import default_of, generation_of, table_constraints
from lakelog.core.engine.schemas import MARK, split_path, stored_sql
from lakelog.core.schema import StructType
from lakelog.spark.session.job_errors import MARK_CLOSE, MARK_OPEN
from lakelog.spark.types.path_forms import quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from lakelog.core import DeltaConf
    from lakelog.core.actions import Metadata
    from lakelog.core.schema import StructField

_BARRIER = "monotonically_increasing_id() < 0"

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class RowRule:
    """What every written row must satisfy."""

    message: str
    """What is wrong with a row that does not."""
    violated: str
    """SQL that is true for such a row, and never null."""
    shown: tuple[str, ...] = ()
    """The columns whose values the error shows."""
    column: StructField | None = None
    """Where the rule is about the length of a column."""


def check_rule(message: str, sql: str, columns: Sequence[str]) -> RowRule:
    """A condition that must be true; null counts as false, as in Delta.

    Args:
        message: what is wrong with a row that fails.
        sql: the condition.
        columns: the table's; those that the condition mentions are shown.
    """
    words = {word.lower() for word in _WORD.findall(sql)}
    shown = tuple(c for c in columns if set(map(str.lower, _WORD.findall(c))) <= words)
    return RowRule(message, f"NOT (({sql}) <=> true)", shown)


def table_rules(metadata: Metadata, table: str, conf: DeltaConf) -> list[RowRule]:
    """The rules of the table itself: NOT NULL, invariants of columns, CHECK.

    Whoever asks for them is about to write rows, so what generates columns is judged as well.

    Raises:
        DeltaAnalysisError: one of them, or the expression of a generated column, calls what Spark
            is not to run for a table.
    """
    schema = StructType.from_json(metadata.schema_string)
    for field in schema:
        check_generation(field, table, conf)
    columns = schema.names
    rules = []
    for each in table_constraints(metadata):
        if each.kind in ("check", "invariant"):
            what = "CHECK constraint" if each.kind == "check" else "invariant of the column"
            check_stored(each.sql, f"the {what} {each.name} of {table}", conf)
        if each.kind == "not_null":
            message = (
                "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: "
                f"{each.name}."
            )
            rules.append(check_rule(message, each.sql, ()))
            continue
        if each.kind == "length":
            message = (
                "[DELTA_EXCEED_CHAR_VARCHAR_LIMIT] Value exceeds char/varchar type length "
                f"limitation. Failed check: {each.sql}."
            )
            column = schema.get(split_path(each.name)[0])
            assert column is not None
            rules.append(replace(check_rule(message, each.sql, columns), column=column))
            continue
        message = (
            f"[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint {each.name} ({each.sql}) "
            "violated by row with values:"
        )
        rules.append(check_rule(message, each.sql, columns))
    return rules


def check_generation(field: StructField, table: str, conf: DeltaConf) -> None:
    """Refuse a generated column whose expression Spark is not to run for a table.

    Raises:
        DeltaAnalysisError: see `check_stored`.
    """
    sql = generation_of(field)
    if sql is not None:
        check_stored(sql, f"the generated column {field.name} of {table}", conf, context=False)


def checked_default(field: StructField, table: str, conf: DeltaConf) -> str | None:
    """The DEFAULT of a column, if it has one.

    Raises:
        DeltaAnalysisError: it calls what Spark is not to run for a table.
    """
    sql = default_of(field)
    if sql is not None:
        check_stored(sql, f"the DEFAULT of the column {field.name} of {table}", conf)
    return sql


def filled_up(frame: DataFrame, fields: Iterable[StructField]) -> DataFrame:
    """The rows with each CHAR filled up, as it is stored.

    Args:
        frame: may also have other columns.
        fields: of the table.
    """
    stored = {f.name.lower(): (sql, f) for f in fields if (sql := stored_sql(f)) is not None}
    if not stored:
        return frame
    columns = []
    for name in frame.columns:
        if name.lower() in stored:
            sql, field = stored[name.lower()]
            # Spark compares by the mark: the literal of a condition is filled up too.
            columns.append(sf.expr(sql).alias(name, metadata={MARK: field.metadata[MARK]}))
        else:
            columns.append(sf.col(quoted(name)))
    return frame.select(*columns)


def enforced(frame: DataFrame, rules: Iterable[RowRule]) -> DataFrame:
    """The rows with each CHAR filled up; computing them fails at the first one that breaks a
    rule.
    """
    rules = [*rules]
    frame = filled_up(frame, [each.column for each in rules if each.column is not None])
    branches = [f"WHEN {_BARRIER} THEN false"]
    branches += [f"WHEN {each.violated} THEN {_raise(each)}" for each in rules]
    if len(branches) == 1:
        return frame
    return frame.where(f"CASE {' '.join(branches)} ELSE true END")


def _raise(rule: RowRule) -> str:
    parts = [text_literal(MARK_OPEN + rule.message)]
    for name in rule.shown:
        parts.append(text_literal(f"\n - {name} : "))
        parts.append(f"coalesce(CAST({quoted(name)} AS STRING), 'null')")
    return f"raise_error(concat({', '.join(parts)}, {text_literal(MARK_CLOSE)}))"
