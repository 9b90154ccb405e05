"""The leaves of an Arrow schema, in the order and under the names that Parquet gives them.

Imports pyarrow only: `executor_writer` takes it along to executors that have no lakelog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Made at import time, so that no type checker sees its functions.
pc: Any = pyarrow.compute

__all__ = ["Leaf", "leaf_column", "leaves", "relaxed"]


class Leaf(NamedTuple):
    """A column of a Parquet file."""

    path: tuple[str, ...]
    """The names of the fields above it and its own; lists and maps add Parquet's."""
    type: pa.DataType
    plain: bool
    """Whether only structs lie above it: one value a row."""


def leaves(schema: Iterable[pa.Field]) -> Iterator[Leaf]:
    """Every leaf, in file order."""
    for each in schema:
        yield from _leaves_of(each.type, (each.name,), True)


def _leaves_of(kind: pa.DataType, path: tuple[str, ...], plain: bool) -> Iterator[Leaf]:
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            child = kind.field(i)
            yield from _leaves_of(child.type, (*path, child.name), plain)
    elif pa.types.is_map(kind):
        yield from _leaves_of(kind.key_type, (*path, "key_value", "key"), False)
        yield from _leaves_of(kind.item_type, (*path, "key_value", "value"), False)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves_of(kind.value_type, (*path, "list", "element"), False)
    else:
        yield Leaf(path, kind, plain)


def leaf_column(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    """The values of a plain leaf; null where a struct above it is null."""
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def relaxed(kind: pa.DataType) -> pa.DataType:
    """The type with nullable parts; Arrow refuses to cast nullable parts to required ones."""
    if pa.types.is_struct(kind):
        parts = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(f.name, relaxed(f.type)) for f in parts])
    if pa.types.is_map(kind):
        return pa.map_(relaxed(kind.key_type), relaxed(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", relaxed(kind.value_type)))
    return kind
