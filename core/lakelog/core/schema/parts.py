"""What is within arrays and maps: the one way down for whatever walks, compares or merges types.

What becomes of the fields of structs each caller says itself: some find them by name, some by
position, and some change them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.schema.types import ArrayType, DataType, MapType

if TYPE_CHECKING:
    from collections.abc import Sequence


def parts_of(kind: DataType) -> list[tuple[str, DataType]]:
    """The steps of a path (`element`, or `key` and `value`) and the types there.

    Args:
        kind: nothing is within any other type than an array or a map.
    """
    match kind:
        case ArrayType(element):
            return [("element", element)]
        case MapType(key, value):
            return [("key", key), ("value", value)]
    return []


def paired_parts(one: DataType, other: DataType) -> list[tuple[str, DataType, DataType]]:
    """The steps and types of `parts_of` for two arrays, or two maps; nothing for all else."""
    if type(one) is not type(other):
        return []
    both = zip(parts_of(one), parts_of(other), strict=True)
    return [(step, mine, theirs) for (step, mine), (_, theirs) in both]


def with_parts(kind: DataType, parts: Sequence[DataType]) -> DataType:
    """An array or a map with other types within it; all else, and without parts, as it is.

    Args:
        kind: what may be null within it stays so.
        parts: in the order of `parts_of`.
    """
    if not parts:
        return kind
    match kind:
        case ArrayType():
            return ArrayType(parts[0], kind.contains_null)
        case MapType():
            return MapType(parts[0], parts[1], kind.value_contains_null)
    return kind
