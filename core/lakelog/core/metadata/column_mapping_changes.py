"""Column mapping when metadata changes: how columns get their ids and physical names.

PROTOCOL.md, "Writer Requirements for Column Mapping". A new table gives each column, nested ones
too, an id and a physical name of its own; one that enables mapping later keeps its names as
physical names, since its files have them. From then on a column keeps both for life, and only new
columns get new ones.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import DataType, StructField, StructType
from lakelog.core.schema.column_mapping import ID_KEY, NAME_KEY, NESTED_IDS, read_schema_of
from lakelog.core.schema.column_paths import dotted, map_types, walk
from lakelog.core.schema.diff import same_type
from lakelog.core.schema.parts import paired_parts, parts_of, with_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.actions import Metadata

_T = TypeVar("_T")

_MARKS = (ID_KEY, NAME_KEY, NESTED_IDS)
MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"


def with_mapping(old: Metadata | None, new: Metadata) -> Metadata:
    """The new metadata with what its mode of column mapping requires.

    Columns without an id or a physical name get them: those of the table's column of the same
    name and type where there is one, else new ones. `delta.columnMapping.maxColumnId` only grows.

    Args:
        old: the table's metadata; None for a table that is new, or replaced whole.
        new: what it is to be.

    Raises:
        DeltaAnalysisError: a change of mode that files would not survive, or ids and physical
            names that contradict each other or the table's.
    """
    check_mode_change(old, new)
    before, after = _both(old, new)
    schema = StructType.from_json(new.schema_string)
    if after.column_mapping_mode == "none":
        return _unmapped(new, schema)
    known = StructType() if old is None else StructType.from_json(old.schema_string)
    if before is not None and before.column_mapping_mode == "none":
        _check_upgrade(known, schema)
        known = _named_as_shown(known)
    highest = [int(each.get(MAX_ID)) for each in (before, after) if each is not None]
    most = max(*highest, *_ids(schema), *_ids(known), 0)
    assigned = _Assigner(most, parts=after.iceberg_compat == 2)
    schema = assigned.struct(reused_mapping(schema, known))
    _check_unique(schema)
    _check_kept(known, schema)
    configuration = {**new.configuration, MAX_ID: str(assigned.last)}
    return replace(new, schema_string=schema.to_json(), configuration=configuration)


def reused_mapping(new: StructType, known: StructType) -> StructType:
    """A schema whose columns have the ids and physical names of a known one's.

    A column without them takes those of the known column of the same path, ignoring case, if
    that has the same type: files that had it still do.

    Args:
        new: any schema.
        known: with the metadata of column mapping; without it nothing changes.
    """
    return StructType(tuple(_reused(field, known) for field in new))


def _reused(field: StructField, known: DataType | None) -> StructField:
    before = known.get(field.name) if isinstance(known, StructType) else None
    kind = _reused_type(field.data_type, None if before is None else before.data_type)
    metadata = dict(field.metadata)
    unmarked = ID_KEY not in metadata and NAME_KEY not in metadata
    if before is not None and unmarked and same_type(before.data_type, field.data_type):
        metadata |= {k: before.metadata[k] for k in _MARKS if k in before.metadata}
    return replace(field, data_type=kind, metadata=metadata)


def _reused_type(kind: DataType, known: DataType | None) -> DataType:
    if isinstance(kind, StructType) and isinstance(known, StructType):
        return reused_mapping(kind, known)
    parts = [] if known is None else paired_parts(kind, known)
    return with_parts(kind, [_reused_type(*each) for _, *each in parts])


class _Assigner:
    """Assigns missing ids and names, parents before their children, so that ids go depth first."""

    def __init__(self, last: int, *, parts: bool = False) -> None:
        self.last = last
        """The greatest id that was ever given."""
        self._parts = parts
        """Whether elements, keys and values get ids too."""

    def struct(self, struct: StructType) -> StructType:
        return StructType(tuple(self._field(each) for each in struct))

    def _field(self, field: StructField) -> StructField:
        metadata = dict(field.metadata)
        if ID_KEY not in metadata:
            self.last += 1
            metadata[ID_KEY] = self.last
        if NAME_KEY not in metadata:
            metadata[NAME_KEY] = f"col-{uuid.uuid4()}"
        kind = self._type(field.data_type)
        if self._parts and (paths := list(_parts(kind, metadata[NAME_KEY]))):
            known = metadata.get(NESTED_IDS)
            nested = dict(known) if isinstance(known, dict) else {}
            for path in paths:
                if path not in nested:
                    self.last += 1
                    nested[path] = self.last
            metadata[NESTED_IDS] = {path: nested[path] for path in paths}
        return replace(field, data_type=kind, metadata=metadata)

    def _type(self, kind: DataType) -> DataType:
        if isinstance(kind, StructType):
            return self.struct(kind)
        return with_parts(kind, [self._type(each) for _, each in parts_of(kind)])


def _parts(kind: DataType, path: str) -> Iterator[str]:
    """The paths of elements, keys and values, from the nearest field's physical name on."""
    for step, each in parts_of(kind):
        yield f"{path}.{step}"
        yield from _parts(each, f"{path}.{step}")


def _unmapped(metadata: Metadata, schema: StructType) -> Metadata:
    """Metadata of a table without mapping: marks left by another table mean nothing here."""
    if "delta.columnMapping." not in metadata.schema_string:
        return metadata
    return replace(metadata, schema_string=read_schema_of(schema, "none").to_json())


def _named_as_shown(schema: StructType) -> StructType:
    """The schema of a table whose files have the columns under the names that it shows."""

    def named(kind: DataType) -> DataType:
        if not isinstance(kind, StructType):
            return kind
        return StructType(
            tuple(replace(f, metadata={**f.metadata, NAME_KEY: f.name}) for f in kind)
        )

    found = map_types(schema, named)
    assert isinstance(found, StructType)  # a struct stays one
    return found


def check_mode_change(old: Metadata | None, new: Metadata) -> None:
    """Refuse a change of the mode that the table's files would not survive.

    Args:
        old: the table's metadata; None for a table that is new, or replaced whole.
        new: what it is to be.

    Raises:
        DeltaAnalysisError: `[DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE]`.
    """
    known, wanted = _both(old, new)
    mode = wanted.column_mapping_mode
    before = mode if known is None else known.column_mapping_mode
    if before == mode or (before, mode) == ("none", "name"):
        return
    ways = {
        ("none", "id"): (
            "The mode id can be set only when a table is created, because its files need field "
            "ids. Use the mode name, or write the rows to a new table."
        ),
        ("name", "none"): "The files store columns under other names than the table shows: write "
        "the rows to a new table.",
    }
    remedy = ways.get((before, mode), ways["name", "none"])
    if "none" not in (before, mode):
        remedy = "Write the rows to a new table with that mode."
    raise DeltaAnalysisError(
        "[DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE] Changing column mapping mode from "
        f"'{before}' to '{mode}' is not supported. {remedy}",
        property=MODE,
        value=mode,
    )


def _both(old: Metadata | None, new: Metadata) -> tuple[TableProperties | None, TableProperties]:
    before = None if old is None else TableProperties(old.configuration)
    return before, TableProperties(new.configuration)


def _check_upgrade(known: StructType, schema: StructType) -> None:
    """A table may enable mapping only while its columns stay as they are."""
    if any(ID_KEY in field.metadata or NAME_KEY in field.metadata for _, field in walk(known)):
        raise DeltaAnalysisError(
            "[DELTA_ENABLING_COLUMN_MAPPING_DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS]"
            " Enabling column mapping when column mapping metadata is already present in schema "
            "is not supported. To use column mapping, create a new table and reload the data "
            "into it.",
            property=MODE,
        )
    if len(known) and not same_type(known, schema):
        raise DeltaAnalysisError(
            "[DELTA_UNSUPPORTED_COLUMN_MAPPING_SCHEMA_CHANGE] Schema changes are not allowed "
            f"during the change of column mapping mode: the schema is {known} and would be "
            f"{schema}. Set {MODE} first, in a separate commit.",
            property=MODE,
        )


def _check_unique(schema: StructType) -> None:
    for path, field in walk(schema):
        number, name = field.metadata[ID_KEY], field.metadata[NAME_KEY]
        if type(number) is not int or not 0 < number < 1 << 31:
            raise _bad(f"the column {dotted(path)} has the id {number!r}, which is not a field id")
        if not isinstance(name, str) or not name:
            raise _bad(
                f"the column {dotted(path)} has the physical name {name!r}, which is not a name"
            )
    twice = _repeated((number, path) for path, number in _marked_ids(schema))
    if twice:
        number, columns = twice
        raise _bad(f"the columns {columns} share the id {number}")
    repeated = _repeated(_physical_paths(schema))
    if repeated:
        raise _bad(f"the columns {repeated[1]} share the physical name {repeated[0][-1]}")


def _repeated(marked: Iterator[tuple[_T, tuple[str, ...]]]) -> tuple[_T, str] | None:
    """The first mark that several columns have, and those columns."""
    entries = list(marked)
    counts = Counter(mark for mark, _ in entries)
    for mark, count in counts.items():
        if count > 1:
            return mark, " and ".join(dotted(path) for each, path in entries if each == mark)
    return None


def _physical_paths(
    kind: DataType, path: tuple[str, ...] = (), shown: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each field its path in files, in lower case, and its path in the table."""
    if isinstance(kind, StructType):
        for each in kind:
            name = str(each.metadata[NAME_KEY]).lower()
            yield (*path, name), (*shown, each.name)
            yield from _physical_paths(each.data_type, (*path, name), (*shown, each.name))
    for step, part in parts_of(kind):
        yield from _physical_paths(part, (*path, step), (*shown, step))


def _check_kept(known: StructType, schema: StructType) -> None:
    """A column has one id and one physical name for life."""
    names = {f.metadata[ID_KEY]: f.metadata.get(NAME_KEY) for _, f in walk(known) if _has_id(f)}
    for path, field in walk(schema):
        number, name = field.metadata[ID_KEY], field.metadata[NAME_KEY]
        if names.get(number, name) != name:
            raise _bad(
                f"the column {dotted(path)} has the id {number} and the physical name {name}, but "
                "in the table that id belongs to the column with the physical name "
                f"{names[number]}"
            )


def _has_id(field: StructField) -> bool:
    return ID_KEY in field.metadata


def _ids(schema: StructType) -> list[int]:
    return [number for _, number in _marked_ids(schema) if type(number) is int]


def _marked_ids(schema: StructType) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every id, those of elements, keys and values too, with the path of the field that has it."""
    for path, field in walk(schema):
        if ID_KEY in field.metadata:
            yield path, field.metadata[ID_KEY]
        nested = field.metadata.get(NESTED_IDS)
        if isinstance(nested, dict):
            yield from ((path, number) for number in nested.values())


def _bad(what: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"The schema's column mapping contradicts itself: {what}. Leave {ID_KEY} and {NAME_KEY} "
        "out of the schema, to have them assigned."
    )
