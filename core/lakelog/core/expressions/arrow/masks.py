"""Filters on Arrow data, with Spark's meaning.

Arrow differs from Spark about NaN (unequal to everything) and null in a set; both are corrected
here. Every function of `pyarrow.compute` takes arrays and expressions alike, so one translation
serves a scan (`to_arrow_filter`) and data at hand (`evaluate_mask`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.comparing import compare
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.binding import bind
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Computed,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
    is_computed,
)
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakelog.core.schema import StructType

pc: Any = pyarrow.compute
"""Its functions are made at import, where no type checker sees them."""

_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_BOOLEAN, _TRUTH = pa.bool_(), PrimitiveType("boolean")


def to_arrow_filter(expr: Expression, schema: StructType) -> Any:
    """The filter as a `pyarrow.compute.Expression`: true, false or null a row, as in Spark.

    Raises:
        InvalidPredicateError: an unknown column, or a part that only Spark can evaluate.
    """
    return _Translator(lambda path: pc.field(*path), pc.scalar).translate(bind(expr, schema))


def evaluate_mask(expr: Expression, data: pa.Table | pa.RecordBatch, schema: StructType) -> Any:
    """Evaluate a filter on rows: one boolean or null each.

    Args:
        expr: the filter.
        data: columns with the names and Arrow types of the schema.
        schema: the types of the columns.

    Returns:
        A `pyarrow.BooleanArray` as long as `data`.

    Raises:
        InvalidPredicateError: an unknown column, or a part that only Spark can evaluate.
    """
    bound = bind(expr, schema)
    if isinstance(data, pa.RecordBatch):
        return _mask(bound, data, schema)
    # Batch by batch: the text of all of them together may not fit into one array.
    batches = data.to_batches() if data.num_columns else [pa.record_batch(_no_columns(data))]
    found = [_mask(bound, each, schema) for each in batches or [_empty(data.schema)]]
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


def _mask(expr: Expression, batch: pa.RecordBatch, schema: StructType) -> Any:
    """One boolean a row; computed parts are not evaluated for rows that another part decides.

    Spark also evaluates `1 / a` in `a != 0 AND 1 / a > 2` only where it has to.
    """
    if isinstance(expr, Not) and is_computed(expr):
        return pc.invert(_mask(expr.part, batch, schema))
    if not isinstance(expr, And | Or) or not is_computed(expr):
        return _plain_mask(expr, batch, schema)
    joins = isinstance(expr, And)
    rest = tuple(each for each in expr.parts if not is_computed(each))
    found = _plain_mask(And(rest) if joins else Or(rest), batch, schema)
    for each in filter(is_computed, expr.parts):
        undecided = pc.fill_null(found if joins else pc.invert(found), True)
        asked = _mask(each, batch.filter(undecided), schema)
        decided = pa.repeat(scalar_of(not joins, pa.bool_()), batch.num_rows)
        whole = pc.replace_with_mask(decided, undecided, asked)
        found = (pc.and_kleene if joins else pc.or_kleene)(found, whole)
    return found


def _plain_mask(bound: Expression, batch: pa.RecordBatch, schema: StructType) -> Any:
    def column(path: tuple[str, ...]) -> Any:
        values = batch.column(path[0])
        return pc.struct_field(values, list(path[1:])) if len(path) > 1 else values

    def compute(each: Computed) -> Any:
        if each.arrow is not None:
            from lakelog.core.expressions.arrow.given import arrow_mask

            return arrow_mask(each, batch)
        from lakelog.core.expressions.values.evaluate import evaluate_value

        rows = pa.Table.from_batches([batch])
        found = evaluate_value(each.sql, rows, schema, _TRUTH, each.context, root=each.root)
        return found.combine_chunks()

    found = _Translator(column, lambda value: value, compute).translate(bound)
    return pa.repeat(found, batch.num_rows) if isinstance(found, pa.Scalar) else found


def _no_columns(data: pa.Table) -> dict[str, pa.Array[Any]]:
    """A column that carries the number of rows."""
    return {"": pa.nulls(data.num_rows)}


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


class _Translator:
    """Builds the result bottom up, from columns and constants of one kind or the other."""

    def __init__(
        self,
        column: Callable[[tuple[str, ...]], Any],
        constant: Callable[[Any], Any],
        compute: Callable[[Computed], Any] | None = None,
    ) -> None:
        self._column = column
        self._compute = compute
        self._constant = constant
        self._null = constant(scalar_of(None, _BOOLEAN))

    def translate(self, expr: Expression) -> Any:
        match expr:
            case And(parts):
                return self._join(pc.and_kleene, map(self.translate, parts), empty=True)
            case Or(parts):
                return self._join(pc.or_kleene, map(self.translate, parts), empty=False)
            case Not(part):
                return pc.invert(self.translate(part))
            case Comparison(op, left, right):
                return self._comparison(op, left, right)
            case In(column, values):
                return self._in(column, values)
            case IsNull(column):
                return pc.is_null(self._column(column.path))
            case StartsWith(column, prefix):
                return pc.starts_with(self._column(column.path), pattern=prefix)
            case Computed() if self._compute is not None:
                return self._compute(expr)
            case Literal(value, _):
                return self._constant(scalar_of(value, _BOOLEAN))
        raise InvalidPredicateError(
            f"only Spark can evaluate {to_sql(expr)!r}; read the table with lakelog.spark, or "
            "filter by comparisons of columns with values",
            sql=to_sql(expr),
        )

    def _join(self, function: Any, found: Iterable[Any], *, empty: bool) -> Any:
        """Fold as a balanced tree: Arrow's expressions recurse, and a chain may be long."""
        parts = list(found)
        if not parts:
            return self._constant(scalar_of(empty, _BOOLEAN))
        while len(parts) > 1:
            pairs = [function(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[len(parts) - len(parts) % 2 :]
        return parts[0]

    def _comparison(self, op: str, left: Column, right: Column | Literal) -> Any:
        a = self._column(left.path)
        nans = left.data_type in _FLOATS
        if isinstance(right, Column):
            return compare(op, a, self._column(right.path), nans=nans, b_nan=None)
        if right.value is None:
            # Only `<=>` has a result for null.
            return pc.is_null(a) if op == "<=>" else self._null
        assert right.data_type is not None
        kind = to_arrow_type(right.data_type)
        if right.data_type != left.data_type:
            # Spark rounds a long to a double where Arrow, unasked, would fail.
            a = a.cast(kind, safe=not pa.types.is_floating(kind))
        b_nan = isinstance(right.value, float) and math.isnan(right.value)
        return compare(op, a, scalar_of(right.value, kind), nans=nans, b_nan=b_nan)

    def _in(self, given: Column, values: tuple[Literal, ...]) -> Any:
        known = [v for v in values if v.value is not None]
        if not known:
            return self._null if values else self._constant(scalar_of(False, _BOOLEAN))
        a = self._column(given.path)
        assert known[0].data_type is not None
        kind = to_arrow_type(known[0].data_type)
        if known[0].data_type != given.data_type:
            a = a.cast(kind, safe=not pa.types.is_floating(kind))
        members = array_of([v.value for v in known], kind)
        if pa.types.is_floating(kind):
            found = _in_floats(a, members)
        else:
            found = pc.is_in(a, value_set=members)
        found = pc.if_else(pc.is_valid(a), found, _NULL)
        return found if len(known) == len(values) else pc.or_kleene(found, self._null)


def _in_floats(a: Any, members: Any) -> Any:
    """A set tells -0.0 from 0.0, which adding 0.0 makes one, and may not know NaN again."""
    zero = scalar_of(0.0, members.type)
    found = pc.is_in(pc.add(a, zero), value_set=pc.add(members, zero))
    return pc.or_kleene(found, pc.is_nan(a)) if pc.any(pc.is_nan(members)).as_py() else found


_NULL = pa.nulls(1, _BOOLEAN)[0]
