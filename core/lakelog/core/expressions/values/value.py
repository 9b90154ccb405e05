"""The nodes of a typed tree: what type each has, and how its data are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import DataType

_ONE_ROW: Final = pa.record_batch({"": pa.nulls(1)})


class Value(NamedTuple):
    """A node of an expression over a schema: one value a row, or one for all of them."""

    data_type: DataType
    of: Callable[[Any], Any]
    """Of a `pyarrow.RecordBatch` a `pyarrow.Array`, or a `pyarrow.Scalar` for all rows."""
    nullable: bool = True
    """Whether it may be null in some row."""
    constant: bool = False
    """Whether no column is in it. Then it is computed already, if it has a value at all."""
    char: int = -1
    """Of a CHAR column its length; 0 for text that one is filled up beside; else -1."""
    error: pa.ArrowException | None = None
    """Why a constant within it has no value. In `if(a = 0, 0, 1 / 0)` a row may not ask for it."""
    node: Expression | None = None
    """What it is the value of; `None` of a step within a function."""
    parts: tuple[Value, ...] = ()
    """The nodes that this one is made of, in the order of the text; of bound ones the columns."""
    may_fail: bool = False
    """Whether some value of it could be an error: arithmetic, casts, any function."""


Rule: TypeAlias = "Callable[..., Value]"
"""What a function gives for a context and its arguments: the type, and what computes it."""


def known(scalar: pa.Scalar[Any], kind: DataType) -> Value:
    """A value that is the same for every row."""
    return Value(kind, lambda _: scalar, nullable=not scalar.is_valid, constant=True)


def computed(
    kind: DataType,
    function: Callable[..., Any],
    *parts: Value,
    nullable: bool | None = None,
) -> Value:
    """What a function gives for the data of some values.

    Args:
        kind: the type of what it gives.
        function: gets the data of each, for one batch of rows after the other; of constants at
            once.
        parts: the values.
        nullable: whether the result may be null; `None` where it may be if one of the values may.
    """

    def of(rows: Any) -> Any:
        return function(*[each.of(rows) for each in parts])

    return made_of(parts, kind, of, nullable=nullable)


def made_of(
    parts: Sequence[Value],
    kind: DataType,
    of: Callable[[Any], Any],
    *,
    nullable: bool | None = None,
) -> Value:
    """A value that asks for its parts itself; see `computed`."""
    if nullable is None:
        nullable = any(each.nullable for each in parts)
    error = next((each.error for each in parts if each.error is not None), None)
    if not all(each.constant for each in parts):
        return Value(kind, of, nullable, error=error)
    try:
        found = of(_ONE_ROW)
    except pa.ArrowException as exc:
        return Value(kind, lambda _: of(_ONE_ROW), nullable, constant=True, error=error or exc)
    return known(found if isinstance(found, pa.Scalar) else found[0], kind)


def array_for(value: Value, batch: pa.RecordBatch) -> Any:
    """The data of a value, one for each of some rows."""
    found = value.of(batch)
    return pa.repeat(found, batch.num_rows) if isinstance(found, pa.Scalar) else found
