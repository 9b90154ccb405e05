"""Type widening: what a table's columns were before (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.schema import DataType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["was_float"]

_CHANGES = "delta.typeChanges"


def was_float(schema: StructType, path: Sequence[str]) -> bool:
    """Whether the column at a path, below structs only, was once of type `float`."""
    kind: DataType = schema
    field: StructField | None = None
    for name in path:
        field = kind.get(name) if isinstance(kind, StructType) else None
        if field is None:
            return False
        kind = field.data_type
    changes = field.metadata.get(_CHANGES) if field is not None else None
    return isinstance(changes, list) and any(
        isinstance(each, dict) and each.get("fromType") == "float" for each in changes
    )
