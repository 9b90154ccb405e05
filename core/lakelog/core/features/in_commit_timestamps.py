"""In-commit timestamps: each commit carries its time, and the times of a table only ascend.

PROTOCOL.md, "In-Commit Timestamps". A table that had them from version 0 on says no more than
`delta.enableInCommitTimestamps`; one that got them later also says from which version and time on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core.errors import CorruptCommitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import Metadata
    from lakelog.core.features.table_properties import TableProperties

_VERSION = "delta.inCommitTimestampEnablementVersion"
_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
_EVER = -(2**63)
_YEARS = range(-62_135_596_800_000, 253_402_300_800_000)
"""Milliseconds of the years 1 to 9999: no clock of a writer shows another."""


def enabled_since(properties: TableProperties) -> tuple[int, int] | None:
    """The version and time from which commits carry their time; `None` if they do not."""
    if not properties.in_commit_timestamps:
        return None
    version, timestamp = properties.get(_VERSION), properties.get(_TIMESTAMP)
    return (0, _EVER) if version is None or timestamp is None else (version, timestamp)


def with_enablement(metadata: Metadata, version: int, timestamp: int) -> Metadata:
    """The metadata of the commit that enables the times in an existing table.

    Args:
        metadata: what the commit sets.
        version: that of the commit.
        timestamp: its in-commit timestamp.
    """
    record = {_VERSION: str(version), _TIMESTAMP: str(timestamp)}
    return replace(metadata, configuration={**metadata.configuration, **record})


def keep_enablement(old: Metadata, new: Metadata) -> Metadata:
    """`new` with the record of `old` of when the times were enabled."""
    record = {
        key: old.configuration[key] for key in (_VERSION, _TIMESTAMP) if key in old.configuration
    }
    if not record or record.items() <= new.configuration.items():
        return new
    return replace(new, configuration={**new.configuration, **record})


def is_time(value: Any) -> bool:
    """Whether a JSON value can be the time of a commit."""
    return type(value) is int and value in _YEARS


def required_time(info: Mapping[str, Any] | None, table: str, path: str, version: int) -> int:
    """The time in a `commitInfo` that must have one.

    Args:
        info: its JSON value; empty or `None` where the commit has none.
        table: for the message.
        path: of the commit.
        version: of the commit.

    Raises:
        CorruptCommitError: there is none.
    """
    time: Any = info.get("inCommitTimestamp") if info else None
    if is_time(time):
        return int(time)
    condition, lacking = (
        ("DELTA_MISSING_COMMIT_TIMESTAMP", "its commitInfo has no inCommitTimestamp")
        if info
        else ("DELTA_MISSING_COMMIT_INFO", "it has no commitInfo")
    )
    raise CorruptCommitError(
        f"[{condition}] {table} has the feature inCommitTimestamp, but its version {version} "
        f"({path}) does not carry its time: {lacking}. It was written by a client that does not "
        "support the feature; set delta.enableInCommitTimestamps to false and then to true to "
        "start again.",
        table=table,
        path=path,
        version=version,
    )
