"""The versions that type changes record in the log (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.schema.column_paths import map_types
from lakelog.core.schema.type_widening import TYPE_CHANGES
from lakelog.core.schema.types import DataType, StructField, StructType

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata

_VERSION = "tableVersion"


def with_change_versions(metadata: Metadata, version: int, landed: int | None = None) -> Metadata:
    """The metadata of a table with `typeWidening-preview`, whose records name their version.

    Args:
        metadata: as it is to be committed.
        version: the version that is tried next.
        landed: the version that was tried before and lost to another writer; its records move on.
    """

    def stamp(kind: DataType) -> DataType:
        if not isinstance(kind, StructType):
            return kind
        return StructType(tuple(_with_change_version(each, version, landed) for each in kind))

    if f'"{TYPE_CHANGES}"' not in metadata.schema_string:
        return metadata
    schema = map_types(StructType.from_json(metadata.schema_string), stamp)
    assert isinstance(schema, StructType)  # a struct stays one
    return replace(metadata, schema_string=schema.to_json())


def _with_change_version(field: StructField, version: int, landed: int | None) -> StructField:
    changes = field.metadata.get(TYPE_CHANGES)
    if not isinstance(changes, list):
        return field
    moved = [
        {**each, _VERSION: version} if each.get(_VERSION, landed) == landed else each
        for each in changes
    ]
    return replace(field, metadata={**field.metadata, TYPE_CHANGES: moved})
