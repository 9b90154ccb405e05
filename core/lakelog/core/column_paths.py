"""The text form of a column's path: `a.b`, with backticks where a name needs them.

The same text stands in messages, in `delta.dataSkippingStatsColumns` and in the constraints that
we hand to Spark, so it is SQL: a name that holds a dot, a backtick, or anything else that is no
plain identifier is quoted, and a backtick within is doubled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakelog.core.schema import ArrayType, DataType, MapType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["dotted", "map_types", "quoted", "split_path", "sql_path", "walk"]

_PLAIN = re.compile(r"\w+")
_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def quoted(name: str) -> str:
    """A name as one part of a path; backticks only where they are needed."""
    if _PLAIN.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def dotted(path: Iterable[str]) -> str:
    """The text of a path: `a.b`, `` `odd name`.c ``."""
    return ".".join(quoted(part) for part in path)


def sql_path(path: Iterable[str]) -> str:
    """The path as SQL, every part in backticks: a plain name may still be a keyword."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def split_path(text: str) -> tuple[str, ...]:
    """The parts of a path's text; undoes `dotted`.

    Raises:
        ValueError: an unbalanced backtick or an empty part.
    """
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise ValueError(f"no column path: {text!r} (at position {position})")
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise ValueError(f"no column path: {text!r} (at position {position})")
        position += 1


def walk(
    data_type: DataType, path: Sequence[str] = (), *, containers: bool = True
) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Every struct field at any depth with its path, parents first.

    Elements, keys and values add the parts `element`, `key`, `value` to the path, as in Delta's
    own messages.

    Args:
        data_type: where to start; a table's schema as a rule.
        path: what stands before it.
        containers: `False` stays out of arrays and maps.
    """
    match data_type:
        case StructType():
            for each in data_type:
                inner = (*path, each.name)
                yield inner, each
                yield from walk(each.data_type, inner, containers=containers)
        case ArrayType() if containers:
            yield from walk(data_type.element_type, (*path, "element"))
        case MapType() if containers:
            yield from walk(data_type.key_type, (*path, "key"))
            yield from walk(data_type.value_type, (*path, "value"))
        case _:
            return


def map_types(data_type: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """The type with `change` applied to every part of it, innermost first."""
    match data_type:
        case StructType():
            inner = (f.with_type(map_types(f.data_type, change)) for f in data_type)
            return change(StructType(tuple(inner)))
        case ArrayType():
            element = map_types(data_type.element_type, change)
            return change(ArrayType(element, data_type.contains_null))
        case MapType():
            key = map_types(data_type.key_type, change)
            value = map_types(data_type.value_type, change)
            return change(MapType(key, value, data_type.value_contains_null))
        case _:
            return change(data_type)
