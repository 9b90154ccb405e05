"""Conditions given as expressions of pyarrow, which mean what pyarrow means by them.

Such an expression shows nothing of what is in it; which columns it refers to is found by leaving
each of them out.
"""

from __future__ import annotations

import functools
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrow_mapping import to_arrow_schema
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions import Computed, Literal
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from lakelog.core.schema import StructType

__all__ = ["arrow_condition", "arrow_mask", "is_arrow_expression"]

_BOOLEAN = PrimitiveType("boolean")
_ROW = "\0row"


def is_arrow_expression(given: object) -> bool:
    """Whether it is a `pyarrow.compute.Expression`; loads nothing."""
    kind = type(given)
    return kind.__name__ == "Expression" and kind.__module__.startswith("pyarrow")


def arrow_condition(given: Any, schema: StructType) -> Computed | Literal:
    """The condition as part of a filter.

    Raises:
        InvalidPredicateError: it names a column that there is not, or one by its position,
            compares what can't be compared, or gives something else than true and false.
    """
    rows = to_arrow_schema(schema).empty_table()
    try:
        # Fails for a column by its position: without one column, that is the next one.
        pickled = pickle.dumps(given)
        found = _value(given, rows)
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise InvalidPredicateError(
            f"the condition {given} does not fit the columns {', '.join(schema.names)}: {exc}",
            known=schema.names,
        ) from exc
    if found.type != pa.bool_():
        raise InvalidPredicateError(f"{given} is of type {found.type}, and no condition")
    names = [name for name in schema.names if not _fits(given, rows.drop_columns([name]))]
    if not names:
        return Literal(_value(given, pa.table({"": pa.nulls(1)}))[0].as_py(), _BOOLEAN)
    columns = frozenset((name,) for name in names)
    return Computed(str(given), columns, arrow=pickled)


def arrow_mask(condition: Computed, batch: pa.RecordBatch) -> Any:
    """The condition for each row: true, false or null.

    Raises:
        DeltaAnalysisError: a row for which it has no result.
    """
    assert condition.arrow is not None
    try:
        return _value(_expression(condition.arrow), pa.Table.from_batches([batch]))
    except pa.ArrowException as exc:
        raise DeltaAnalysisError(
            f"the condition {condition.sql} has no value for some row: {exc}", sql=condition.sql
        ) from exc


def _fits(given: Any, rows: pa.Table) -> bool:
    try:
        _value(given, rows)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True


def _value(expression: Any, rows: pa.Table) -> Any:
    import pyarrow.dataset

    dataset: Any = pyarrow.dataset
    # A column beside it keeps the number of rows where the expression names none.
    numbered = rows.append_column(_ROW, pa.nulls(rows.num_rows))
    wanted = {"value": expression, _ROW: dataset.field(_ROW)}
    scanner = dataset.dataset(numbered).scanner(columns=wanted, use_threads=False)
    found = scanner.to_table().column("value").combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


@functools.lru_cache(maxsize=64)
def _expression(pickled: bytes) -> Any:
    return pickle.loads(pickled)  # our own, of this very process or its driver
