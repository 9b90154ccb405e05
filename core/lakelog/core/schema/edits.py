"""Changing one part of a schema, by the path of a column.

Paths are texts such as `a.b`, or lists of names; `element`, `key` and `value` lead into arrays and
maps, as in Delta's own `ALTER TABLE`. Names are found ignoring case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lakelog.core.arguments import check_text
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.column_paths import dotted, split_path
from lakelog.core.schema.parts import parts_of, with_parts
from lakelog.core.schema.rules import as_list
from lakelog.core.schema.types import DataType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ColumnPath: TypeAlias = "str | Sequence[str]"


def column_path(path: ColumnPath) -> tuple[str, ...]:
    """The names of a path.

    Raises:
        DeltaAnalysisError: a string that is not a path.
    """
    if isinstance(path, str):
        check_text(path, "a column")
    else:
        as_list(path)
    try:
        return split_path(path) if isinstance(path, str) else tuple(path)
    except ValueError as exc:
        raise DeltaAnalysisError(f"{exc}; quote names with dots in backticks") from None


def change_struct(
    schema: StructType, path: Sequence[str], change: Callable[[StructType], StructType]
) -> StructType:
    """The schema with one of its structs changed.

    Args:
        schema: the table's.
        path: leads to the struct; empty for the schema itself.
        change: gives the new struct for the old one.

    Raises:
        DeltaAnalysisError: there is no such column, or it is not a struct.
    """
    changed = _changed(schema, tuple(path), tuple(path), change)
    assert isinstance(changed, StructType)  # a struct stays one
    return changed


def change_field(
    schema: StructType, path: Sequence[str], change: Callable[[StructField], StructField | None]
) -> StructType:
    """The schema with one field changed, or left out where `change` gives None.

    Raises:
        DeltaAnalysisError: there is no such column.
    """
    *above, name = path

    def swap(struct: StructType) -> StructType:
        field = _field(struct, name, path)
        fields = ((change(each) if each is field else each) for each in struct)
        return StructType(tuple(each for each in fields if each is not None))

    return change_struct(schema, above, swap)


def without_fields(schema: StructType, paths: Iterable[tuple[str, ...]]) -> StructType:
    """The schema without some of its fields, all removed in one pass.

    Args:
        schema: the table's.
        paths: of the fields, as `nearest_field` gives them.

    Raises:
        DeltaAnalysisError: a struct, or the table itself, would be left with no field.
    """
    gone = frozenset(paths)
    above = {path[:end] for path in gone for end in range(len(path))}

    def kept(kind: DataType, path: tuple[str, ...]) -> DataType:
        if path not in above:
            return kind
        if isinstance(kind, StructType):
            inner = [(each, (*path, each.name)) for each in kind]
            left = [(each, at) for each, at in inner if at not in gone]
            if not left:
                raise _only_these(path, kind)
            return StructType(tuple(f.with_type(kept(f.data_type, at)) for f, at in left))
        return with_parts(kind, [kept(each, (*path, step)) for step, each in parts_of(kind)])

    changed = kept(schema, ())
    assert isinstance(changed, StructType)  # a struct stays one
    return changed


def nearest_field(schema: StructType, path: Sequence[str]) -> tuple[tuple[str, ...], StructField]:
    """The last field on a path, and its own path; both in the schema's spelling.

    The rest of the path leads into its arrays and maps: `l.element` has the field `l`.

    Raises:
        DeltaAnalysisError: there is no such column.
    """
    found: tuple[tuple[str, ...], StructField] | None = None
    kind: DataType = schema
    spelled: tuple[str, ...] = ()
    for name in path:
        if isinstance(kind, StructType):
            field = _field(kind, name, path)
            spelled, kind = (*spelled, field.name), field.data_type
            found = spelled, field
        else:
            spelled, kind = (*spelled, name.lower()), _part_type(kind, name, path)
    if found is None:
        raise DeltaAnalysisError("a column's path needs at least one name")
    return found


def struct_at(schema: StructType, path: Sequence[str]) -> StructType:
    """The struct that a path leads to; the schema itself for an empty one.

    Raises:
        DeltaAnalysisError: there is no such column, or it is not a struct.
    """
    kind: DataType = schema
    for name in path:
        if isinstance(kind, StructType):
            kind = _field(kind, name, path).data_type
        else:
            kind = _part_type(kind, name, path)
    if not isinstance(kind, StructType):
        raise _no_struct(path, kind)
    return kind


def _changed(
    kind: DataType,
    path: tuple[str, ...],
    whole: tuple[str, ...],
    change: Callable[[StructType], StructType],
) -> DataType:
    if not path:
        if not isinstance(kind, StructType):
            raise _no_struct(whole, kind)
        return change(kind)
    name, *rest = path
    inner = tuple(rest)
    if isinstance(kind, StructType):
        field = _field(kind, name, whole)
        new = field.with_type(_changed(field.data_type, inner, whole, change))
        return StructType(tuple(new if each is field else each for each in kind))
    parts = dict(parts_of(kind))
    parts[name.lower()] = _changed(_part_type(kind, name, whole), inner, whole, change)
    return with_parts(kind, [*parts.values()])


def _part_type(kind: DataType, name: str, whole: Sequence[str]) -> DataType:
    found = dict(parts_of(kind)).get(name.lower())
    if found is None:
        raise _no_struct(whole, kind)
    return found


def _field(struct: StructType, name: str, whole: Sequence[str]) -> StructField:
    field = struct.get(name)
    if field is None:
        raise DeltaAnalysisError(
            f"[DELTA_COLUMN_NOT_FOUND_IN_SCHEMA] There is no column {dotted(whole)}: instead of "
            f"{dotted([name])} there are {', '.join(map(repr, struct.names))}.",
            column=dotted(whole),
        )
    return field


def _only_these(path: Sequence[str], struct: StructType) -> DeltaAnalysisError:
    holder = f"the struct {dotted(path)}" if path else "the table"
    return DeltaAnalysisError(
        "[DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA] Nothing would be left of "
        f"{holder}: {struct} is all that it has. Keep one of its columns.",
        column=dotted(path),
    )


def _no_struct(whole: Sequence[str], kind: DataType) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"[DELTA_ADD_COLUMN_PARENT_NOT_STRUCT] {dotted(whole)} leads to the type {kind}, which has "
        "no such field. A path enters a struct by a field's name, an array by `element` and a map "
        "by `key` or `value`.",
        column=dotted(whole),
    )
