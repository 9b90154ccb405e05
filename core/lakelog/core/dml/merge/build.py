"""New rows by Arrow: what a clause gives each column, cast, filled in and checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import from_arrow_type, to_arrow_type
from lakelog.core.arrow.repeated import repeated
from lakelog.core.compute import pc
from lakelog.core.dml.merge.alignment import aligned
from lakelog.core.dml.merge.arrow_expressions import ArrowBound
from lakelog.core.dml.merge.new_rows import (
    Built,
    Default,
    Generated,
    Given,
    Kept,
    Nothing,
    Numbered,
    Taken,
)
from lakelog.core.dml.merge.sides import Bound
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidPredicateError,
    SchemaMismatchError,
)
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.tree import Literal
from lakelog.core.expressions.values.casts import cast_data
from lakelog.core.portable.shown_values import python_value
from lakelog.core.rows.checks import ruled_rows
from lakelog.core.rows.constraints import table_constraints
from lakelog.core.rows.exact_values import exact_array, exact_scalar
from lakelog.core.rows.filling import with_generated
from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from lakelog.core.schema.column_fills import generation_of
from lakelog.core.schema.column_paths import dotted, sql_path
from lakelog.core.schema.diff import TYPES, differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions import Metadata
    from lakelog.core.dml.merge.analysis import NewRow
    from lakelog.core.dml.merge.new_rows import NewColumn, Value
    from lakelog.core.dml.merge.numbering import Numbering
    from lakelog.core.dml.merge.sides import Sides
    from lakelog.core.schema import DataType

_ONE_ROW = StructType(())


class RowBuilder:
    """Makes the new rows of one clause."""

    def __init__(
        self,
        row: NewRow,
        sides: Sides,
        schema: StructType,
        metadata: Metadata,
        table: str,
        numbering: Numbering,
    ) -> None:
        """Resolve every expression, and refuse what can't be evaluated here.

        Args:
            row: the clause and its columns.
            sides: the columns that expressions name.
            schema: the table's, as it will be, without void columns.
            metadata: the table's, for its rules.
            table: its path, for messages.
            numbering: of identity columns.

        Raises:
            InvalidPredicateError: an expression that can't be parsed, or only by Spark.
            DeltaAnalysisError: a name or a type that is wrong.
        """
        self._sides = sides
        self._rules = table_constraints(metadata)
        self._table = table
        self._numbering = numbering
        self._schema = schema
        self._clause = row.clause
        self._fixed: dict[str, pa.Scalar[Any]] = {}
        self._columns: list[tuple[StructField, Value]] = []
        self._kept = {each.field.name for each in row.columns if not each.is_assigned}
        for each in row.columns:
            field = schema.get(each.field.name)
            if field is not None:
                self._columns.append((field, self._settled(each, field)))
        self.names: frozenset[str] = frozenset(
            name for _, value in self._columns for name in self._used(value)
        )
        """The columns of `Sides.schema` that the new rows need."""

    def _settled(self, column: NewColumn, field: StructField) -> Value:
        value = self._resolved(column.value, field.data_type, (field.name,))
        if isinstance(value, Default):
            self._fixed[dotted((field.name,))] = self._default(field, value.sql)
        return value

    def _resolved(self, value: Value, target: DataType, path: tuple[str, ...]) -> Value:
        """The value with its expressions bound and in the form of their column."""
        if isinstance(value, Built):
            inside = target if isinstance(target, StructType) else StructType()
            # A field of type void is in no file.
            fields = tuple(
                (f, self._resolved(each, f.data_type, (*path, f.name)))
                for f, each in value.fields
                if inside.get(f.name) is not None
            )
            return Built(fields, value.null_where)
        if not isinstance(value, Given):
            return value
        if isinstance(value.expression, pc.Expression):
            return Given(self._by_arrow(value.expression, target, path))
        if not isinstance(value.expression, str):
            self._fixed[dotted(path)] = self._constant(value.expression, target, path)
            return Given(dotted(path))
        what = f"{self._clause.name} clause"
        sides = self._sides.seen_by(self._clause.when)
        try:
            bound = self._sides.bind(value.expression, sides, what, condition=False)
        except InvalidPredicateError as exc:
            raise _no_sql(path, value.expression, exc) from exc
        known = bound.data_type
        if known is None:
            self._check(bound, target, path)
            return Given(bound)
        found = aligned(replace(value, expression=bound), known, target, path)
        if isinstance(found, Given) and not _is_recast(known, target):
            self._check(bound, target, path)
        return found

    def _check(self, bound: Bound, target: DataType, path: Sequence[str]) -> None:
        try:
            bound.check(target)
        except InvalidPredicateError as exc:
            raise _no_sql(path, bound.shown, exc) from exc

    def _constant(self, given: Any, target: DataType, path: Sequence[str]) -> pa.Scalar[Any]:
        plain = given.value if isinstance(given, Literal) else given
        try:
            return exact_scalar(plain, target, session_tz=self._sides.context.session_tz)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
            shown = repr(python_value(plain) if isinstance(plain, pa.Scalar) else plain)
            raise _misfit(path, target, shown, exc) from exc

    def _by_arrow(self, given: Any, target: DataType, path: Sequence[str]) -> ArrowBound:
        sides = self._sides.seen_by(self._clause.when)
        what = f"value of {dotted(path)} in the {self._clause.name} clause"
        bound = self._sides.bind_arrow(given, sides, what, condition=False)
        self._exact(bound, pa.nulls(0, bound.type), target, path)
        return bound

    def _exact(self, bound: ArrowBound, data: Any, target: DataType, path: Sequence[str]) -> Any:
        """What an expression of pyarrow gave, as its column holds it."""
        try:
            return exact_array(data, target, session_tz=self._sides.context.session_tz)
        except ConstraintViolationError:
            raise
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as exc:
            raise _misfit(path, target, bound.shown, exc) from exc

    def _default(self, field: StructField, sql: str) -> pa.Scalar[Any]:
        from lakelog.core.expressions.values.evaluate import evaluate_value

        try:
            row, context = pa.table({"": pa.nulls(1)}), self._sides.context
            found = evaluate_value(sql, row, _ONE_ROW, field.data_type, context)
        except InvalidPredicateError as exc:
            raise DeltaAnalysisError(
                f"{self._table} has the DEFAULT {field.name} ({sql}), which can't be computed "
                f"without Spark: {exc}. Use lakelog.spark.",
                column=field.name,
                sql=sql,
            ) from exc
        return found[0]

    def _used(self, value: Value) -> set[str]:
        sides = self._sides
        match value:
            case Kept(path):
                return {sides.target.named(path[0])}
            case Taken(path):
                return {sides.source.named(path[0])}
            case Given(Bound() | ArrowBound() as bound):
                return set(bound.names)
            case Built(fields, null_where):
                inner = [*(each for _, each in fields), *null_where]
                return {name for each in inner for name in self._used(each)}
            case _:
                return set()

    def build(self, pairs: pa.Table) -> pa.Table:
        """The new rows for some pairs.

        Args:
            pairs: rows of `Sides.schema`, with at least the columns of `names`.

        Returns:
            Rows with exactly the table's columns, checked against its rules.

        Raises:
            ConstraintViolationError: new rows break a rule of the table.
            DeltaAnalysisError: a row for which an expression has no result.
        """
        columns: dict[str, Any] = {}
        for field, value in self._columns:
            if not isinstance(value, Generated):
                columns[field.name] = self._value(value, field, (field.name,), pairs)
        present = StructType(tuple(f for f in self._schema if f.name in columns))
        rows = cast_table(pa.table(columns), present)
        if any(generation_of(f) is not None for f in self._schema):
            context = self._sides.context
            rows = with_generated(rows, self._schema, self._table, context, kept=self._kept)
        return ruled_rows(rows, self._rules, self._schema, self._table, self._sides.context)

    def _value(
        self, value: Value, field: StructField, path: tuple[str, ...], pairs: pa.Table
    ) -> Any:
        count, arrow = pairs.num_rows, to_arrow_type(field.data_type)
        match value:
            case Kept() | Taken():
                return self._cast(self._source(value, pairs), field.data_type, path)
            case Given(Bound() as bound, inner):
                if not inner and not _is_recast(bound.data_type, field.data_type):
                    return bound.evaluate(pairs, field.data_type)
                return self._cast(self._source(value, pairs), field.data_type, path)
            case Given(ArrowBound() as bound):
                return self._exact(bound, bound.values(pairs), field.data_type, path)
            case Given(name):
                return repeated(self._fixed[name], count)
            case Default():
                return repeated(self._fixed[dotted((field.name,))], count)
            case Numbered():
                return self._numbering.next(field, count)
            case Nothing():
                return pa.nulls(count, arrow)
            case Built(fields, null_where):
                inside = [
                    _whole(self._value(each, f, (*path, f.name), pairs)) for f, each in fields
                ]
                names = [f.name for f, _ in fields]
                mask = None
                for each in null_where:
                    null = _whole(self._source(each, pairs)).is_null()
                    mask = null if mask is None else pc.and_(mask, null)
                return pa.StructArray.from_arrays(inside, names=names, mask=mask)
            case Generated():
                raise AssertionError("computed from the other columns")

    def _source(self, value: Kept | Taken | Given, pairs: pa.Table) -> Any:
        """A column of the pairs, or a field within it, in the type that it has there."""
        if isinstance(value, Given):
            known = value.expression.data_type
            assert known is not None  # it was aligned by its type
            data = value.expression.evaluate(pairs, known)
            inner = value.path
        else:
            side = self._sides.target if isinstance(value, Kept) else self._sides.source
            data, inner = pairs[side.named(value.path[0])], value.path[1:]
        return pc.struct_field(data, list(inner)) if inner else data

    def _cast(self, data: Any, target: DataType, path: Sequence[str]) -> Any:
        arrow = to_arrow_type(target)
        if data.type.equals(arrow):
            return data
        source = from_arrow_type(data.type, path)
        if pa.types.is_nested(data.type) or source == PrimitiveType("void"):
            # Matched by name, and widened; anything more is left to Spark.
            one = StructType((StructField(path[-1], target),))
            try:
                return cast_table(pa.table({path[-1]: data}), one).column(0)
            except SchemaMismatchError as exc:
                raise InvalidPredicateError(
                    f"the column {dotted(path)} can't be set here: {exc} Or use lakelog.spark, "
                    "which casts it.",
                    column=dotted(path),
                ) from exc
        try:
            chunks = [
                cast_data(chunk, source, target, self._sides.context.session_tz)
                for chunk in (data.chunks if isinstance(data, pa.ChunkedArray) else [data])
            ]
        except NotInCoreError as exc:
            raise InvalidPredicateError(
                f"the column {dotted(path)} can't be set: it needs {exc}, which only Spark "
                "evaluates. Use lakelog.spark for it.",
                column=dotted(path),
            ) from None
        except pa.ArrowException as exc:
            raise DeltaAnalysisError(
                f"the column {dotted(path)} of type {target} can't hold a value of the source's "
                f"{sql_path(path)}: {exc}",
                column=dotted(path),
            ) from exc
        return pa.chunked_array(chunks, type=arrow)


def _is_recast(kind: DataType | None, target: DataType) -> bool:
    """Whether values are an array or a map that a writer casts, and finds fields in by name."""
    if not isinstance(kind, ArrayType | MapType):
        return False
    table, data = (StructType((StructField("x", each),)) for each in (target, kind))
    return not any(each.problem == TYPES for each in differences(table, data))


def _no_sql(path: Sequence[str], sql: str, exc: Exception) -> InvalidPredicateError:
    # Elsewhere in Python a string is a value, so the message says how to pass one.
    return InvalidPredicateError(
        f"the column {dotted(path)} can't be set to the SQL {sql!r}: {exc}. To set the string "
        f"itself as the value, use lit({sql!r}).",
        column=dotted(path),
        sql=sql,
    )


def _misfit(
    path: Sequence[str], target: DataType, shown: str, exc: Exception
) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"the column {dotted(path)} of type {target} can't be set to {shown}: {exc}",
        column=dotted(path),
    )


def _whole(data: Any) -> Any:
    return data.combine_chunks() if isinstance(data, pa.ChunkedArray) else data
