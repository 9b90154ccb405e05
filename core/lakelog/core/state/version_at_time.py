"""Which version was current at a time."""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakelog.core.arguments import read_time
from lakelog.core.errors import (
    DeltaAnalysisError,
    LogGapError,
    TimestampOutOfRangeError,
)
from lakelog.core.features.in_commit_timestamps import required_time
from lakelog.core.log.commit_history import commit_times
from lakelog.core.log.commit_identity import read_commit_info
from lakelog.core.log.segment import list_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.log.segment import Listing
    from lakelog.core.state.snapshot import Snapshot

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?.*")


def version_at(snapshot: Snapshot, timestamp: int | str | datetime) -> int:
    """The newest version, up to the snapshot's, that was committed at or before a time.

    Args:
        snapshot: the newest version.
        timestamp: epoch milliseconds, datetime or ISO 8601 text; UTC where no zone is given.

    Raises:
        TimestampOutOfRangeError: the time is before the first version that can be rebuilt, or
            after the last.
        DeltaAnalysisError: the text is not a time.
    """
    wanted = parse_timestamp(timestamp)
    listing = list_log(snapshot.store, snapshot.table, 0, snapshot.version)
    earliest = listing.earliest()
    if earliest is None:
        raise LogGapError(
            f"no version of {snapshot.table} can be rebuilt: neither its first commit nor a "
            "complete checkpoint is left",
            table=snapshot.table,
            missing=[0],
        )
    times = commit_times(listing)
    versions = [version for version in sorted(times) if version >= earliest]
    time_of: Callable[[int], int] = times.__getitem__
    since = snapshot.terms.in_commit_since
    if since is not None:
        # Where cleanup has left none from before, the later ones show that the time is too early.
        wants_inner = wanted >= since[1] or versions[0] >= since[0]
        versions = [v for v in versions if (v >= since[0]) == wants_inner]
        if wants_inner:
            time_of = _InCommitTimes(snapshot, listing)
    index = bisect_right(versions, wanted, key=time_of)
    if index == 0 or (index == len(versions) and versions[-1] == snapshot.version):
        _check_range(snapshot, wanted, versions, time_of)
    return versions[index - 1]


def _check_range(
    snapshot: Snapshot, wanted: int, versions: Sequence[int], time_of: Callable[[int], int]
) -> None:
    first, last = (time_of(versions[i]) for i in (0, -1))
    if first <= wanted <= last:
        return
    side = "before the first" if wanted < first else "after the last"
    near = versions[0] if wanted < first else versions[-1]
    which = "EARLIER_THAN_COMMIT_RETENTION" if wanted < first else "GREATER_THAN_COMMIT"
    raise TimestampOutOfRangeError(
        f"[DELTA_TIMESTAMP_{which}] {_text(wanted)} is {side} commit of {snapshot.table} that can "
        "be read: versions "
        f"{versions[0]} to {versions[-1]} were committed from {_text(first)} to {_text(last)}. "
        f"Ask for version {near}, or for a time in between.",
        table=snapshot.table,
        timestamp=wanted,
        first=first,
        last=last,
    )


class _InCommitTimes:
    """Version -> in-commit timestamp; each is one read, so they are read when asked for."""

    def __init__(self, snapshot: Snapshot, listing: Listing) -> None:
        self._snapshot = snapshot
        self._listing = listing

    def __call__(self, version: int) -> int:
        path = self._listing.commits[version].path
        info = read_commit_info(self._snapshot.store, path)
        return required_time(info, self._snapshot.table, path, version)


def parse_timestamp(value: int | str | datetime) -> int:
    """Milliseconds since the epoch of a time in any of its forms.

    Raises:
        DeltaAnalysisError: the text is not an ISO 8601 date or time, or the value has another
            type.
    """
    try:
        value = read_time(value, "timestamp")
    except DeltaAnalysisError as exc:
        raise DeltaAnalysisError(f"[DELTA_TIMESTAMP_INVALID] {exc}") from None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            if not _ISO.fullmatch(value.strip()):
                raise ValueError(value)
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise DeltaAnalysisError(
                f"[DELTA_TIMESTAMP_INVALID] {value!r} is not a time: write it as 2026-01-31, "
                "2026-01-31 12:00:00 or 2026-01-31T12:00:00.000Z"
            ) from None
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) // timedelta(milliseconds=1)


def _text(milliseconds: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds") + " UTC"
