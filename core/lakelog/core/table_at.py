"""The older version of a table that RESTORE and CLONE begin from."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.arrow.time_zones import zone_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.state.version_at_time import parse_timestamp

if TYPE_CHECKING:
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def usable_version(
    log: TableLog, version: int | None, timestamp: int | str | datetime | None
) -> Snapshot:
    """An older version whose files `VACUUM` must have left alone.

    Args:
        log: the table's.
        version: which version.
        timestamp: or the newest version that was committed at or before this time.

    Raises:
        VersionNotFoundError: no such version, or it can't be rebuilt any more.
        TimestampOutOfRangeError: the time is before the first commit or after the last.
        DeltaAnalysisError: neither or both are given, or the version is so old that its files may
            be vacuumed at any time.
    """
    newest = log.update()
    found = log.snapshot_at(version, timestamp)
    if found.version == newest.version or not log.conf.read(keys.RETENTION_OF_VERSIONS):
        return found
    keep = newest.properties.deleted_file_retention_ms
    oldest = log.clock.now_ms() - keep
    if found.timestamp >= oldest:
        return found
    hours = keep / 3_600_000
    raise DeltaAnalysisError(
        "[DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION] Cannot time travel "
        f"beyond delta.deletedFileRetentionDuration ({hours:g} hours) set on the table "
        f"{log.table}: version {found.version} was committed before, and VACUUM may delete its "
        "files at any time. Choose a newer version, or make sure that no VACUUM runs, and set "
        f"{keys.RETENTION_OF_VERSIONS.name}=false.",
        table=log.table,
        version=found.version,
    )


def time_in_zone(timestamp: int | str | datetime, zone: str) -> str:
    """A time as the history shows it: `2026-01-31 12:00:00.0`, in a session's zone."""
    moment = _EPOCH + timedelta(milliseconds=parse_timestamp(timestamp))
    # A time in a zone that only Java knows is shown in UTC.
    with contextlib.suppress(ValueError):
        moment = moment.astimezone(zone_of(zone))
    text = moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    whole, _, part = text.partition(".")
    return f"{whole}.{part.rstrip('0') or '0'}"
