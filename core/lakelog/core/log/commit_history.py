"""When each version was made, by which writer, and which version was current at a time.

A commit's time is the modification time of its file, made strictly ascending: a commit that seems
no later than the one before it counts as one millisecond later (as in Delta, so that the same
time leads to the same version in both). Tables with in-commit timestamps carry the time inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelog.core.actions import CommitInfo
from lakelog.core.clock import utc_time
from lakelog.core.features.in_commit_timestamps import is_time, required_time
from lakelog.core.log.commit_identity import read_commit_info
from lakelog.core.log.segment import list_log
from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from lakelog.core.log.segment import Listing
    from lakelog.logstores.contract import LogStore


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

    @property
    def time(self) -> datetime:
        """`timestamp` as a time in UTC."""
        return utc_time(self.timestamp)

    def _repr_html_(self) -> str:
        return History([self])._repr_html_()


class History(list[HistoryEntry]):
    """The versions of a table; in a notebook they are a picture and a table."""

    def _repr_html_(self) -> str:
        from lakelog.core.log.commit_effects import effect_text, parameters_text, rows_changed
        from lakelog.core.shown.notebook import html_page, html_table, rows_picture
        from lakelog.core.shown.texts import count_text

        names = ("version", "time", "operation", "parameters", "effect", "note", "engine")
        table = html_table(
            count_text(len(self), "version"),
            names,
            self,
            lambda each: (
                each.version,
                each.time,
                each.operation,
                parameters_text(each.parameters),
                effect_text(each.metrics),
                each.user_metadata,
                each.engine_info,
            ),
        )
        changed = [(each.version, *rows_changed(each.metrics)) for each in reversed(self)]
        return html_page(rows_picture(changed), table)


def read_history(
    store: LogStore,
    table: str,
    newest: int,
    limit: int | None = None,
    *,
    times_since: int | None = None,
) -> History:
    """The versions up to one, newest first; see `DeltaLog.history`.

    Only what is returned is listed and read, and one commit before it, from which the times
    ascend.

    Args:
        store: the store of the log.
        table: the table's URI.
        newest: the version to begin with.
        limit: no more entries than this; `None` for all that are left in the log.
        times_since: the first version that must carry its time, by the table's metadata; `None`
            where that was not read; then each uses the time that it carries, if any.

    Raises:
        FileNotFoundError: there is no log.
        CorruptCommitError: a commitInfo is not JSON, or lacks the time that it should have.
    """
    first = 0 if limit is None else max(newest - limit, 0)
    listing = list_log(store, table, first, newest)
    times = commit_times(listing)
    versions = sorted(times, reverse=True)[:limit]
    paths = [listing.commits[version].path for version in versions]
    infos = at_once(partial(read_commit_info, store), paths, REQUESTS, "lakelog-history")
    for version, path, info in zip(versions, paths, infos, strict=True):
        carried: Any = info.get("inCommitTimestamp")
        if times_since is None and is_time(carried):
            times[version] = carried
        elif times_since is not None and version >= times_since:
            times[version] = required_time(info, table, path, version)
    return History(_entry(v, times[v], info) for v, info in zip(versions, infos, strict=True))


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


def _entry(version: int, time: int, info: dict[str, Any]) -> HistoryEntry:
    known = CommitInfo.from_json_value(info)
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
