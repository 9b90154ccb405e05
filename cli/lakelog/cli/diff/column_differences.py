"""Which columns differ between two schemas: added, dropped, renamed, retyped, with other rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.core.engine.schemas import dotted, walk
from lakelog.core.schema import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.schema import DataType, StructField

_PHYSICAL: Final = "delta.columnMapping.physicalName"
_RULES: Final = {
    "comment": "comment",
    "CURRENT_DEFAULT": "default",
    "delta.generationExpression": "generated as",
    "delta.identity.start": "identity start",
    "delta.identity.step": "identity step",
}
_Found = dict[tuple[str, ...], tuple[tuple[str, ...], "StructField"]]


def column_changes(before: StructType, after: StructType) -> list[dict[str, Any]]:
    """One entry for each difference: `column`, `change`, `before`, `after`.

    `change` is `added`, `dropped`, `renamed`, `type`, `nullable`, or the rule that differs. Where
    both schemas map columns, a column is the same if its files know it by the same name; elsewhere
    names decide, in any case. Fields of structs are columns of their own, and those of one that was
    added or dropped are not listed again.
    """
    mapped = all(_PHYSICAL in field.metadata for schema in (before, after) for field in schema)
    old, new = _by_identity(before, mapped=mapped), _by_identity(after, mapped=mapped)
    return [
        *_removed_or_changed(old, new),
        *(
            {"column": dotted(path), "change": "added", "before": None, "after": _rule(field)}
            for key, (path, field) in new.items()
            if key not in old and _parent_is_in(key, new, old)
        ),
    ]


def _by_identity(schema: StructType, *, mapped: bool) -> _Found:
    found: _Found = {}
    physical: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
    for path, field in walk(schema):
        own = field.metadata.get(_PHYSICAL, field.name) if mapped else field.name.lower()
        # The parts `element`, `key` and `value` of containers have no field of their own.
        parent = path[:-1]
        while parent not in physical:
            parent = parent[:-1]
        key = (*physical[parent], *path[len(parent) : -1], own)
        physical[path] = key
        found[key] = (path, field)
    return found


def _parent_is_in(key: tuple[str, ...], own: _Found, other: _Found) -> bool:
    above = [key[:end] for end in range(1, len(key)) if key[:end] in own]
    return all(each in other for each in above)


def _removed_or_changed(old: _Found, new: _Found) -> Iterator[dict[str, Any]]:
    for key, (path, field) in old.items():
        if key not in new:
            if _parent_is_in(key, old, new):
                yield {
                    "column": dotted(path),
                    "change": "dropped",
                    "before": _rule(field),
                    "after": None,
                }
            continue
        now, other = new[key]
        if path[-1] != now[-1]:
            yield {
                "column": dotted(now),
                "change": "renamed",
                "before": dotted(path),
                "after": dotted(now),
            }
        for change, was, is_now in _differences(field, other):
            yield {"column": dotted(now), "change": change, "before": was, "after": is_now}


def _differences(field: StructField, other: StructField) -> Iterator[tuple[str, Any, Any]]:
    if _own(field.data_type) != _own(other.data_type):
        yield "type", str(field.data_type), str(other.data_type)
    if field.nullable != other.nullable:
        yield "nullable", field.nullable, other.nullable
    for key, name in _RULES.items():
        was, is_now = field.metadata.get(key), other.metadata.get(key)
        if was != is_now:
            yield name, was, is_now


def _own(data_type: DataType) -> Any:
    """The type without the fields of structs, which are compared as columns of their own."""
    match data_type:
        case StructType():
            return "struct"
        case ArrayType(element, contains_null):
            return ("array", _own(element), contains_null)
        case MapType(key, value, contains_null):
            return ("map", _own(key), _own(value), contains_null)
    return str(data_type)


def _rule(field: StructField) -> str:
    return f"{field.data_type}" if field.nullable else f"{field.data_type} not null"
