"""Conditions that statistics answer, on Arrow data: a column beside constants, or two columns.

Arrow differs from Spark about NaN (unequal to everything) and null in a set; both are corrected
here. Every function of `pyarrow.compute` takes arrays and expressions alike, so one translation
serves a scan and data at hand.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.comparing import compare
from lakelog.core.compute import pc
from lakelog.core.expressions.tree import Column, Comparison, In, IsNull, StartsWith
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable

_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_BOOLEAN = pa.bool_()
_NULL = pa.nulls(1, _BOOLEAN)[0]


def simple_condition(
    expr: Comparison | In | IsNull | StartsWith,
    column: Callable[[tuple[str, ...]], Any],
    constant: Callable[[Any], Any],
) -> Any:
    """A bound condition: true, false or null a row, as in Spark.

    Args:
        expr: the condition.
        column: gives the data at a path, or an expression of pyarrow for them.
        constant: makes a scalar what goes with those.
    """
    match expr:
        case Comparison():
            return _comparison(expr, column, constant)
        case In():
            return _in(expr, column, constant)
        case IsNull(found):
            return pc.is_null(column(found.path))
        case StartsWith(found, prefix):
            return pc.starts_with(column(found.path), pattern=prefix)


def _comparison(expr: Comparison, column: Callable[..., Any], constant: Callable[..., Any]) -> Any:
    op, left, right = expr.op, expr.left, expr.right
    a = column(left.path)
    nans = left.data_type in _FLOATS
    if isinstance(right, Column):
        return compare(op, a, column(right.path), nans=nans, b_nan=None)
    if right.value is None:
        # Only `<=>` has a result for null.
        return pc.is_null(a) if op == "<=>" else constant(_NULL)
    assert right.data_type is not None
    kind = to_arrow_type(right.data_type)
    if right.data_type != left.data_type:
        # Spark rounds a long to a double where Arrow, unasked, would fail.
        a = a.cast(kind, safe=not pa.types.is_floating(kind))
    b_nan = isinstance(right.value, float) and math.isnan(right.value)
    return compare(op, a, scalar_of(right.value, kind), nans=nans, b_nan=b_nan)


def _in(expr: In, column: Callable[..., Any], constant: Callable[..., Any]) -> Any:
    given, values = expr.column, expr.values
    known = [v for v in values if v.value is not None]
    if not known:
        return constant(_NULL if values else scalar_of(False, _BOOLEAN))
    a = column(given.path)
    assert known[0].data_type is not None
    kind = to_arrow_type(known[0].data_type)
    if known[0].data_type != given.data_type:
        a = a.cast(kind, safe=not pa.types.is_floating(kind))
    members = array_of([v.value for v in known], kind)
    is_in = _in_floats if pa.types.is_floating(kind) else pc.is_in
    found = pc.if_else(pc.is_valid(a), is_in(a, members), _NULL)
    return found if len(known) == len(values) else pc.or_kleene(found, constant(_NULL))


def _in_floats(a: Any, members: Any) -> Any:
    """A set tells -0.0 from 0.0, which adding 0.0 makes one, and may not know NaN again."""
    zero = scalar_of(0.0, members.type)
    found = pc.is_in(pc.add(a, zero), pc.add(members, zero))
    return pc.or_kleene(found, pc.is_nan(a)) if pc.any(pc.is_nan(members)).as_py() else found
