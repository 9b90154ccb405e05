"""The metadata of a table that goes back to an older version."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.features.identity_columns import identity_columns, with_marks
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.metadata.row_tracking_rules import with_row_tracking_names
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata, Protocol
    from lakelog.core.schema.column_fills import Identity

_MAX_ID: Final = "delta.columnMapping.maxColumnId"
_PROTECTED: Final = "delta.requireCheckpointProtectionBeforeVersion"


def restored_metadata(now: Metadata, then: Metadata, protocol: Protocol) -> Metadata:
    """The metadata of an older version, for a table that has gone on since.

    What was handed out since stays taken: numbers of identity columns, and ids of columns.

    Args:
        now: of the newest version.
        then: of the version that comes back.
        protocol: of the table after the commit.
    """
    found = replace(_with_marks(now, then), id=now.id)
    highest = max(_highest_id(now), _highest_id(then))
    if _MAX_ID in found.configuration and highest != _highest_id(found):
        found = replace(found, configuration={**found.configuration, _MAX_ID: str(highest)})
    # It guards the history and not the version.
    if _PROTECTED in now.configuration:
        kept = {_PROTECTED: now.configuration[_PROTECTED]}
        found = replace(found, configuration={**found.configuration, **kept})
    # The files that come back have the row ids under the names of then.
    return with_row_tracking_names(then, found, protocol)


def _with_marks(now: Metadata, then: Metadata) -> Metadata:
    newer = identity_columns(StructType.from_json(now.schema_string))
    older = identity_columns(StructType.from_json(then.schema_string))
    marks = {
        name: mark
        for name, each in older.items()
        if name in newer and (mark := _further(each, newer[name])) is not None
    }
    return with_marks(then, marks) if marks else then


def _further(then: Identity, now: Identity) -> int | None:
    """The mark that is further along the sequence; `None` where there is none."""
    marks = [each for each in (then.high_water_mark, now.high_water_mark) if each is not None]
    if not marks:
        return None
    return max(marks) if then.step > 0 else min(marks)


def _highest_id(metadata: Metadata) -> int:
    return int(TableProperties(metadata.configuration).get(_MAX_ID))
