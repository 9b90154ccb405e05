"""Functions that are computed by Python, row by row: what Arrow lacks, or gives another meaning."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.values.value import computed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lakelog.core.expressions.values.value import Value
    from lakelog.core.schema import DataType


text_limit: Final[ContextVar[int]] = ContextVar("lakelog_text_limit", default=(1 << 31) - 1)
"""Characters of the texts that a function makes for one batch of rows; none of Arrow's arrays, and
no text of Spark's, has more bytes than this by default."""


def check_length(characters: int) -> None:
    """Refuse to make texts of more characters than `text_limit`.

    Raises:
        NotInCoreError: they are more.
    """
    if characters > text_limit.get():
        raise NotInCoreError(
            f"a function whose texts have more than {text_limit.get():,} characters"
        )


def by_rows(
    function: Callable[..., Any],
    result: DataType,
    *values: Value,
    nulls: bool = False,
    nullable: bool | None = None,
) -> Value:
    """What a function gives for each row; null where one of the values is.

    Args:
        function: gets a value of each.
        result: the type of what it gives.
        values: its arguments.
        nulls: whether the function is also called for nulls.
        nullable: see `computed`; true of a function that may give `None` for what is not null.
    """
    arrow = to_arrow_type(result)

    def compute(*data: Any) -> Any:
        return row_results(function, arrow, data, nulls=nulls)

    return computed(result, compute, *values, nullable=nullable)


def row_results(
    function: Callable[..., Any], arrow: pa.DataType, data: Sequence[Any], *, nulls: bool = False
) -> Any:
    """The results of a function for each row of some arrays, or for scalars.

    Raises:
        pyarrow.ArrowInvalid: a result does not fit the type.
        NotInCoreError: texts have more characters than `text_limit`.
    """

    def called(row: tuple[Any, ...]) -> Any:
        return None if not nulls and None in row else function(*row)

    columns = (each.to_pylist() for each in as_columns(data))
    results = (called(row) for row in zip(*columns, strict=True))
    found = list(_limited(results) if pa.types.is_string(arrow) else results)
    try:
        if all(isinstance(each, pa.Scalar) for each in data):
            return scalar_of(found[0], arrow)
        return array_of(found, arrow)
    except OverflowError:
        raise pa.ArrowInvalid(f"a result that does not fit {arrow}") from None


def _limited(texts: Iterable[Any]) -> Iterator[Any]:
    characters = 0
    for text in texts:
        if text is not None:
            characters += len(text)
            check_length(characters)
        yield text


def as_columns(data: Sequence[Any]) -> list[Any]:
    """Arrays of one length, which is 1 where none of the data is an array."""
    count = next((len(each) for each in data if not isinstance(each, pa.Scalar)), 1)
    return [pa.repeat(each, count) if isinstance(each, pa.Scalar) else each for each in data]


def by_columns(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays of one length as one of any data, scalars among them."""

    def compute(*data: Any) -> Any:
        found = function(*as_columns(data))
        return found[0] if all(isinstance(each, pa.Scalar) for each in data) else found

    return compute


def plain(value: Value | None, kind: type[Any], default: Any = None) -> Any:
    """An argument that has to be the same for every row; `default` where it is not given.

    Raises:
        NotInCoreError: it is not.
    """
    if value is None:
        return default
    found = value.of(None).as_py() if value.constant else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise NotInCoreError("an argument that is not a plain value")
    return found
