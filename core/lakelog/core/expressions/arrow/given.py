"""Conditions given as expressions of pyarrow, which mean what pyarrow means by them.

Such an expression can't be inspected; the columns it refers to are found by leaving out one at a
time.
"""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import empty_table
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.tree import Computed, Literal
from lakelog.core.expressions.values.by_arrow import arrow_value
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from lakelog.core.schema import StructType

_BOOLEAN = PrimitiveType("boolean")
_WORDS = re.compile(r"\w+(?:\.\w+)*").findall


def is_arrow_expression(given: object) -> bool:
    """Whether it is a `pyarrow.compute.Expression`; loads nothing."""
    kind = type(given)
    return kind.__name__ == "Expression" and kind.__module__.startswith("pyarrow")


def arrow_condition(given: Any, schema: StructType) -> Computed | Literal:
    """The condition as part of a filter.

    Raises:
        InvalidPredicateError: it names an unknown column, or one by its position,
            compares what can't be compared, or results in anything but true and false.
    """
    try:
        names, kind = named_columns(given, to_arrow_schema(schema))
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise InvalidPredicateError(
            f"the condition {given} does not fit the columns {', '.join(schema.names)}: {exc}",
            known=schema.names,
        ) from exc
    if kind != pa.bool_():
        raise InvalidPredicateError(f"{given} is of type {kind}, not a condition")
    if not names:
        return Literal(arrow_value(given, pa.table({"": pa.nulls(1)}))[0].as_py(), _BOOLEAN)
    columns = frozenset((name,) for name in names)
    return Computed(str(given), columns, arrow=pickle.dumps(given))


def named_columns(given: Any, columns: pa.Schema) -> tuple[list[str], pa.DataType]:
    """The columns that an expression of pyarrow names, and the type of what it gives.

    Args:
        given: a `pyarrow.compute.Expression`.
        columns: every column that it may name.

    Raises:
        ValueError: it names an unknown column, or one by its position, or does not fit the types.
        TypeError: likewise.
    """
    # Fails for a column by its position: where one column is missing, that is the next one.
    pickle.dumps(given)
    # Most names stand in the text as they are, and then no other column has to be looked at.
    words = dict.fromkeys(_WORDS(str(given)))
    rows = _empty(columns, [word for word in words if columns.get_field_index(word) >= 0])
    if not _fits(given, rows):
        rows = empty_table(columns)
    found = arrow_value(given, rows)

    def used(names: list[str]) -> list[str]:
        # Halves that it can do without are never looked at column by column.
        if not names or _fits(given, rows.drop_columns(names)):
            return []
        if len(names) == 1:
            return names
        middle = len(names) // 2
        return used(names[:middle]) + used(names[middle:])

    return used(rows.column_names), found.type


def _empty(columns: pa.Schema, names: list[str]) -> pa.Table:
    return empty_table(pa.schema([columns.field(name) for name in names]))


def _fits(given: Any, rows: pa.Table) -> bool:
    try:
        arrow_value(given, rows)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True
