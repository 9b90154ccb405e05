"""When each version was made, by whom, and which version was current at a time.

A commit's time is the modification time of its file, made strictly ascending: a commit that seems
no later than the one before it counts as one millisecond later (as in Delta, so that the same
time leads to the same version in both). Tables with in-commit timestamps carry the time inside.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.actions import CommitInfo
from lakelog.core.errors import (
    CorruptCommitError,
    DeltaAnalysisError,
    LogGapError,
    TimestampOutOfRangeError,
)
from lakelog.core.in_commit_time import in_commit_since, required_time
from lakelog.core.log_budget import LogBudget
from lakelog.core.log_segment import list_log
from lakelog.logstores.errors import FileTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.core.log_segment import Listing
    from lakelog.core.snapshot import Snapshot
    from lakelog.logstores._contract import LogStore

__all__ = ["HistoryEntry", "commit_times", "parse_timestamp", "read_history", "version_at"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One version: what its `commitInfo` says; `None` where it says nothing."""

    version: int
    timestamp: int
    """Milliseconds since the epoch."""
    operation: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    user_metadata: str | None = None
    engine_info: str | None = None
    is_blind_append: bool | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    commit_info: Mapping[str, Any] = field(default_factory=dict)
    """All of it, as in the log."""


def read_history(
    store: LogStore,
    table: str,
    newest: int,
    limit: int | None = None,
    *,
    times_since: int | None = None,
) -> list[HistoryEntry]:
    """The versions up to one, newest first; see `DeltaLog.history`.

    Only what is returned is listed and read, and one commit before it: the times of a log start
    to ascend somewhere.

    Args:
        store: the store of the log.
        table: the table's URI.
        newest: the version to begin with.
        limit: no more entries than this; `None` for all that are left in the log.
        times_since: the first version that must carry its time, by the table's metadata; `None`
            where that was not read, and each goes by the time that it carries, if any.

    Raises:
        FileNotFoundError: there is no log.
        CorruptCommitError: a commitInfo is no JSON, or lacks the time that it should have.
    """
    first = 0 if limit is None else max(newest - limit, 0)
    listing = list_log(store, table, first, newest)
    times = commit_times(listing)
    versions = sorted(times, reverse=True)[:limit]
    paths = [listing.commits[version].path for version in versions]
    infos = _in_parallel(lambda path: read_commit_info(store, path), paths)
    for version, path, info in zip(versions, paths, infos, strict=True):
        carried = info.get("inCommitTimestamp")
        if times_since is None and isinstance(carried, int):
            times[version] = carried
        elif times_since is not None and version >= times_since:
            times[version] = required_time(info, table, path, version)
    return [_entry(v, times[v], info) for v, info in zip(versions, infos, strict=True)]


def commit_times(listing: Listing) -> dict[int, int]:
    """Version -> milliseconds since the epoch, strictly ascending."""
    times: dict[int, int] = {}
    last: int | None = None
    for version in sorted(listing.commits):
        time = listing.commits[version].modification_time
        if last is not None and time <= last:
            time = last + 1
        times[version] = last = time
    return times


def read_commit_info(store: LogStore, path: str) -> dict[str, Any]:
    """The `commitInfo` of a commit, as JSON value; empty where there is none.

    Raises:
        CorruptCommitError: the line that should hold it is no JSON.
        LogTooLargeError: the file has more bytes than there is memory.
    """
    for line in _lines(store, path):
        # It is the first line of nearly every writer; adds can be large, and are not parsed.
        if '"commitInfo"' not in line[:64]:
            continue
        try:
            info = orjson.loads(line).get("commitInfo")
        except (orjson.JSONDecodeError, AttributeError) as exc:
            raise CorruptCommitError(
                f"the commitInfo in {path} is no JSON ({exc})", path=path
            ) from exc
        if isinstance(info, dict):
            return info
    return {}


def _lines(store: LogStore, path: str) -> Iterator[str]:
    try:
        yield from store.read(path)
    except FileTooLargeError as exc:
        raise LogBudget.of(store).refusal(path, exc.size) from exc


def version_at(snapshot: Snapshot, timestamp: int | str | datetime) -> int:
    """The newest version, up to the snapshot's, that was committed at or before a time.

    Args:
        snapshot: the newest version.
        timestamp: epoch milliseconds, datetime or ISO 8601 text; UTC where no zone is given.

    Raises:
        TimestampOutOfRangeError: the time is before the first version that can be rebuilt, or
            after the last.
        DeltaAnalysisError: the text is no time.
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
    since = in_commit_since(snapshot.metadata)
    if since is not None:
        # Where cleanup has left none from before, those after tell that the time is too early.
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
    raise TimestampOutOfRangeError(
        f"{_text(wanted)} is {side} commit of {snapshot.table} that can be read: versions "
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


_ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?.*")


def parse_timestamp(value: int | str | datetime) -> int:
    """Milliseconds since the epoch of a time in any of its forms.

    Raises:
        DeltaAnalysisError: the text is no ISO 8601 date or time, or the value none of the three.
    """
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            if not _ISO.fullmatch(value.strip()):
                raise ValueError(value)
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise DeltaAnalysisError(
                f"{value!r} is no time: write it as 2026-01-31, 2026-01-31 12:00:00 or "
                "2026-01-31T12:00:00.000Z"
            ) from None
    if not isinstance(value, datetime):
        raise DeltaAnalysisError(
            f"{value!r} is no time: give epoch milliseconds as int, a datetime, or ISO 8601 text"
        )
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) // timedelta(milliseconds=1)


def _text(milliseconds: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds") + " UTC"


def _entry(version: int, time: int, info: dict[str, Any]) -> HistoryEntry:
    try:
        known = CommitInfo.from_json_value(info)
    except (TypeError, AttributeError):
        known = CommitInfo()
    return HistoryEntry(
        version=version,
        timestamp=time,
        operation=known.operation,
        parameters=known.operation_parameters or {},
        metrics=known.operation_metrics or {},
        user_metadata=known.user_metadata,
        engine_info=known.engine_info,
        is_blind_append=known.is_blind_append,
        read_version=known.read_version,
        isolation_level=known.isolation_level,
        commit_info=info,
    )


def _in_parallel(
    read: Callable[[str], dict[str, Any]], paths: Sequence[str]
) -> list[dict[str, Any]]:
    if len(paths) < 3:
        return [read(path) for path in paths]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_THREADS, len(paths)), "lakelog-history") as pool:
        return list(pool.map(read, paths))
