"""Type widening: the earlier types of a table's columns (PROTOCOL.md, "Type Widening").

A column that gets a wider type keeps its files; its field records what the type was, so that
readers cast, and writers of Iceberg's metadata know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.parts import parts_of, with_parts
from lakelog.core.schema.types import DataType, StructField, StructType
from lakelog.core.schema.upcasts import is_widening

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPE_CHANGES = "delta.typeChanges"
"""Field metadata that tells readers which types older files have."""


def was_float(schema: StructType, path: Sequence[str]) -> bool:
    """Whether the column at a path, below structs only, was once of type `float`."""
    kind: DataType = schema
    field: StructField | None = None
    for name in path:
        field = kind.get(name) if isinstance(kind, StructType) else None
        if field is None:
            return False
        kind = field.data_type
    changes = field.metadata.get(TYPE_CHANGES) if field is not None else None
    return isinstance(changes, list) and any(
        isinstance(each, dict) and each.get("fromType") == "float" for each in changes
    )


def retyped(
    field: StructField, within: Sequence[str], target: DataType, shown: str, *, widens: bool
) -> StructField:
    """A field with a wider type, and a record of the change for readers of older files.

    Args:
        field: the field.
        within: the path to the type in its arrays and maps: `element`, `key`, `value`.
        target: the type to be.
        shown: the column's path, for messages.
        widens: whether the table has `delta.enableTypeWidening`.

    Raises:
        DeltaAnalysisError: the table does not widen types, or the protocol does not allow this
            change.
    """
    source = _part_type(field.data_type, within)
    if source == target:
        return field
    remedy = "" if widens else " Set the table property delta.enableTypeWidening=true first."
    if source is None or not is_widening(source, target):
        remedy = (
            " Types can only be widened: byte to short, int, long, double or decimal(10,0), int "
            "to long, double or decimal(10,0), long to decimal(20,0), float to double, date to "
            "timestamp_ntz, decimals to decimals with no fewer digits on either side. For "
            "another type rewrite the rows with mode 'overwrite' and schema_mode 'overwrite' "
            "(Spark's option overwriteSchema=true)."
        )
    if remedy:
        raise DeltaAnalysisError(
            "[DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED] ALTER TABLE CHANGE COLUMN is not "
            f"supported for changing column {shown} from {source} to {target}.{remedy}",
            column=shown,
        )
    assert source is not None
    kind = _with_part(field.data_type, within, target)
    return with_changes(replace(field, data_type=kind), change_of(source, target, within))


def change_of(source: DataType, target: DataType, within: Sequence[str]) -> dict[str, Any]:
    """The record of one change of type; `within` leads to it from the nearest field."""
    change = {"fromType": source.json_value(), "toType": target.json_value()}
    return change | ({"fieldPath": ".".join(within)} if within else {})


def with_changes(field: StructField, *changes: dict[str, Any]) -> StructField:
    """The field with changes recorded after those that it has."""
    recorded = [*field.metadata.get(TYPE_CHANGES, []), *changes]
    return replace(field, metadata={**field.metadata, TYPE_CHANGES: recorded})


def _part_type(kind: DataType, within: Sequence[str]) -> DataType | None:
    found: DataType | None = kind
    for step in within:
        found = None if found is None else dict(parts_of(found)).get(step.lower())
    return found


def _with_part(kind: DataType, within: Sequence[str], target: DataType) -> DataType:
    if not within:
        return target
    wanted, *inner = within
    parts = (
        _with_part(each, inner, target) if step == wanted.lower() else each
        for step, each in parts_of(kind)
    )
    return with_parts(kind, [*parts])
