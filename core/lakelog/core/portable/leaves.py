"""The leaves of an Arrow schema, in the order and under the names that Parquet gives them.

Imports pyarrow only: `writer` takes it along to executors that have no lakelog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Made at import time, so that no type checker sees its functions.
pc: Any = pyarrow.compute

_VARIANT = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
"""As `variants` has it, which does not come along to executors."""


class Leaf(NamedTuple):
    """A column of a Parquet file."""

    path: tuple[str, ...]
    """The names of the fields above it and its own; lists and maps add Parquet's."""
    type: pa.DataType
    plain: bool
    """Whether only structs lie above it: one value a row."""


def leaves(schema: Iterable[pa.Field[Any]]) -> Iterator[Leaf]:
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


def leaf_columns(
    table: pa.Table, paths: Iterable[tuple[str, ...]]
) -> dict[tuple[str, ...], pa.ChunkedArray[Any]]:
    """The values of plain leaves; null where a struct above them is null.

    A struct is taken apart once, however many of its leaves are wanted: Arrow's `struct_field`
    goes through all of its fields for each.
    """
    found: dict[tuple[str, ...], pa.ChunkedArray[Any]] = {}
    wanted = tuple(paths)
    for path in wanted:
        for depth in range(1, len(path) + 1):
            if path[:depth] in found:
                continue
            if depth == 1:
                found[path[:1]] = table.column(path[0])
                continue
            above = path[: depth - 1]
            names = [each.name for each in found[above].type]
            for name, part in zip(names, found[above].flatten(), strict=True):
                found[*above, name] = part
    return {path: found[path] for path in wanted}


def relaxed(kind: pa.DataType) -> pa.DataType:
    """The type with nullable parts; Arrow refuses to cast nullable parts to required ones.

    A variant's stay required, without which Spark does not read the file.
    """
    if kind == _VARIANT:
        return kind
    if pa.types.is_struct(kind):
        parts = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([_relaxed_field(each) for each in parts])
    if pa.types.is_map(kind):
        key = pa.field("key", relaxed(kind.key_type), False, kind.key_field.metadata)
        return pa.map_(key, _relaxed_field(kind.item_field, "value"))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_relaxed_field(kind.value_field, "element"))
    return kind


def _relaxed_field(field: pa.Field[Any], name: str | None = None) -> pa.Field[Any]:
    return pa.field(name or field.name, relaxed(field.type), metadata=field.metadata)


def filled_variants(array: Any) -> Any:
    """The same values, where no part of a null variant is null.

    Arrow makes nulls of a struct with null parts, and its Parquet writer refuses such parts where
    they are required, whatever contains them.
    """
    kind = array.type
    if not _has_variant(kind):
        return array
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([filled_variants(each) for each in array.chunks], type=kind)
    if pa.types.is_struct(kind):
        parts = [array.field(i) for i in range(kind.num_fields)]
        full = [
            pc.fill_null(each, b"") if kind == _VARIANT else filled_variants(each) for each in parts
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(full, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        halves = [filled_variants(array.keys), filled_variants(array.items)]
        fields = [kind.key_field, kind.item_field]
        return _with_child(array, kind, pa.StructArray.from_arrays(halves, fields=fields))
    return _with_child(array, kind, filled_variants(array.values))


def without_hidden(column: Any) -> Any:
    """The same values, where no null of a list or a struct has elements of a list behind it.

    The Parquet writer of pyarrow before 25 refuses them, and an `if_else`, a mask or a reader of
    Arrow files may leave them there.

    Args:
        column: a chunked array.
    """
    # Asked here and not once: what travels by value would bring the driver's answer along.
    if int(pa.__version__.partition(".")[0]) >= 25 or not any(map(_hides, column.chunks)):
        return column
    count = len(column)
    return column.take(pa.array(range(count), pa.int64())) if count else column


def _hides(array: Any) -> bool:
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [array.field(i) for i in range(kind.num_fields)]
        return any(_has_list(each.type) for each in parts if array.null_count) or any(
            map(_hides, parts)
        )
    if pa.types.is_fixed_size_list(kind):
        return bool(array.null_count) or _hides(array.values)
    if not _has_list(kind):
        return False
    if array.null_count:
        lengths = pc.subtract_checked(array.offsets[1:], array.offsets[:-1])
        if pc.sum(lengths.filter(array.is_null())).as_py():
            return True
    inner = [array.keys, array.items] if pa.types.is_map(kind) else [array.values]
    return any(map(_hides, inner))


def _has_list(kind: pa.DataType) -> bool:
    return any(
        check(kind) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_map)
    ) or any(_has_list(kind.field(i).type) for i in range(kind.num_fields))


def _has_variant(kind: pa.DataType) -> bool:
    return kind == _VARIANT or any(_has_variant(kind.field(i).type) for i in range(kind.num_fields))


def renamed(array: Any, kind: pa.DataType) -> Any:
    """The same values under the field names, and with the field metadata, of another type.

    Args:
        array: of a type that `relaxed` gave.
        kind: as deep and as wide, with the same types at its leaves.
    """
    if pa.types.is_struct(kind):
        count = kind.num_fields
        children = [renamed(array.field(i), kind.field(i).type) for i in range(count)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        parts = [renamed(array.keys, kind.key_type), renamed(array.items, kind.item_type)]
        fields = [kind.key_field, kind.item_field]
        return _with_child(array, kind, pa.StructArray.from_arrays(parts, fields=fields))
    if pa.types.is_list(kind):
        return _with_child(array, kind, renamed(array.values, kind.value_type))
    return array


def _with_child(array: Any, kind: pa.DataType, child: Any) -> Any:
    """A list or map with the same shape over another child, which covers the whole buffer."""
    shape = array.buffers()[:2]
    return pa.Array.from_buffers(
        kind, len(array), shape, array.null_count, array.offset, children=[child]
    )
