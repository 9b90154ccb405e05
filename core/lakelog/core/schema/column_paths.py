"""The text form of a column's path: `a.b`, with backticks where a name needs them.

The same text is used in messages, in `delta.dataSkippingStatsColumns` and in the constraints that
we hand to Spark, so it is SQL: a name that holds a dot, a backtick, or anything else that is not a
plain identifier is quoted, and a backtick within is doubled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakelog.core.errors import InvalidPredicateError
from lakelog.core.schema.parts import parts_of, with_parts
from lakelog.core.schema.types import DataType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lakelog.core.schema import DataType

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
            raise ValueError(f"not a column path: {text!r} (at position {position})")
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise ValueError(f"not a column path: {text!r} (at position {position})")
        position += 1


def walk(
    data_type: DataType, path: Sequence[str] = (), *, containers: bool = True
) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Every struct field at any depth with its path, parents first.

    Elements, keys and values add the parts `element`, `key`, `value` to the path, as in Delta's
    own messages.

    Args:
        data_type: where to start; a table's schema as a rule.
        path: what comes before it.
        containers: `False` stays out of arrays and maps.
    """
    if isinstance(data_type, StructType):
        for each in data_type:
            inner = (*path, each.name)
            yield inner, each
            yield from walk(each.data_type, inner, containers=containers)
    elif containers:
        for step, kind in parts_of(data_type):
            yield from walk(kind, (*path, step))


def map_types(data_type: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """The type with `change` applied to every part of it, innermost first."""
    if isinstance(data_type, StructType):
        fields = (f.with_type(map_types(f.data_type, change)) for f in data_type)
        return change(StructType(tuple(fields)))
    inner = [map_types(each, change) for _, each in parts_of(data_type)]
    return change(with_parts(data_type, inner))


def find_column(path: Sequence[str], schema: StructType) -> tuple[tuple[str, ...], DataType] | None:
    """The path in the schema's spelling, found ignoring case, and its type; `None` if absent."""
    found: list[str] = []
    current: DataType = schema
    for part in path:
        each = current.get(part) if isinstance(current, StructType) else None
        if each is None:
            return None
        found.append(each.name)
        current = each.data_type
    return (tuple(found), current) if found else None


def unknown_column(
    path: Sequence[str], schema: StructType, where: str = ""
) -> InvalidPredicateError:
    """The error for a name that is not a column: the known ones, and the nearest."""
    known = [dotted(p) for p, _ in walk(schema, containers=False)]
    name = dotted(path)
    spelled = {each.lower(): each for each in known}
    import difflib

    near = difflib.get_close_matches(name.lower(), spelled, n=1)
    hint = f"; did you mean {spelled[near[0]]}?" if near else "."
    return InvalidPredicateError(
        f"unknown column {name}{where}{hint} Known columns: {', '.join(known)}",
        column=name,
        known=known,
    )
