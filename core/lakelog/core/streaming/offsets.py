"""Offsets of streams out of a table, in the JSON that Delta's own source writes.

A query's checkpoint holds them, so that a query that delta-spark began can be continued here, and
the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE_INDEX: Final = -1
"""Before the first file of a version: all versions before it are done."""
_FORMAT: Final = 1
_FORMAT_OF_SCHEMA_CHANGES: Final = 3
_BASE_OF_THREE: Final = -100
_BARRIERS: Final = {1: -20, 2: -19}


@dataclass(frozen=True, slots=True, order=True)
class SourceOffset:
    """How far a stream is: the files up to number `index` of `version` are done."""

    version: int
    index: int
    is_starting: bool = False
    """Whether the version is read as a whole, all of its live files, and not its commit alone."""
    barrier: int = 0
    """1: before a change of the metadata that the version makes; 2: after it, before its files.
    Only streams that track their metadata stop there."""

    def to_json_value(self, table_id: str) -> dict[str, Any]:
        """The offset as Delta writes it.

        Args:
            table_id: the `id` of the table's metadata.
        """
        return {
            "sourceVersion": _FORMAT_OF_SCHEMA_CHANGES if self.barrier else _FORMAT,
            "reservoirId": table_id,
            "reservoirVersion": self.version,
            "index": _BARRIERS.get(self.barrier, self.index),
            "isStartingVersion": self.is_starting,
        }

    @classmethod
    def from_json_value(cls, value: Mapping[str, Any], table_id: str, table: str) -> SourceOffset:
        """Read what a checkpoint has.

        Args:
            value: the offset.
            table_id: the `id` of the table's metadata.
            table: its URI, for errors.

        Raises:
            DeltaAnalysisError: the value is not an offset, was written by a newer client, or for
                another table.
        """
        form = _whole(value, "sourceVersion", table)
        if form > _FORMAT_OF_SCHEMA_CHANGES:
            raise DeltaAnalysisError(
                "[DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION] Unsupported format. Expected version "
                f"should be smaller than or equal to {_FORMAT_OF_SCHEMA_CHANGES} but was {form}: a "
                f"newer client wrote the checkpoint of this stream from {table}",
                table=table,
                version=form,
            )
        if form not in (_FORMAT, _FORMAT_OF_SCHEMA_CHANGES):
            raise DeltaAnalysisError(
                f"[DELTA_INVALID_SOURCE_VERSION] sourceVersion({form}) is invalid, in the "
                f"checkpoint of this stream from {table}",
                table=table,
                version=form,
            )
        found = value.get("reservoirId")
        if found != table_id:
            raise DeltaAnalysisError(
                "[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] The streaming query was reading "
                f"from an unexpected Delta table (id = '{table_id}'). It used to read from another "
                f"Delta table (id = '{found}') according to checkpoint. The table at {table} may "
                "have been deleted and made again. Read the other table, or start a new query "
                "with another checkpointLocation.",
                table=table,
                expected=found,
                found=table_id,
            )
        index = _whole(value, "index", table)
        if form == _FORMAT_OF_SCHEMA_CHANGES and index == _BASE_OF_THREE:
            index = BASE_INDEX
        barrier = 0
        if form == _FORMAT_OF_SCHEMA_CHANGES and index in _BARRIERS.values():
            barrier, index = index - _BARRIERS[1] + 1, BASE_INDEX
        if index < BASE_INDEX:
            raise _malformed("index", value, table)
        starting = value.get("isStartingVersion")
        if not isinstance(starting, bool):
            raise _malformed("isStartingVersion", value, table)
        return cls(_whole(value, "reservoirVersion", table), index, starting, barrier)


def _whole(value: Mapping[str, Any], name: str, table: str) -> int:
    found = value.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise _malformed(name, value, table)
    return found


def _malformed(name: str, value: Mapping[str, Any], table: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        "[DELTA_INVALID_SOURCE_OFFSET_FORMAT] The stored source offset format is invalid: "
        f"{name} is {value.get(name)!r}, in the checkpoint of this stream from {table}",
        table=table,
        offset=dict(value),
    )
