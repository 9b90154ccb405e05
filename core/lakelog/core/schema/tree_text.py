"""A schema as an indented tree, as Spark's `printSchema` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.schema.types import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.schema.types import DataType


def schema_tree(schema: StructType) -> str:
    """The lines of the tree, the first one `root`; without a newline at the end."""
    return "\n".join(["root", *_fields(schema, "")])


def _fields(struct: StructType, indent: str) -> Iterator[str]:
    for each in struct:
        yield from _node(each.name, each.data_type, each.nullable, "nullable", indent)


def _node(name: str, kind: DataType, is_nullable: bool, word: str, indent: str) -> Iterator[str]:
    nested = {StructType: "struct", ArrayType: "array", MapType: "map"}.get(type(kind))
    null = str(is_nullable).lower()
    yield f"{indent} |-- {name}: {nested or kind} ({word} = {null})"
    below = f"{indent} |   "
    match kind:
        case StructType():
            yield from _fields(kind, below)
        case ArrayType(element, contains_null):
            yield from _node("element", element, contains_null, "containsNull", below)
        case MapType(key, value, contains_null):
            # A key is never null, and says nothing of it.
            first, *rest = _node("key", key, False, "nullable", below)
            yield first.rpartition(" (")[0]
            yield from rest
            yield from _node("value", value, contains_null, "valueContainsNull", below)
