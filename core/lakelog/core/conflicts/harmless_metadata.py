"""Which changes of a table's metadata a writer that did not know about them may ignore.

Delta lets a transaction go on where another one only enabled a feature that does not change what a
data file means: the changed properties must all be in the list below, with a value that enables,
and the protocol must have the feature. The schema may only have been given the ids and names of
column mapping, which start out as the names that the columns have. Everything else may invalidate
files that were written for the old metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lakelog.core.schema import StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import Metadata

_MODE = "delta.columnMapping.mode"
_MAPPING_KEYS = frozenset(
    {
        "delta.columnMapping.id",
        "delta.columnMapping.physicalName",
        "delta.columnMapping.nested.ids",
    }
)


class _Change(NamedTuple):
    """One property that differs."""

    old: str | None
    new: str
    features: frozenset[str]
    theirs: Mapping[str, str]
    """All the winner's properties."""


_Rule = Callable[[_Change], bool]


def _on(feature: str) -> _Rule:
    return lambda change: change.new.lower() == "true" and feature in change.features


def _added(change: _Change) -> bool:
    return change.old is None


def _always(_: _Change) -> bool:
    return True


def _v2_checkpoints(change: _Change) -> bool:
    return change.new == "v2" and "v2Checkpoint" in change.features


def _beside_row_tracking(change: _Change) -> bool:
    return change.theirs.get("delta.enableRowTracking", "").lower() == "true"


def _mapped_by_name(change: _Change) -> bool:
    before = (change.old or "none").lower()
    return before == "none" and change.new == "name" and "columnMapping" in change.features


def _catalog_id(change: _Change) -> bool:
    return change.old is None or "catalogManaged" not in change.features


_HARMLESS: Mapping[str, _Rule] = {
    "delta.enableDeletionVectors": _on("deletionVectors"),
    "delta.enableRowTracking": _on("rowTracking"),
    "delta.rowTracking.materializedRowIdColumnName": _beside_row_tracking,
    "delta.rowTracking.materializedRowCommitVersionColumnName": _beside_row_tracking,
    "delta.enableInCommitTimestamps": _on("inCommitTimestamp"),
    "delta.inCommitTimestampEnablementVersion": _added,
    "delta.inCommitTimestampEnablementTimestamp": _added,
    "delta.checkpointPolicy": _v2_checkpoints,
    _MODE: _mapped_by_name,
    "delta.columnMapping.maxColumnId": _always,
    "io.unitycatalog.tableId": _catalog_id,
}


def harmless_change(ours: Metadata, theirs: Metadata, features: frozenset[str]) -> bool:
    """Whether files written under `ours` are as good under `theirs`.

    Args:
        ours: the metadata that the transaction read.
        theirs: the metadata that another writer committed since.
        features: what the table's protocol has, the winner's changes included.
    """
    old, new = ours.configuration, theirs.configuration
    alike = replace(theirs, configuration=old, schema_string=ours.schema_string)
    if alike != ours or not _schema_is_harmless(ours, theirs):
        return False
    # Nothing in the list takes a property away: what relied on it was written while it held.
    if old.keys() - new.keys():
        return False
    return all(
        key in _HARMLESS and _HARMLESS[key](_Change(old.get(key), value, features, new))
        for key, value in new.items()
        if old.get(key) != value
    )


def _schema_is_harmless(ours: Metadata, theirs: Metadata) -> bool:
    if ours.schema_string == theirs.schema_string:
        return True
    if ours.configuration.get(_MODE) == theirs.configuration.get(_MODE):
        return False
    old = StructType.from_json(ours.schema_string)
    new = StructType.from_json(theirs.schema_string)
    # Fields within a struct are compared with their ids, so a table with structs conflicts.
    return len(old) == len(new) and all(
        _unmapped(one) == _unmapped(other) for one, other in zip(old, new, strict=True)
    )


def _unmapped(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key not in _MAPPING_KEYS}
    return replace(field, metadata=kept)
