"""Functions of Spark's SQL on arrays and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError
from lakelog.core.expressions.values.by_rows import by_rows
from lakelog.core.expressions.values.casts import Value, cast_value
from lakelog.core.schema import ArrayType, DataType, MapType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BOOLEAN, _INTEGER = PrimitiveType("boolean"), PrimitiveType("integer")
_SOUGHT: Final = tuple(map(PrimitiveType, (*INTEGERS, "string", "date", "boolean")))
"""Of other elements Python's `==` is not Spark's: NaN equals itself, and times have zones."""


def _size(*kinds: type[DataType]) -> Callable[[Sequence[Value], str], Value]:
    """How many there are. Of null that is null, as in ANSI mode; elsewhere Spark says -1."""

    def apply(values: Sequence[Value], _: str) -> Value:
        (value,) = values
        if not isinstance(value.data_type, kinds):
            raise NotInCoreError(f"the size of {value.data_type}")
        return by_rows(len, _INTEGER, value)

    return apply


def _contains(values: Sequence[Value], zone: str) -> Value:
    array, sought = values
    kind = array.data_type
    if not isinstance(kind, ArrayType) or kind.element_type not in _SOUGHT:
        raise NotInCoreError(f"array_contains of {kind}")
    if sought.data_type not in (kind.element_type, PrimitiveType("void")):
        raise NotInCoreError(f"array_contains of {kind} with {sought.data_type}")

    def found(items: list[Any], wanted: Any) -> bool | None:
        return True if wanted in items else None if None in items else False

    return by_rows(found, _BOOLEAN, array, cast_value(sought, kind.element_type, zone))


def _entries(at: int) -> Callable[[Sequence[Value], str], Value]:
    """The keys of a map, or its values."""

    def apply(values: Sequence[Value], _: str) -> Value:
        (value,) = values
        kind = value.data_type
        if not isinstance(kind, MapType):
            raise NotInCoreError(f"the entries of {kind}")
        part = (kind.key_type, kind.value_type)[at]
        # No key is null; Spark's type of them says that one may be.
        result = ArrayType(part, at == 0 or kind.value_contains_null)
        return by_rows(lambda entries: [entry[at] for entry in entries], result, value)

    return apply


COLLECTIONS: Final[dict[str, Callable[[Sequence[Value], str], Value]]] = {
    "array_contains": _contains,
    "array_size": _size(ArrayType),
    "cardinality": _size(ArrayType, MapType),
    "map_keys": _entries(0),
    "map_values": _entries(1),
    "size": _size(ArrayType, MapType),
}
"""Name in lower case -> the function that computes the result, from arguments and time zone."""
