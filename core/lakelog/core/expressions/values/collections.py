"""Functions of Spark's SQL on arrays and maps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import INTEGERS, NotInCoreError
from lakelog.core.expressions.values.by_rows import by_columns, by_rows
from lakelog.core.expressions.values.casts import cast_value
from lakelog.core.expressions.values.value import computed
from lakelog.core.schema import ArrayType, DataType, MapType, PrimitiveType

if TYPE_CHECKING:
    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.values.value import Rule, Value

_BOOLEAN, _INTEGER = PrimitiveType("boolean"), PrimitiveType("integer")
_VOID = PrimitiveType("void")
_PLACES: Final = tuple(map(PrimitiveType, INTEGERS[:3]))
_SOUGHT: Final = tuple(map(PrimitiveType, (*INTEGERS, "string", "date", "boolean")))
"""Of other elements Python's `==` is not Spark's: NaN equals itself, and times have zones."""


def _size(*kinds: type[DataType]) -> Rule:
    """How many there are. Of null that is null, as in ANSI mode; elsewhere Spark says -1."""

    def apply(_: EvalContext, value: Value) -> Value:
        if not isinstance(value.data_type, kinds):
            raise NotInCoreError(f"the size of {value.data_type}")
        return by_rows(len, _INTEGER, value)

    return apply


def _contains(context: EvalContext, array: Value, sought: Value) -> Value:
    kind = array.data_type
    if not isinstance(kind, ArrayType) or kind.element_type not in _SOUGHT:
        raise NotInCoreError(f"array_contains of {kind}")
    if sought.data_type not in (kind.element_type, _VOID):
        raise NotInCoreError(f"array_contains of {kind} with {sought.data_type}")

    def found(items: list[Any], wanted: Any) -> bool | None:
        return True if wanted in items else None if None in items else False

    sought = cast_value(sought, kind.element_type, context)
    unsure = True if kind.contains_null else None
    return by_rows(found, _BOOLEAN, array, sought, nullable=unsure)


def _entries(at: int) -> Rule:
    """The keys of a map, or its values."""

    def apply(_: EvalContext, value: Value) -> Value:
        kind = value.data_type
        if not isinstance(kind, MapType):
            raise NotInCoreError(f"the entries of {kind}")
        part = (kind.key_type, kind.value_type)[at]
        # No key is null; Spark's type of them says that one may be.
        result = ArrayType(part, at == 0 or kind.value_contains_null)
        return by_rows(lambda entries: [entry[at] for entry in entries], result, value)

    return apply


def elements_at(arrays: Any, places: Any) -> Any:
    """One element of each array.

    Args:
        arrays: a list array.
        places: from 0, below the array's size; null gives null.
    """
    starts = arrays.offsets.slice(0, len(arrays))
    return arrays.values.take(pc.add(starts, places))


def _element_at(context: EvalContext, held: Value, sought: Value, *, tries: bool = False) -> Value:
    match held.data_type:
        case MapType(key, result) if key in _SOUGHT and sought.data_type in (key, _VOID):
            find, kind = _value_of, key
        case ArrayType(result) if sought.data_type in _PLACES:
            find, kind = partial(_counted_at, tries=tries), _INTEGER
        case _:
            raise NotInCoreError(f"element_at of {held.data_type} with {sought.data_type}")
    sought = cast_value(sought, kind, context)
    return computed(result, by_columns(find), held, sought, nullable=True)


def _counted_at(arrays: Any, places: Any, *, tries: bool) -> Any:
    """Elements of arrays by their numbers, from 1 or, from the end, from -1."""
    sizes = pc.list_value_length(arrays)
    if pc.any(pc.and_(pc.equal(places, 0), pc.is_valid(sizes)), min_count=0).as_py():
        raise pa.ArrowInvalid("element_at counts from 1, or from -1 from the end")
    least = pc.if_else(pc.less(places, 0), pc.add(sizes, places), pc.subtract(places, 1))
    inside = pc.and_(pc.greater_equal(least, 0), pc.less(least, sizes))
    if not tries and pc.all(inside, min_count=0).as_py() is False:
        row = pc.index(inside, False).as_py()
        raise pa.ArrowInvalid(
            f"an array of {sizes[row]} elements has no element {places[row]}: try_element_at would "
            "give null (INVALID_ARRAY_INDEX_IN_ELEMENT_AT)"
        )
    return elements_at(arrays, pc.if_else(inside, least, scalar_of(None, pa.int32())))


def _value_of(maps: Any, wanted: Any) -> Any:
    """The values of keys; null where a map has no such key."""
    keys, ends = maps.keys.to_pylist(), maps.offsets.to_pylist()

    def place(row: int, key: Any) -> int | None:
        return next((at for at in range(ends[row], ends[row + 1]) if keys[at] == key), None)

    places = [
        place(row, key) if valid and key is not None else None
        for row, (key, valid) in enumerate(
            zip(wanted.to_pylist(), maps.is_valid().to_pylist(), strict=True)
        )
    ]
    return maps.items.take(array_of(places, pa.int32()))


COLLECTIONS: Final[dict[str, Rule]] = {
    "array_contains": _contains,
    "array_size": _size(ArrayType),
    "cardinality": _size(ArrayType, MapType),
    "element_at": _element_at,
    "map_keys": _entries(0),
    "map_values": _entries(1),
    "size": _size(ArrayType, MapType),
    "try_element_at": partial(_element_at, tries=True),
}
"""By name in lower case."""
