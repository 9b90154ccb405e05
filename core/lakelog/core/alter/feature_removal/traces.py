"""What shows that a table uses a feature, or did: in a version, and in single actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core.features.table_properties import CONSTRAINT_PREFIX, TableProperties
from lakelog.core.schema import StructType
from lakelog.core.schema.column_paths import walk
from lakelog.core.schema.type_widening import TYPE_CHANGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.actions import Metadata
    from lakelog.core.state.snapshot import Snapshot

_ENABLED = {
    "deletionVectors": "delta.enableDeletionVectors",
    "typeWidening": "delta.enableTypeWidening",
    "typeWidening-preview": "delta.enableTypeWidening",
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
    "rowTracking": "delta.enableRowTracking",
    "materializePartitionColumns": "delta.enableMaterializePartitionColumnsFeature",
}
TRUNCATED = frozenset(
    {
        *("columnMapping", "deletionVectors", "typeWidening", "typeWidening-preview"),
        *("v2Checkpoint", "vacuumProtocolCheck", "checkpointProtection"),
    }
)
"""Features that older versions may need, so that their history has to be protected or cut."""
REMOVABLE = TRUNCATED | {
    *("checkConstraints", "domainMetadata", "inCommitTimestamp"),
    *("materializePartitionColumns", "rowTracking"),
}
"""Features that can be dropped."""


def is_used(feature: str, snapshot: Snapshot) -> bool:
    """Whether a version uses a feature, or its metadata says that it may."""
    if uses(feature, snapshot.metadata):
        return True
    match feature:
        case "deletionVectors":
            return snapshot.has_deletion_vectors
        case "rowTracking":
            files = snapshot.file_table
            columns = (files["base_row_id"], files["default_row_commit_version"])
            return any(each.null_count < len(each) for each in columns)
        case "domainMetadata":
            return bool(snapshot.domain_metadata)
    return False


def uses(feature: str, metadata: Metadata) -> bool:
    """Whether metadata needs a feature of those who read it, or lets writers use it."""
    properties = TableProperties(metadata.configuration)
    if feature in _ENABLED and properties.get(_ENABLED[feature]):
        return True
    others: dict[str, Callable[[], Any]] = {
        "columnMapping": lambda: (
            properties.column_mapping_mode != "none"
            or "delta.columnMapping." in metadata.schema_string
        ),
        "typeWidening": lambda: _has_type_changes(metadata),
        "typeWidening-preview": lambda: _has_type_changes(metadata),
        "v2Checkpoint": lambda: properties.get("delta.checkpointPolicy") == "v2",
        "checkConstraints": lambda: any(
            key.lower().startswith(CONSTRAINT_PREFIX) for key in metadata.configuration
        ),
    }
    return feature in others and bool(others[feature]())


def _has_type_changes(metadata: Metadata) -> bool:
    if TYPE_CHANGES not in metadata.schema_string:
        return False
    schema = StructType.from_json(metadata.schema_string)
    return any(TYPE_CHANGES in field.metadata for _, field in walk(schema))
