"""A scan as a query of Polars (a LazyFrame), which asks for its columns, rows and condition.

What of Polars' condition is a comparison of a column with a value also leaves out files and row
groups; Polars filters by the whole condition in any case.
"""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from lakelog.core.arrays import empty_table
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from polars import LazyFrame

    Narrowed: TypeAlias = Callable[[Sequence[str] | None, Expression | None], Any]

_OPERATORS: Final = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_BETWEEN: Final = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 # of times without a zone too
_PER_MICRO: Final = {"Milliseconds": (1000, 1), "Microseconds": (1, 1), "Nanoseconds": (1, 1000)}


def lazy_frame(schema: pa.Schema, narrowed: Narrowed, polars: Any) -> LazyFrame:
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
        condition = pushed_condition(predicate, rounded)
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


def pushed_condition(predicate: Any, rounded: Collection[str] = ()) -> Expression | None:
    """What of a condition of Polars is understood here: true for all rows that it is true for.

    Args:
        predicate: the condition; every row meets `None`.
        rounded: columns whose comparisons are left to Polars.
    """
    if predicate is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Polars promises nothing about the form
            tree = json.loads(predicate.meta.serialize(format="json"))
    except (AttributeError, ValueError):
        return None
    return _weakened(tree, rounded)


def _weakened(node: Any, rounded: Collection[str]) -> Expression | None:
    """A condition that is true wherever the node is; `None` where nothing is known."""
    binary = node.get("BinaryExpr", {}) if isinstance(node, dict) else {}
    op = binary.get("op")
    if op in ("And", "LogicalAnd"):
        parts = [_weakened(binary[side], rounded) for side in ("left", "right")]
        known = tuple(each for each in parts if each is not None)
        return And(known) if len(known) > 1 else next(iter(known), None)
    if op in ("Or", "LogicalOr"):
        one, other = (_weakened(binary[side], rounded) for side in ("left", "right"))
        return None if one is None or other is None else Or((one, other))
    try:
        return _comparison(binary, rounded) if binary else _function(node, rounded)
    except (KeyError, TypeError, ValueError):
        return None


def _comparison(binary: Any, rounded: Collection[str]) -> Expression | None:
    name, left, right = _OPERATORS[binary["op"]], binary["left"], binary["right"]
    if "Literal" in left:
        name, left, right = _TURNED[name], right, left
    if left["Column"] in rounded:
        return None
    # To Polars `'a'` and `'a  '`, as a CHAR has it, are two strings.
    value = Literal(_value(right["Literal"]), exact=True)
    return Comparison(name, Column((left["Column"],)), value)


def _function(node: Any, rounded: Collection[str]) -> Expression | None:
    kind = node["Function"]["function"]["Boolean"]
    given, *limits = node["Function"]["input"]
    column = Column((given["Column"],))
    if kind == "IsNull":
        return IsNull(column)
    if kind == "IsNotNull":
        return Not(IsNull(column))
    ends = _BETWEEN[kind["IsBetween"]["closed"]]
    if given["Column"] in rounded:
        return None
    values = [Literal(_value(each["Literal"]), exact=True) for each in limits]
    return And(tuple(Comparison(op, column, v) for op, v in zip(ends, values, strict=True)))


def _value(literal: Any) -> Any:
    ((_, typed),) = literal.items()
    ((kind, value),) = typed.items()
    if kind == "Date":
        return _EPOCH.date() + timedelta(days=value)
    if kind == "Datetime":
        return _moment(*value)
    plain = kind in ("Int", "String", "Boolean") or kind.startswith(("Int", "UInt", "Float"))
    # JSON has neither NaN nor infinity, and null in their place.
    if not plain or value is None or isinstance(value, dict | list):
        raise ValueError(kind)
    return value


def _moment(count: int, unit: str, zone: Any) -> datetime:
    times, of = _PER_MICRO[unit]
    micros, rest = divmod(count * times, of)
    if rest:
        raise ValueError(unit)
    found = _EPOCH + timedelta(microseconds=micros)
    # The count is of UTC, whatever the zone in which Polars shows it.
    return found if zone is None else found.replace(tzinfo=UTC)
