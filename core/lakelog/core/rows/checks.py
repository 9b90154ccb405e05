"""The rules of a table, checked on Arrow rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.arrow.limited_text import too_long, with_padding
from lakelog.core.compute import pc
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.context import DEFAULTS, EvalContext
from lakelog.core.expressions.filter import parse_filter
from lakelog.core.expressions.tree import columns
from lakelog.core.portable.shown_values import python_value
from lakelog.core.schema.column_paths import split_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.rows.constraints import Constraint
    from lakelog.core.schema import StructType


def ruled_rows(
    rows: pa.Table,
    rules: Iterable[Constraint],
    schema: StructType,
    table: str,
    context: EvalContext = DEFAULTS,
) -> pa.Table:
    """The rows with each CHAR filled up, checked by every CHECK constraint, invariant and
    length; NOT NULL is checked by the cast.

    Args:
        rows: with exactly the columns of `schema`.
        rules: the table's.
        schema: the table's, without void columns.
        table: for messages.
        context: of the write.

    Raises:
        ConstraintViolationError: some row breaks one.
        DeltaAnalysisError: a rule that only Spark can evaluate.
    """
    rows = with_padding(rows, schema)
    for rule in rules:
        if rule.kind == "not_null" or not rows.num_rows:
            continue
        if rule.kind == "length":
            _check_length(rows, rule, schema, table)
            continue
        what = (
            f"[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] rows break the rule {rule.name} ({rule.sql}) "
            f"of {table}"
        )
        try:
            predicate = parse_filter(rule.sql, schema, context.timeless)
            check_rows(rows, predicate, schema, what)
        except InvalidPredicateError as exc:
            raise DeltaAnalysisError(
                f"{table} has the rule {rule.name} ({rule.sql}), which can't be checked without "
                f"Spark: {exc} Write with lakelog.spark.",
                table=table,
                constraint=rule.name,
            ) from exc
    return rows


def _check_length(rows: pa.Table, rule: Constraint, schema: StructType, table: str) -> None:
    """Check the strings of a CHAR or VARCHAR column, or within a column."""
    field = schema.get(split_path(rule.name)[0])
    assert field is not None  # the rule is its own
    column = rows[field.name]
    refused = column.filter(too_long(column, field))
    if not len(refused):
        return
    first = python_value(refused[0])
    raise ConstraintViolationError(
        f'[DELTA_EXCEED_CHAR_VARCHAR_LIMIT] {table}: value "{first}" exceeds char/varchar type '
        f"length limitation. Failed check: {rule.sql}. {len(refused)} of {rows.num_rows} rows "
        "break it. Nothing was written.",
        rows=len(refused),
        first={rule.name: first},
    )


def check_rows(rows: pa.Table, predicate: Expression, schema: StructType, what: str) -> None:
    """Check that a condition is true for every row: null is as bad as false.

    Raises:
        ConstraintViolationError: it is not; shows the first row's columns.
        InvalidPredicateError: a part of it that only Spark can evaluate.
    """
    from lakelog.core.expressions.arrow.masks import evaluate_mask

    kept = pc.fill_null(evaluate_mask(predicate, rows, schema), False)
    broken = rows.num_rows - kept.true_count
    if not broken:
        return
    first = pc.index(kept, False).as_py()
    raise _broken(rows, broken, first, {path[0] for path in columns(predicate)}, what)


def _broken(
    rows: pa.Table, broken: int, first: int, used: set[str], what: str
) -> ConstraintViolationError:
    names = sorted(used)
    values = {name: python_value(rows.column(name)[first]) for name in names}
    shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return ConstraintViolationError(
        f"{what}: {broken} of {rows.num_rows}, the first with {shown}. Nothing was written.",
        rows=broken,
        first=values,
    )
