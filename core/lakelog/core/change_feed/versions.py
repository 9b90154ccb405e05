"""Which versions a read of the change data feed covers."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from lakelog.core import keys
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import (
    DeltaAnalysisError,
    LogGapError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakelog.core.log.commit_history import commit_times
from lakelog.core.log.segment import list_log
from lakelog.core.state.version_at_time import parse_timestamp, version_at

if TYPE_CHECKING:
    from datetime import datetime

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBounds:
    """What the caller asked for; a bound is a version or a time, never both."""

    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: int | str | datetime | None = None
    ending_timestamp: int | str | datetime | None = None


def change_versions(log: DeltaLog, bounds: ChangeBounds) -> range:
    """The versions between two bounds, both included; none where the conf allows a late start.

    Raises:
        DeltaAnalysisError: no start, two of one bound, an end before the start, or a start after
            the latest version.
        TimestampOutOfRangeError: a time after the latest version.
        VersionNotFoundError: no version of that number, or its commit is gone.
    """
    _check(bounds)
    latest = log.update()
    lenient = DeltaConf.from_mapping(log.conf).read(keys.FEED_LENIENT)
    start = _start(latest, bounds)
    if start is None or start > latest.version:
        if lenient:
            return range(0)
        _refuse_start(latest, bounds)
    end = _end(latest, bounds, lenient=lenient)
    if end < start:
        raise DeltaAnalysisError(
            f"[DELTA_INVALID_CDC_RANGE] the changes of {log.table} from version {start} to version "
            f"{end} can't be read: the end is before the start.",
            table=log.table,
            starting_version=start,
            ending_version=end,
        )
    return range(start, end + 1)


def _check(bounds: ChangeBounds) -> None:
    for word, version, time in (
        ("starting", bounds.starting_version, bounds.starting_timestamp),
        ("ending", bounds.ending_version, bounds.ending_timestamp),
    ):
        if version is not None and time is not None:
            raise DeltaAnalysisError(
                f"[DELTA_MULTIPLE_CDC_BOUNDARY] give either the {word} version or the {word} "
                "timestamp of the changes to read, not both"
            )
    if bounds.starting_version is None and bounds.starting_timestamp is None:
        raise DeltaAnalysisError(
            "[DELTA_NO_START_FOR_CDC_READ] reading changes needs a starting version or a "
            "starting timestamp"
        )


def _start(latest: Snapshot, bounds: ChangeBounds) -> int | None:
    """The first version; `None` where every version is older than the time."""
    version = bounds.starting_version
    if version is None:
        assert bounds.starting_timestamp is not None
        return first_version_since(latest, parse_timestamp(bounds.starting_timestamp))
    if version < 0:
        raise VersionNotFoundError(
            f"[DELTA_VERSION_NOT_FOUND] {latest.table} has no version {version}: versions start at "
            "0",
            table=latest.table,
            version=version,
            earliest=0,
            latest=latest.version,
        )
    return version


def first_version_since(latest: Snapshot, wanted: int) -> int | None:
    """The first version committed at or after a time; `None` where every version is older.

    Args:
        latest: the newest version.
        wanted: epoch milliseconds.
    """
    times = commit_times(list_log(latest.store, latest.table, 0, latest.version))
    if latest.properties.in_commit_timestamps:
        # Only a commit itself knows its time then, and the one at or before is found by that.
        try:
            before = version_at(latest, wanted)
        except TimestampOutOfRangeError as exc:
            return min(times) if wanted < exc.first else None
        found = version_at(latest, wanted - 1) if wanted > 0 else before
        return before if found != before else before + 1
    versions = sorted(times)
    index = bisect_left(versions, wanted, key=times.__getitem__)
    return versions[index] if index < len(versions) else None


def _end(latest: Snapshot, bounds: ChangeBounds, *, lenient: bool) -> int:
    if bounds.ending_version is not None:
        return min(bounds.ending_version, latest.version)
    if bounds.ending_timestamp is None:
        return latest.version
    try:
        return version_at(latest, bounds.ending_timestamp)
    except TimestampOutOfRangeError as exc:
        if lenient and exc.timestamp > exc.last:
            return latest.version
        raise


def _refuse_start(latest: Snapshot, bounds: ChangeBounds) -> NoReturn:
    if bounds.starting_timestamp is not None:
        raise TimestampOutOfRangeError(
            f"[DELTA_TIMESTAMP_GREATER_THAN_COMMIT] {bounds.starting_timestamp} is after the "
            f"latest version of {latest.table}, {latest.version}: there are no changes since",
            table=latest.table,
            timestamp=parse_timestamp(bounds.starting_timestamp),
        )
    raise DeltaAnalysisError(
        f"[DELTA_CDC_START_VERSION_AFTER_LATEST] the changes of {latest.table} can't be read from "
        f"version {bounds.starting_version}: the latest version is {latest.version}",
        table=latest.table,
        version=bounds.starting_version,
        latest=latest.version,
    )


def commit_files(log: DeltaLog, versions: range) -> list[tuple[int, str, int]]:
    """Version, path and time (epoch milliseconds) of the commits of a range.

    Raises:
        LogGapError: one of them is gone.
    """
    listing = list_log(log.store, log.table, versions[0], versions[-1])
    missing = [version for version in versions if version not in listing.commits]
    if missing:
        raise LogGapError(
            f"the changes of {log.table} from version {versions[0]} to version {versions[-1]} "
            f"can't be read: the commit of version {missing[0]} is gone. The log keeps commits for "
            "delta.logRetentionDuration; start from a later version.",
            table=log.table,
            missing=missing,
        )
    times = commit_times(listing)
    return [(version, listing.commits[version].path, times[version]) for version in versions]
