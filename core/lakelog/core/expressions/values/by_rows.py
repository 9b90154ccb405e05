"""Functions that are computed by Python, row by row: what Arrow lacks, or gives another meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.casts import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.schema import DataType


def by_rows(
    function: Callable[..., Any], result: DataType, *values: Value, nulls: bool = False
) -> Value:
    """What a function gives for each row; null where one of the values is.

    Args:
        function: gets a value of each.
        result: the type of what it gives.
        values: its arguments.
        nulls: whether the function is asked about nulls, too.

    Raises:
        pyarrow.ArrowInvalid: a result does not fit the type.
    """
    arrow = to_arrow_type(result)

    def called(row: tuple[Any, ...]) -> Any:
        return None if not nulls and None in row else function(*row)

    if all(isinstance(each.data, pa.Scalar) for each in values):
        row = tuple(each.data.as_py() for each in values)
        return Value(scalar_of(called(row), arrow), result)
    columns = as_columns(values)
    found = [called(row) for row in zip(*(each.to_pylist() for each in columns), strict=True)]
    try:
        return Value(array_of(found, arrow), result)
    except OverflowError as exc:
        raise pa.ArrowInvalid(str(exc)) from None


def as_columns(values: Sequence[Value]) -> list[Any]:
    """The data of values as arrays of one length, which is 1 where none of them is an array."""
    arrays = (each.data for each in values if not isinstance(each.data, pa.Scalar))
    count = len(next(arrays, (None,)))
    return [
        pa.repeat(each.data, count) if isinstance(each.data, pa.Scalar) else each.data
        for each in values
    ]


def plain(value: Value, kind: type[Any]) -> Any:
    """An argument that has to be the same for every row.

    Raises:
        NotInCoreError: it is not.
    """
    found = value.data.as_py() if isinstance(value.data, pa.Scalar) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise NotInCoreError("an argument that is not a plain value")
    return found
