"""Column mapping: the names and ids that files use for the columns of a table.

PROTOCOL.md, "Column Mapping". Both are in a field's metadata. Partition values and statistics use
the physical name in either mode; a file's columns are found by it in mode `name`, by Parquet's
field id in mode `id`. Readers take `Snapshot.read_schema`, whose fields have that metadata only
where the table's mode uses it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lakelog.core.errors import SchemaMismatchError
from lakelog.core.schema.column_paths import dotted, map_types, walk
from lakelog.core.schema.parts import paired_parts, with_parts
from lakelog.core.schema.types import DataType, PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

ID_KEY = "delta.columnMapping.id"
NAME_KEY = "delta.columnMapping.physicalName"
NESTED_IDS = "delta.columnMapping.nested.ids"
"""Ids of elements, keys and values, by their path from the physical name of the nearest field."""
FIELD_ID = b"PARQUET:field_id"
"""Where pyarrow keeps Parquet's id of a field."""
_PREFIX = "delta.columnMapping."

Match: TypeAlias = "Callable[[Iterable[pa.Field[Any]], StructType], list[StructField | None]]"
"""Finds for each field of some data the matching field of the table, or `None`."""
_DAY: Final = PrimitiveType("date")
_TIME: Final = PrimitiveType("timestamp_ntz")


def physical_name(field: StructField) -> str:
    """The name in files, statistics and partition values."""
    return str(field.metadata.get(NAME_KEY, field.name))


def physical_path(schema: StructType, path: Sequence[str]) -> tuple[str, ...]:
    """The names that statistics have for a path of the schema's names."""
    found: list[str] = []
    kind: DataType = schema
    for name in path:
        field = kind.get(name) if isinstance(kind, StructType) else None
        if field is None:
            return (*found, *path[len(found) :])
        found.append(physical_name(field))
        kind = field.data_type
    return tuple(found)


def logical_path(schema: StructType, path: Sequence[str]) -> tuple[str, ...]:
    """The schema's names for a path of the names that files have."""
    found: list[str] = []
    kind: DataType = schema
    for name in path:
        fields = kind.fields if isinstance(kind, StructType) else ()
        field = next((each for each in fields if physical_name(each) == name), None)
        if field is None:
            return (*found, *path[len(found) :])
        found.append(field.name)
        kind = field.data_type
    return tuple(found)


def physical_schema(schema: StructType) -> StructType:
    """The schema under the names that files and statistics have, nested ones too."""
    found = map_types(schema, _physical)
    assert isinstance(found, StructType)  # a struct stays one
    return found


def _physical(kind: DataType) -> DataType:
    if not isinstance(kind, StructType):
        return kind
    return StructType(tuple(replace(each, name=physical_name(each)) for each in kind))


def read_schema_of(schema: StructType, mode: str) -> StructType:
    """The schema with the metadata of column mapping only where the mode uses it.

    Args:
        schema: the table's.
        mode: `none`, `name` or `id`.

    Raises:
        ValueError: a field without the name or the id that the mode needs.
    """
    if mode == "none":
        found = map_types(schema, _unmapped)
        assert isinstance(found, StructType)
        return found
    for path, field in walk(schema):
        if not isinstance(field.metadata.get(NAME_KEY), str):
            raise ValueError(f"the column {dotted(path)} has no physical name")
        if mode == "id" and type(field.metadata.get(ID_KEY)) is not int:
            raise ValueError(f"the column {dotted(path)} has no field id")
    return schema


def _unmapped(kind: DataType) -> DataType:
    if not isinstance(kind, StructType):
        return kind
    return StructType(
        tuple(
            replace(
                each, metadata={k: v for k, v in each.metadata.items() if not k.startswith(_PREFIX)}
            )
            for each in kind
        )
    )


def mapped_like(schema: StructType, table: StructType) -> StructType:
    """A schema of some of a table's columns, as an engine returns it, with their metadata."""
    return StructType(tuple(_mapped(each, table.get(each.name)) for each in schema))


def _mapped(field: StructField, like: StructField | None) -> StructField:
    if like is None:
        return field
    return replace(
        field, data_type=_kind_like(field.data_type, like.data_type), metadata=like.metadata
    )


def _kind_like(kind: DataType, like: DataType) -> DataType:
    if isinstance(kind, StructType) and isinstance(like, StructType):
        return mapped_like(kind, like)
    return with_parts(kind, [_kind_like(*each) for _, *each in paired_parts(kind, like)])


def renamed_since(own: StructType, was: StructType, now: StructType) -> StructType:
    """The columns of some rows under the names that their table has for them by now.

    A `date` that was widened to `timestamp_ntz` is that: for all other types that a table may widen
    to, a write takes the narrower one.

    Args:
        own: the columns of the rows, named as the table had them.
        was: the table's `read_schema` then. What it lacks keeps its name.
        now: its `read_schema` by now. A column that was dropped keeps its name.

    Raises:
        SchemaMismatchError: a column was dropped, and another one has its name.
    """
    return _renamed(own, was, now, ())


def _renamed(
    own: StructType, was: StructType, now: StructType, path: tuple[str, ...]
) -> StructType:
    current = {physical_name(each): each for each in now}
    fields = []
    for field in own:
        before, after, here = was.get(field.name), now.get(field.name), (*path, field.name)
        if before is not None:
            found = current.get(physical_name(before))
            if found is None and after is not None and NAME_KEY in after.metadata:
                raise SchemaMismatchError(
                    f"The rows have the column {dotted(here)}, which was dropped since they came; "
                    "the table has another column of that name now.",
                    column=dotted(here),
                )
            # Where columns are not mapped their names say which they are.
            after = found or after
        if before is None or after is None:
            fields.append(field)
            continue
        kind = _renamed_kind(field.data_type, before.data_type, after.data_type, here)
        fields.append(replace(field, name=after.name, data_type=kind))
    return StructType(tuple(fields))


def _renamed_kind(own: DataType, was: DataType, now: DataType, path: tuple[str, ...]) -> DataType:
    if all(isinstance(each, StructType) for each in (own, was, now)):
        return _renamed(own, was, now, path)  # type: ignore[arg-type]  # structs
    if own == was == _DAY and now == _TIME:
        return now
    before, after = paired_parts(own, was), paired_parts(own, now)
    return with_parts(
        own,
        [
            _renamed_kind(mine, then, later, (*path, step))
            for (step, mine, then), (_, _, later) in zip(before, after, strict=False)
        ],
    )


def by_name(fields: Iterable[pa.Field[Any]], target: StructType) -> list[StructField | None]:
    """A `Match` by the table's own names: the same spelling first, else ignoring case."""
    return _by(fields, target, lambda field: field.name)


def by_physical_name(
    fields: Iterable[pa.Field[Any]], target: StructType
) -> list[StructField | None]:
    """A `Match` by physical names: the same spelling first, else ignoring case.

    Case differs where a table was first written without mapping, which ignores it.
    """
    return _by(fields, target, physical_name)


def _by(
    fields: Iterable[pa.Field[Any]], target: StructType, name_of: Callable[[StructField], str]
) -> list[StructField | None]:
    exact = {name_of(each): each for each in target}
    loose = {name_of(each).lower(): each for each in reversed(target.fields)}
    return [exact.get(each.name) or loose.get(each.name.lower()) for each in fields]


def by_field_id(fields: Iterable[pa.Field[Any]], target: StructType) -> list[StructField | None]:
    """A `Match` by Parquet's field ids; a field without an id matches no column of the table.

    What a reader wants besides the table's columns (`_change_type`) has none and is found by name.
    """
    known = {each.metadata[ID_KEY]: each for each in target if ID_KEY in each.metadata}
    others = {each.name: each for each in target if ID_KEY not in each.metadata}
    ids = ((each, field_id(each)) for each in fields)
    return [others.get(each.name) if found is None else known.get(found) for each, found in ids]


def field_id(field: Any) -> int | None:
    """Parquet's id of an Arrow field that was read from a file."""
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None else int(found)
