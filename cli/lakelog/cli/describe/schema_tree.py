"""A schema as a tree of lines, one a column or field."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakelog.cli.table_options import one_line
from lakelog.core.schema import ArrayType, MapType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.core.schema import DataType


class TreeRow(NamedTuple):
    """One line of the tree."""

    name: str
    """The name, after its branches."""
    data_type: str
    rule: str
    """`not null`, or nothing."""
    remark: str
    """Partition column, default, generation, comment."""


def schema_tree(schema: StructType, partition_columns: Sequence[str] = ()) -> list[TreeRow]:
    """The lines of a schema.

    Args:
        schema: of the table.
        partition_columns: in partitioning order.
    """
    order = {name: place for place, name in enumerate(partition_columns, start=1)}
    rows: list[TreeRow] = []
    for field in schema:
        partition = f"partition column {order[field.name]}" if field.name in order else ""
        rows += _rows(field, "", "", partition)
    return rows


def _rows(field: StructField, branch: str, below: str, partition: str = "") -> Iterator[TreeRow]:
    yield TreeRow(
        branch + field.name,
        _type_name(field.data_type),
        "" if field.nullable else "not null",
        _remark(field, partition),
    )
    inner = list(_inner(field.data_type))
    for index, each in enumerate(inner, start=1):
        last = index == len(inner)
        yield from _rows(
            each, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def _inner(data_type: DataType) -> Iterator[StructField]:
    """The fields below a type; elements, keys and values only where they have parts themselves."""
    match data_type:
        case StructType():
            yield from data_type
        case ArrayType(element, contains_null) if _is_nested(element):
            yield StructField("element", element, contains_null)
        case MapType(key, value, contains_null) if _is_nested(key) or _is_nested(value):
            yield StructField("key", key, nullable=False)
            yield StructField("value", value, contains_null)


def _is_nested(data_type: DataType) -> bool:
    return isinstance(data_type, StructType | ArrayType | MapType)


def _type_name(data_type: DataType) -> str:
    """Spark's name; the fields of a struct are shown on the lines below."""
    match data_type:
        case StructType():
            return "struct"
        case ArrayType(element, contains_null):
            suffix = "" if contains_null or _is_nested(element) else " not null"
            return f"array<{_type_name(element)}{suffix}>"
        case MapType(key, value, contains_null):
            suffix = "" if contains_null or _is_nested(value) else " not null"
            return f"map<{_type_name(key)},{_type_name(value)}{suffix}>"
    return str(data_type)


def _remark(field: StructField, partition: str) -> str:
    default, generated, comment = (
        field.metadata.get(key)
        for key in ("CURRENT_DEFAULT", "delta.generationExpression", "comment")
    )
    return "; ".join(
        part
        for part in (
            partition,
            f"default {default}" if default else "",
            f"generated as {generated}" if generated else "",
            "identity" if "delta.identity.start" in field.metadata else "",
            one_line(comment) if comment else "",
        )
        if part
    )
