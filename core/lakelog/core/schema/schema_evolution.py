"""Which data may be written to a table, and how its schema grows to fit data."""

from __future__ import annotations

from typing import Any

from lakelog.core.errors import SchemaMismatchError
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.diff import EXTRA, TYPES, Difference, differences, render
from lakelog.core.schema.parts import paired_parts, with_parts
from lakelog.core.schema.rules import as_nullable
from lakelog.core.schema.type_widening import change_of, with_changes
from lakelog.core.schema.types import (
    DataType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.upcasts import is_upcast, shares_int32, widens_unasked

__all__ = ["Difference", "check_write_compatible", "differences", "merge_schemas"]

_MERGE = "schema_mode 'merge' (Spark's option mergeSchema=true)"
_OVERWRITE = "schema_mode 'overwrite' (Spark's option overwriteSchema=true)"
_NOT_INHERITED = ("delta.", "CURRENT_DEFAULT", "EXISTS_DEFAULT", "__")
"""Metadata of fields that are rules of the table the data came from, not of this one."""


def check_write_compatible(table: StructType, data: StructType) -> None:
    """Refuse data that does not fit a table as it is.

    Names are matched ignoring case, in any order. The data may lack columns that may be null, and
    have narrower types that a writer casts (`is_upcast`); a column of type void is nulls of any
    type.

    Raises:
        SchemaMismatchError: the difference column by column; its field `differences` holds the
            rows as a list of `Difference`.
    """
    found = differences(table, data)
    if any(each.blocks for each in found):
        raise _mismatch(table, found, "The data does not fit the table's schema.", _remedy(found))


def merge_schemas(
    table: StructType, data: StructType, *, allow_type_widening: bool = False
) -> StructType:
    """The table's schema, extended by the columns that only the data has (`mergeSchema`).

    The table's fields keep order, spelling, nullability and metadata; new ones, nested ones too,
    go after their siblings and may be null. A type becomes the data's where that is wider and
    both are byte, short or int, which files store the same way, or where type widening is allowed,
    from integers to integers, float to double, date to timestamp_ntz and among decimals; such a
    change is recorded in the field's metadata as the protocol asks.

    Args:
        table: the schema as it is.
        data: the schema of what is to be written; a column of type void fits any type, and where
            the table has none of its name stays void.
        allow_type_widening: whether the table has the feature.

    Raises:
        SchemaMismatchError: columns whose types have nothing in common.
    """
    merger = _Merger(allow_type_widening)
    merged = merger.struct(table, data, ())
    if merger.clashes:
        raise _mismatch(
            table,
            merger.clashes,
            "The schema of the data can't be merged into the table's.",
            "Cast these columns of the data to the table's types, or replace the table with mode "
            f"'overwrite' and {_OVERWRITE}.",
        )
    return merged


class _Merger:
    """One merge; collects every clash, so that one error reports them all."""

    def __init__(self, widening: bool) -> None:
        self._widening = widening
        self._changes: list[dict[str, Any]] = []
        self.clashes: list[Difference] = []

    def struct(self, table: StructType, data: StructType, path: tuple[str, ...]) -> StructType:
        fields = []
        for ours in table:
            theirs = data.get(ours.name)
            fields.append(ours if theirs is None else self._field(ours, theirs, path))
        known = {field.name.lower() for field in table}
        fields += [_new(field) for field in data if field.name.lower() not in known]
        return StructType(tuple(fields))

    def _field(self, ours: StructField, theirs: StructField, path: tuple[str, ...]) -> StructField:
        outer, self._changes = self._changes, []
        merged = self._type(ours.data_type, theirs.data_type, (*path, ours.name), ())
        field = ours.with_type(merged)
        if self._changes:
            field = with_changes(field, *self._changes)
        self._changes = outer
        return field

    def _type(
        self, ours: DataType, theirs: DataType, path: tuple[str, ...], within: tuple[str, ...]
    ) -> DataType:
        """The merged type; `within` is the way from the nearest struct field, for the record."""
        match ours, theirs:
            case StructType(), StructType():
                return self.struct(ours, theirs, path)
            case _ if parts := paired_parts(ours, theirs):
                merged = [
                    self._type(one, other, (*path, step), (*within, step))
                    for step, one, other in parts
                ]
                return with_parts(ours, merged)
            case _:
                return self._atom(ours, theirs, path, within)

    def _atom(
        self, ours: DataType, theirs: DataType, path: tuple[str, ...], within: tuple[str, ...]
    ) -> DataType:
        if ours == theirs or is_upcast(theirs, ours):
            return ours
        if self._widening and widens_unasked(ours, theirs):
            self._changes.append(change_of(ours, theirs, within))
            return theirs
        if ours == PrimitiveType("void") or shares_int32(ours, theirs):
            return theirs
        self.clashes.append(Difference(dotted(path), str(ours), str(theirs), TYPES))
        return ours


def _new(field: StructField) -> StructField:
    loose = as_nullable(StructType((field,))).fields[0]
    metadata = {k: v for k, v in field.metadata.items() if not k.startswith(_NOT_INHERITED)}
    return StructField(loose.name, loose.data_type, True, metadata)


def _remedy(found: list[Difference]) -> str:
    blocking = [each for each in found if each.blocks]
    if all(each.problem == EXTRA for each in blocking):
        first = f"To add the new columns to the table, write with {_MERGE}."
    elif any(each.problem == EXTRA for each in blocking):
        first = (
            f"New columns are added with {_MERGE}; for the others, change the data: cast it to the "
            "table's types and fill in columns that are NOT NULL."
        )
    else:
        first = (
            "Change the data: cast it to the table's types and fill in columns that are NOT NULL "
            f"({_MERGE} adds columns but does not change these)."
        )
    return f"{first} To replace the table's schema, write with mode 'overwrite' and {_OVERWRITE}."


def _mismatch(
    table: StructType, found: list[Difference], what: str, remedy: str
) -> SchemaMismatchError:
    touched = {each.path.split(".")[0] for each in found}
    fitting = sum(dotted([name]).split(".")[0] not in touched for name in table.names)
    return SchemaMismatchError(
        f"[DELTA_METADATA_MISMATCH] {what}\n\n{render(found, fitting)}\n\n{remedy}",
        differences=found,
    )
