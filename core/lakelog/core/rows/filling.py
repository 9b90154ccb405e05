"""Completing Arrow rows to every column of their table: defaults, numbers, generated values.

What the data lacks becomes its default, its next number, what its expression gives, or null. Values
given for a generated column must equal those of its expression, for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import to_arrow_field
from lakelog.core.arrow.limited_text import with_padding
from lakelog.core.arrow.repeated import repeated
from lakelog.core.compute import pc
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidPredicateError,
    UnsupportedFeatureError,
)
from lakelog.core.expressions.context import DEFAULTS, EvalContext
from lakelog.core.features.identity_columns import check_capacity, missing_identities
from lakelog.core.features.protocol import supported_features
from lakelog.core.portable.shown_values import python_value
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.column_fills import (
    default_of,
    generation_of,
    identity_of,
    is_filled,
)
from lakelog.core.schema.column_paths import dotted, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from lakelog.core.actions import Protocol
    from lakelog.core.schema.column_fills import Identity


class Filled(NamedTuple):
    """Rows that can be written as they are."""

    rows: pa.Table
    """With exactly the table's columns and types."""
    marks: dict[str, int]
    """Identity column -> its new high-water mark, for columns that were numbered."""


def check_fillable(schema: StructType, data: StructType, protocol: Protocol, table: str) -> None:
    """Refuse what no writer could fill correctly.

    Args:
        schema: the table's.
        data: the schema of the rows to come.
        protocol: the table's.
        table: for messages.

    Raises:
        UnsupportedFeatureError: a field within another column that is generated or an identity.
        DeltaAnalysisError: a default that the data needs but the protocol does not support.
    """
    for path, field in walk(schema):
        is_rule = identity_of(field) is not None or generation_of(field) is not None
        if len(path) > 1 and is_rule:
            raise UnsupportedFeatureError(
                f"{table} can't be written: {dotted(path)} is a generated or identity column, "
                "which only top-level columns can be",
                table=table,
                features=["generatedColumns"],
                access="write",
            )
    if "allowColumnDefaults" in supported_features(protocol):
        return
    for field in schema:
        if default_of(field) is not None and data.get(field.name) is None:
            raise DeltaAnalysisError(
                "[WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED] The write would give the "
                f"column {field.name} of {table} its DEFAULT, but the table does not have the "
                "feature: set its property delta.feature.allowColumnDefaults to supported.",
                table=table,
                column=field.name,
            )


def fill_rows(
    data: pa.Table,
    schema: StructType,
    protocol: Protocol,
    table: str,
    context: EvalContext = DEFAULTS,
    *,
    before: int = 0,
) -> Filled:
    """Bring rows into the form of their table.

    Args:
        data: the rows; they fit the table's schema.
        schema: the table's.
        protocol: the table's.
        table: its path, for messages.
        context: of the write.
        before: how many rows of the same write were brought into it already.

    Raises:
        ConstraintViolationError: nulls in a column that is NOT NULL, or rows whose value of a
            generated column is not what its expression gives.
        DeltaAnalysisError: values for a column that is always an identity, no numbers left, or an
            expression that only Spark evaluates.
    """
    if not any(is_filled(field) for _, field in walk(schema)):
        return Filled(cast_table(data, schema), {})
    # A column that is there is given, with whatever values.
    names = StructType(tuple(StructField(n, PrimitiveType("void")) for n in data.schema.names))
    check_fillable(schema, names, protocol, table)
    return _Filling(data, names, schema, table, context, before).run()


def with_generated(
    rows: pa.Table,
    schema: StructType,
    table: str,
    context: EvalContext = DEFAULTS,
    *,
    kept: Collection[str] = (),
) -> pa.Table:
    """Rows with all columns: generated ones that they lack are computed, the others checked.

    Args:
        rows: with the table's columns, save for generated ones.
        schema: the table's.
        table: its path, for messages.
        context: of the write.
        kept: generated columns whose values the table has already, which are not checked again:
            their expression may be one that only Spark evaluates.

    Raises:
        ConstraintViolationError: a value that is not what its expression gives, or null where
            the column is NOT NULL.
        DeltaAnalysisError: an expression that only Spark evaluates.
    """
    known = rows.schema.names
    rows = with_padding(rows, schema)
    bases = StructType(tuple(f for f in schema if generation_of(f) is None))
    for field in schema:
        sql = generation_of(field)
        if sql is None or (field.name in known and field.name in kept):
            continue
        # A generated column may only refer to columns that are not generated.
        values = _evaluated(field, sql, rows, bases, table, context.timeless)
        if field.name in known:
            _check_generated(field, sql, rows, values, table)
        else:
            rows = _appended(rows, field, values)
    return rows.select(schema.names)


@dataclass(frozen=True, slots=True)
class _Filling:
    data: pa.Table
    names: StructType
    schema: StructType
    table: str
    context: EvalContext
    before: int

    def run(self) -> Filled:
        present = (f for f in self.schema if not is_filled(f) or self.names.get(f.name))
        rows = cast_table(self.data, StructType(tuple(present)))
        rows = self._with_defaults(rows)
        rows, marks = self._numbered(rows)
        rows = with_generated(rows, self.schema, self.table, self.context)
        return Filled(rows, marks)

    def _with_defaults(self, rows: pa.Table) -> pa.Table:
        one = pa.table({"row": [0]})
        none = StructType((StructField("row", PrimitiveType("long")),))
        for field in self.schema:
            sql = default_of(field)
            if sql is None or field.name in rows.schema.names or generation_of(field):
                continue
            value = _evaluated(field, sql, one, none, self.table, self.context)[0]
            rows = _appended(rows, field, repeated(value, rows.num_rows))
        return rows

    def _numbered(self, rows: pa.Table) -> tuple[pa.Table, dict[str, int]]:
        marks = {}
        for name, sequence in missing_identities(self.schema, self.names, self.table).items():
            first = sequence.taken + self.before
            if rows.num_rows:
                last = first + rows.num_rows - 1
                check_capacity(name, sequence, last, self.table)
                marks[name] = sequence.value(last)
            numbers = numbered(sequence, first, rows.num_rows)
            field = self.schema.get(name)
            assert field is not None  # it is one of the schema's
            rows = _appended(rows, field, numbers)
        return rows, marks


def _evaluated(
    field: StructField,
    sql: str,
    rows: pa.Table,
    schema: StructType,
    table: str,
    context: EvalContext,
) -> pa.ChunkedArray[Any]:
    from lakelog.core.expressions.values.evaluate import evaluate_value

    try:
        return evaluate_value(sql, rows, schema, field.data_type, context)
    except InvalidPredicateError as exc:
        what = "generated column" if generation_of(field) else "DEFAULT"
        raise DeltaAnalysisError(
            f"{table} has the {what} {field.name} ({sql}), which can't be computed without Spark: "
            f"{exc}. Write with lakelog.spark.",
            table=table,
            column=field.name,
            sql=sql,
        ) from exc


def numbered(sequence: Identity, first: int, count: int) -> pa.Array[Any]:
    """Numbers of an identity column: so many from the one with an index on."""
    if not count:
        return pa.nulls(0, pa.int64())
    # Sums of steps, so that no intermediate value is beyond the first or the last number.
    start = array_of([sequence.value(first)], pa.int64())
    steps = pa.repeat(scalar_of(sequence.step if count > 1 else 0, pa.int64()), count - 1)
    return pc.cumulative_sum_checked(pa.concat_arrays([start, steps]))


def _appended(
    rows: pa.Table, field: StructField, values: pa.Array[Any] | pa.ChunkedArray[Any]
) -> pa.Table:
    if not field.nullable and values.null_count:
        raise ConstraintViolationError(
            f"[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: "
            f"{field.name}. Its expression gives null for {values.null_count} of "
            f"{len(values)} rows. Nothing was written.",
            column=field.name,
            constraint="NOT NULL",
        )
    return rows.append_column(to_arrow_field(field), values)


def _check_generated(
    field: StructField, sql: str, rows: pa.Table, expected: pa.ChunkedArray[Any], table: str
) -> None:
    same = _same(rows.column(field.name), expected)
    if pc.all(same, min_count=0).as_py() is not False:
        return
    broken = rows.num_rows - pc.sum(same).as_py()
    first = pc.index(same, False).as_py()
    shown = {name: python_value(rows.column(name)[first]) for name in rows.schema.names}
    wanted = python_value(expected[first])
    raise ConstraintViolationError(
        f"{_violation_text(field.name, sql)} {broken} of {rows.num_rows} rows of the write to "
        f"{table}, the first with {_listed(shown.items())}: the expression gives {wanted!r}. "
        "Nothing was written. Leave the column out of the data to have it generated.",
        column=field.name,
        rows=broken,
        first=shown,
    )


def _violation_text(column: str, sql: str) -> str:
    """The beginning of Delta's message for a generated column with a wrong value."""
    return (
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated Column "
        f"({column} <=> {sql}) violated by"
    )


def _same(given: pa.ChunkedArray[Any], expected: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """`<=>`, row by row: null is null, and NaN is NaN."""
    kind = given.type
    if pa.types.is_nested(kind):
        pairs = zip(given, expected, strict=True)  # Arrow value: Python may not have it
        return pa.chunked_array([array_of([a == b for a, b in pairs], pa.bool_())])
    same = pc.fill_null(pc.equal(given, expected), False)
    same = pc.or_(same, pc.and_(pc.is_null(given), pc.is_null(expected)))
    if not pa.types.is_floating(kind):
        return same
    nans = pc.and_kleene(pc.is_nan(given), pc.is_nan(expected))
    return pc.or_(same, pc.fill_null(nans, False))


def _listed(values: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values)
