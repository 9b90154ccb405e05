"""`pyarrow.compute`, loaded at its first use.

It is a fifth of what importing the core would cost, and a blind append needs none of it. Its
functions are made while it is imported, where no type checker sees them: hence `Any`. What a
short column is asked needs none of it. Where an operand is `None`, a number, a text or a truth of
Python's, pyarrow itself would import pandas to look at it; see `lakelog.core.arrays`.
"""

from __future__ import annotations

import importlib
from functools import lru_cache, wraps
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import scalar_of

if TYPE_CHECKING:
    from collections.abc import Callable

# The import takes as long as some thousand values in a loop.
_WORTH_THE_IMPORT = 1000


_OPERATORS = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("add", "add_checked", "subtract", "subtract_checked"),
        *("multiply", "multiply_checked", "divide", "divide_checked", "bit_wise_and"),
        *("and_", "and_kleene", "or_", "or_kleene", "if_else", "coalesce"),
        *("max_element_wise", "min_element_wise", "binary_join", "binary_join_element_wise"),
    }
)
"""All of whose positional arguments are operands, and none an option."""
_TYPED = frozenset({"fill_null", "index"})
"""Whose second argument has the type of the first."""
_SHORT = 100
"""The characters of a text that is a constant, and kept."""
_TYPES = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    type(None): pa.null(),
}
"""Those that `pyarrow.scalar` takes for them."""
_PLAIN = frozenset(_TYPES)


class _Late:
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module("pyarrow.compute"), name)
        if name in _OPERATORS:
            value = _with_typed_operands(value)
        elif name in _TYPED:
            value = _with_typed_value(value)
        setattr(self, name, value)
        return value


def _with_typed_operands(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(*operands: Any, **options: Any) -> Any:
        if not _PLAIN.isdisjoint(map(type, operands)):
            operands = tuple(map(_operand, operands))
        return function(*operands, **options)

    return called


def _operand(value: Any) -> Any:
    kind = _TYPES.get(type(value))
    if kind is None:
        return value
    try:
        return _made(value, kind)
    except (OverflowError, UnicodeEncodeError):
        return value  # for pyarrow to refuse


def _made(value: Any, kind: pa.DataType) -> Any:
    # To a cache 0.0 and -0.0 would be the same.
    if type(value) is float or (type(value) is str and len(value) > _SHORT):
        return scalar_of(value, kind)
    return _kept(value, kind)


_kept = lru_cache(maxsize=256, typed=True)(scalar_of)


def _with_typed_value(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(values: Any, value: Any) -> Any:
        return function(values, _made(value, values.type) if type(value) in _TYPES else value)

    return called


pc: Any = _Late()


def total(column: Any) -> int:
    """The sum of a column of whole numbers, without its nulls."""
    if len(column) > _WORTH_THE_IMPORT:
        return int(pc.sum(column).as_py() or 0)
    return sum(value for value in column.to_pylist() if value is not None)


def without_nulls(column: Any) -> Any:
    """What `pyarrow.Array.drop_null` gives."""
    if not column.null_count:
        return column
    if len(column) > _WORTH_THE_IMPORT:
        return column.drop_null()
    rows = [number for number, value in enumerate(column) if value.is_valid]
    # In a run of neighbours the numbers grow as their places do.
    runs = [
        [row for _, row in run]
        for _, run in groupby(enumerate(rows), lambda each: each[1] - each[0])
    ]
    parts = [column.slice(run[0], len(run)) for run in runs]
    return pa.concat_arrays(parts) if parts else column.slice(0, 0)
