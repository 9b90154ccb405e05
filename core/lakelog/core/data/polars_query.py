"""A scan as a query of Polars (a LazyFrame), which asks for its columns, rows and condition.

What of Polars' condition is a comparison of a column with a value also leaves out files and row
groups; Polars filters by the whole condition in any case.
"""

from __future__ import annotations

import json
import warnings
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from lakelog.core.arrays import empty_table
from lakelog.core.errors import DeltaError
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
    columns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Narrowed: TypeAlias = Callable[[Sequence[str] | None, Expression | None], Any]

__all__ = ["lazy_frame", "pushed_condition"]

_OPERATORS: Final = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_EPOCH: Final = date(1970, 1, 1)


def lazy_frame(schema: pa.Schema, narrowed: Narrowed, polars: Any) -> Any:
    """A LazyFrame whose rows are read when it is collected.

    Args:
        schema: of the rows.
        narrowed: `Scan.narrowed`, which gives them.
        polars: the module.
    """
    from polars.io.plugins import register_io_source

    def source(
        with_columns: Sequence[str] | None,
        predicate: Any,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[Any]:
        condition = pushed_condition(predicate)
        if condition is not None and not rounded.isdisjoint(path[0] for path in columns(condition)):
            condition = None
        rows = narrowed(with_columns, condition)
        left = n_rows
        for batch in rows.to_batches(batch_size or None):
            frame = polars.from_arrow(batch)
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame
            if left == 0:
                return

    # Polars rounds a value to such a column's type, and Spark's rules widen the column.
    rounded = {
        each.name
        for each in schema
        if pa.types.is_float32(each.type) or pa.types.is_decimal(each.type)
    }
    kinds = polars.from_arrow(empty_table(schema)).schema
    return register_io_source(source, schema=kinds)


def pushed_condition(predicate: Any) -> Expression | None:
    """What of a condition of Polars is understood here: true for all rows that it is true for."""
    if predicate is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Polars promises nothing about the form
            tree = json.loads(predicate.meta.serialize(format="json"))
        return _weakened(tree)
    except (AttributeError, KeyError, TypeError, ValueError, DeltaError):
        return None


def _weakened(node: Any) -> Expression | None:
    """A condition that is true wherever the node is; `None` where nothing is known."""
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    if binary is None:
        return _null_check(node)
    op = binary["op"]
    if op in ("And", "LogicalAnd"):
        parts = [_weakened(binary[side]) for side in ("left", "right")]
        known = tuple(each for each in parts if each is not None)
        return And(known) if len(known) > 1 else next(iter(known), None)
    if op in ("Or", "LogicalOr"):
        one, other = _weakened(binary["left"]), _weakened(binary["right"])
        return None if one is None or other is None else Or((one, other))
    if op not in _OPERATORS:
        return None
    name, left, right = _OPERATORS[op], binary["left"], binary["right"]
    if "Literal" in left:
        name, left, right = _TURNED[name], right, left
    if "Column" not in left or "Literal" not in right:
        return None
    return Comparison(name, Column((left["Column"],)), Literal(_value(right["Literal"])))


def _null_check(node: Any) -> Expression | None:
    function = node["Function"]
    kind, (given,) = function["function"]["Boolean"], function["input"]
    column = Column((given["Column"],))
    if kind == "IsNull":
        return IsNull(column)
    return Not(IsNull(column)) if kind == "IsNotNull" else None


def _value(literal: Any) -> Any:
    ((_, typed),) = literal.items()
    ((kind, value),) = typed.items()
    if kind == "Date":
        return _EPOCH + timedelta(days=value)
    plain = kind in ("Int", "String", "Boolean") or kind.startswith(("Int", "UInt", "Float"))
    # JSON has neither NaN nor infinity, and null in their place.
    if not plain or value is None or isinstance(value, dict | list):
        raise ValueError(kind)
    return value
