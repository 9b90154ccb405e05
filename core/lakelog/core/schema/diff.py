"""Where data and table disagree, column by column, and how that is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakelog.core.schema.column_fills import is_filled
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.parts import paired_parts
from lakelog.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.upcasts import is_upcast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MISSING = "missing in data"
EXTRA = "not in the table"
TYPES = "types differ"


class Difference(NamedTuple):
    """One column in which data and table differ."""

    path: str
    table: str | None
    """The table's type in SQL; `None`: the table has no such column."""
    data: str | None
    """The data's; `None`: the data has no such column."""
    problem: str
    """`missing in data`, `not in the table` or `types differ`."""
    blocks: bool = True
    """Whether the data is refused for it. A missing column that may be null does not: it is listed
    because it distinguishes a new name from a misspelt one."""


def differences(table: StructType, data: StructType) -> list[Difference]:
    """Every difference, in the table's order, columns that only the data has after their siblings.

    Names are matched ignoring case. A type that the writer casts without loss
    (`lakelog.core.schema.upcasts`) is not a difference, nor is what may be null in the data and not
    in the table, a column, a field or an element: its values decide.
    """
    return list(_struct(table, data, ()))


def same_type(left: DataType, right: DataType) -> bool:
    """Whether two types hold the same values under the same names, ignoring nullability."""
    if isinstance(left, StructType) and isinstance(right, StructType):
        return left.names == right.names and all(
            same_type(a.data_type, b.data_type) for a, b in zip(left, right, strict=True)
        )
    parts = paired_parts(left, right)
    return all(same_type(a, b) for _, a, b in parts) if parts else left == right


def render(found: Iterable[Difference], fitting: int) -> str:
    """The differences as an aligned table of four columns.

    Args:
        found: the differences.
        fitting: how many top-level columns agree; reported in the last line.
    """
    rows = [("column", "table", "data", "")]
    for each in found:
        problem = each.problem if each.blocks else f"{each.problem} (null)"
        rows.append((each.path, each.table or "-", each.data or "-", f"<- {problem}"))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        "  " + "  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip()
        for row in rows
    ]
    if fitting:
        lines.append(
            f"  ({fitting} other column{'s' if fitting > 1 else ''} fit{'s' * (fitting == 1)})"
        )
    return "\n".join(lines)


def _struct(table: StructType, data: StructType, path: tuple[str, ...]) -> Iterator[Difference]:
    taken = set()
    for field in table:
        inner = (*path, field.name)
        found = data.get(field.name)
        if found is None or found.data_type == PrimitiveType("void"):
            taken.add(found.name if found else None)
            if field.data_type != PrimitiveType("void"):
                shown = "void" if found else None
                # A default within a struct fills nothing.
                needed = not field.nullable and not (is_filled(field) and not path)
                yield Difference(dotted(inner), _shown(field), shown, MISSING, needed)
        else:
            taken.add(found.name)
            yield from _type(field, found, inner)
    for found in data:
        if found.name not in taken:
            yield Difference(dotted((*path, found.name)), None, _shown(found), EXTRA)


def _type(table: StructField, data: StructField, path: tuple[str, ...]) -> Iterator[Difference]:
    match table.data_type, data.data_type:
        case StructType() as ours, StructType() as theirs:
            yield from _struct(ours, theirs, path)
        case ArrayType(), ArrayType():
            yield from _parts(table.data_type, data.data_type, path)
        case MapType(), MapType():
            yield from _parts(table.data_type, data.data_type, path)
        case ours, theirs if ours != theirs and not is_upcast(theirs, ours):
            yield Difference(dotted(path), _shown(table), _shown(data), TYPES)


def _parts(table: DataType, data: DataType, path: tuple[str, ...]) -> Iterator[Difference]:
    for ours, theirs in zip(_elements(table), _elements(data), strict=True):
        yield from _type(ours, theirs, (*path, ours.name))


def _elements(container: DataType) -> list[StructField]:
    match container:
        case ArrayType(element, contains_null):
            return [StructField("element", element, contains_null)]
        case MapType(key, value, value_contains_null):
            return [
                StructField("key", key, nullable=False),
                StructField("value", value, value_contains_null),
            ]
        case _:
            return []


def _shown(field: StructField) -> str:
    return str(field.data_type) + ("" if field.nullable else " not null")
