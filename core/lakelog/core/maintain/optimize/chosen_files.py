"""The files that the condition of an OPTIMIZE chooses: whole partitions."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lakelog.core.data.readable_partitions import readable_partitions
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    columns,
    is_computed,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.expressions.filter import Filter
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ChosenFiles:
    """Files, and the condition as the history shows it."""

    files: pa.Table
    """Rows of `FILE_SCHEMA`."""
    predicate: list[str]


def chosen_files(snapshot: Snapshot, where: Filter | None) -> ChosenFiles:
    """The files of the partitions for which a condition is true.

    Args:
        snapshot: the version.
        where: the condition; `None` chooses all files.

    Raises:
        InvalidPredicateError: the condition can't be parsed, or names a column that the table is
            not partitioned by.
        CorruptLogError: a partition value that can't be read.
    """
    context = EvalContext.of(snapshot.conf, snapshot.clock.now_ms())
    condition = normalize_filter(where, snapshot.schema, context)
    if condition is None:
        return ChosenFiles(snapshot.file_table, [])
    _check_partitions_alone(snapshot, condition)
    files = snapshot.file_table_for(condition)
    if files.num_rows:
        values = readable_partitions(snapshot, files)
        if is_computed(condition):
            from lakelog.core.expressions.arrow.masks import evaluate_mask

            # Pruning keeps what it can't compute.
            files = files.filter(evaluate_mask(condition, values, snapshot.partition_schema))
    return ChosenFiles(files, [_as_shown(condition)])


def _as_shown(condition: Expression) -> str:
    """The condition as delta-spark's history has it: Spark's text of a parsed expression."""
    match condition:
        case And(parts) | Or(parts) if parts:
            word = " AND " if isinstance(condition, And) else " OR "
            return functools.reduce(lambda a, b: f"({a}{word}{b})", map(_as_shown, parts))
        case Not(IsNull(column)):
            return f"isnotnull({_term(column)})"
        case Not(part):
            return f"NOT {_as_shown(part)}"
        case Comparison("!=", left, right):
            return f"NOT ({_term(left)} = {_term(right)})"
        case Comparison(op, left, right):
            return f"({_term(left)} {op} {_term(right)})"
        case In(column, values):
            return f"{_term(column)} IN ({','.join(map(_term, values))})"
        case IsNull(column):
            return f"isnull({_term(column)})"
        case _:
            return to_sql(condition)


def _term(operand: Column | Literal) -> str:
    if isinstance(operand, Column):
        return "'" + ".".join(operand.path)
    value = operand.value
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return to_sql(operand) if isinstance(value, bytes | datetime) else str(value)


def _check_partitions_alone(snapshot: Snapshot, condition: Expression) -> None:
    known = snapshot.partition_columns
    lower = {name.lower() for name in known}
    for path in sorted(columns(condition)):
        if path[0].lower() not in lower:
            raise InvalidPredicateError(
                "[DELTA_NON_PARTITION_COLUMN_REFERENCE] Predicate references non-partition column "
                f"'{path[0]}'. Only the partition columns may be referenced: [{', '.join(known)}]. "
                "Files are rewritten whole, so that a condition on other columns can't choose "
                "among them.",
                table=snapshot.table,
                column=path[0],
            )
