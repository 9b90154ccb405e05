"""Filters on Arrow data, with Spark's meaning: as an expression for a scan, and on data at hand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from lakelog.core.arrays import scalar_of
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.binding import bind
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.context import DEFAULTS
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    And,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
)
from lakelog.core.expressions.values.simple import simple_condition
from lakelog.core.expressions.values.typed import typed_condition
from lakelog.core.expressions.values.value import array_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakelog.core.expressions.values.value import Value
    from lakelog.core.schema import StructType

pc: Any = pyarrow.compute
"""Its functions are made at import, where no type checker sees them."""

_BOOLEAN = pa.bool_()


def to_arrow_filter(expr: Expression, schema: StructType) -> Any:
    """The filter as a `pyarrow.compute.Expression`: true, false or null a row, as in Spark.

    Raises:
        InvalidPredicateError: an unknown column, or a part that only Spark can evaluate.
    """
    return _translated(bind(expr, schema))


def typed_mask(
    expr: Expression, schema: StructType
) -> Callable[[pa.Table | pa.RecordBatch], pa.BooleanArray]:
    """What evaluates a filter on rows, any number of times; see `evaluate_mask`.

    Raises:
        InvalidPredicateError: an unknown column, or a part that only Spark can evaluate.
    """
    try:
        mask = typed_condition(bind(expr, schema), schema, DEFAULTS)
    except NotInCoreError as exc:
        raise _only_spark(str(exc)) from None
    return partial(_mask, mask)


def evaluate_mask(
    expr: Expression, data: pa.Table | pa.RecordBatch, schema: StructType
) -> pa.BooleanArray:
    """Evaluate a filter on rows: one boolean or null each.

    Args:
        expr: the filter.
        data: columns with the names and Arrow types of the schema.
        schema: the types of the columns.

    Raises:
        InvalidPredicateError: an unknown column, or a part that only Spark can evaluate.
    """
    return typed_mask(expr, schema)(data)


def _mask(mask: Value, data: pa.Table | pa.RecordBatch) -> Any:
    if isinstance(data, pa.RecordBatch):
        return array_for(mask, data)
    if not data.num_columns:
        return array_for(mask, pa.record_batch({"": pa.nulls(data.num_rows)}))
    # Batch by batch: the text of all of them together may not fit into one array.
    found = [array_for(mask, each) for each in data.to_batches() or [_empty(data.schema)]]
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def _only_spark(part: str) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"only Spark can evaluate {part!r}; read the table with lakelog.spark, or filter by "
        "comparisons of columns with values",
        sql=part,
    )


def _translated(expr: Expression) -> Any:
    match expr:
        case And(parts):
            return _joined(pc.and_kleene, map(_translated, parts), empty=True)
        case Or(parts):
            return _joined(pc.or_kleene, map(_translated, parts), empty=False)
        case Not(part):
            return pc.invert(_translated(part))
        case Comparison() | In() | IsNull() | StartsWith():
            return simple_condition(expr, lambda path: pc.field(*path), pc.scalar)
        case Literal(value):
            return pc.scalar(scalar_of(value, _BOOLEAN))
    raise _only_spark(to_sql(expr))


def _joined(function: Any, found: Iterable[Any], *, empty: bool) -> Any:
    """Fold as a balanced tree: Arrow's expressions recurse, and a chain may be long."""
    parts = list(found)
    if not parts:
        return pc.scalar(scalar_of(empty, _BOOLEAN))
    while len(parts) > 1:
        pairs = [function(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) - len(parts) % 2 :]
    return parts[0]
