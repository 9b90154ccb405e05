"""What row tracking requires of a table's metadata: two names, and that every file has its ids.

Rows that move to another file take their ids along in two columns that no schema lists. Their names
are drawn at random when the table gets the feature, and are kept for its life
(PROTOCOL.md, "Row Tracking", "Materialized columns").
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.protocol import supported_features
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata, Protocol
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.state.snapshot import Snapshot

ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
_NAMES = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-",
}
"""Property -> how the names in it begin."""


def with_row_tracking_names(old: Metadata | None, new: Metadata, protocol: Protocol) -> Metadata:
    """The metadata with the names of the columns that carry row ids, where it needs them.

    Args:
        old: the table's metadata so far; its names stay. `None` for a new table.
        new: the metadata that a commit sets.
        protocol: the table's after the commit.

    Raises:
        DeltaAnalysisError: row tracking is enabled and suspended at once, or a column of the
            schema has one of the names.
    """
    if "rowTracking" not in supported_features(protocol):
        return new
    properties = TableProperties(new.configuration)
    enabled = properties.get(ENABLED)
    if enabled and properties.get(SUSPENDED):
        raise DeltaAnalysisError(
            "[DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION] Illegal table state was detected. "
            f"Table properties `{ENABLED}` and `{SUSPENDED}` are both set to true. The issue can "
            "be resolved by disabling any of the two table properties.",
            properties=[ENABLED, SUSPENDED],
        )
    names = dict(new.configuration)
    for key, beginning in _NAMES.items():
        known = None if old is None else old.configuration.get(key)
        if known is not None:
            names[key] = known
        elif key not in names and (enabled or old is None):
            names[key] = f"{beginning}{uuid.uuid4()}"
    _check_columns(new.schema_string, {names[key] for key in _NAMES if key in names})
    return new if names == new.configuration else replace(new, configuration=names)


def _check_columns(schema_string: str, reserved: set[str]) -> None:
    for name in StructType.from_json(schema_string).names:
        if name.lower() in {each.lower() for each in reserved}:
            raise DeltaAnalysisError(
                f"[DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED] Failed to add column {name} "
                "because the name is reserved: the table's files keep row ids under it. Give the "
                "column another name.",
                column=name,
            )


def materialized_names(metadata: Metadata) -> tuple[str, str] | None:
    """The columns of row ids and of row commit versions; `None` where they have no names."""
    row_id, version = (metadata.configuration.get(key) for key in _NAMES)
    return None if row_id is None or version is None else (row_id, version)


def check_may_enable(snapshot: Snapshot, new: TableTerms, table: str) -> None:
    """Refuse to enable row tracking in an existing table before every file has its ids.

    The feature must have been there before, so that all writers in between assign ids as well.

    Raises:
        DeltaAnalysisError: the metadata would promise ids that are missing.
    """
    if snapshot.terms.is_row_tracking_enabled or not new.properties.get(ENABLED):
        return
    if "rowTracking" in snapshot.terms.features:
        files = snapshot.file_table
        lacking = max(
            files["base_row_id"].null_count, files["default_row_commit_version"].null_count
        )
        if not lacking:
            return
        why = f"{lacking} of its {files.num_rows} files have no row ids yet"
    else:
        why = "it lacks the table feature rowTracking"
    raise DeltaAnalysisError(
        f"{table}: {ENABLED} can't be set at version {snapshot.version}, because {why}. Call "
        "lakelog.core.alter.enable_row_tracking, which assigns ids to every file first.",
        table=table,
        version=snapshot.version,
    )
