"""The versions of a table whose commits are left, and what the table held after each of them.

The log says what each commit added and removed, and the snapshot what there is now: counted back
from now, each version's totals follow, although older commits may be gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from lakelog.cli.files.live_numbers import row_counts
from lakelog.core.engine.log import commit_times, file_keys, read_file_changes
from lakelog.core.engine.maintenance import taken_out
from lakelog.core.engine.values import empty_table, pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.core.engine.log import Commit, Listing
    from lakelog.core.engine.maintenance import Taken
    from lakelog.logstores import LogStore

_AT_ONCE = 512
_BYTES_AT_ONCE = 64 << 20
"""Commits, and bytes of them, that are held in memory at once."""

_EVENTS = pa.schema(
    [
        ("key", pa.int64()),
        ("version", pa.int64()),
        ("adds", pa.bool_()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
    ]
)


class Totals(NamedTuple):
    """What a version held; `None` where the log does not say."""

    files: int
    bytes: int
    rows: int | None


@dataclass(slots=True)
class Version:
    """One commit, as the report shows it."""

    version: int
    time: int
    """Milliseconds since the epoch."""
    operation: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    user: str | None = None
    note: str | None = None
    added: int = 0
    removed: int = 0
    totals: Totals | None = None
    """After it; `None` where commits between it and the newest version can't be read."""


@dataclass(slots=True)
class Timeline:
    """The versions, ascending, and what could not be read."""

    versions: list[Version]
    unread: list[str] = field(default_factory=list)
    """What is missing, in words."""
    taken: dict[int, Taken] = field(default_factory=dict)
    """Version -> the files that it took out, for VACUUM, which would read all commits again."""


def timeline(
    store: LogStore,
    table: str,
    listing: Listing,
    now: Totals | None,
    tell: Callable[[str], None],
) -> Timeline:
    """Read all commits that are left.

    Args:
        store: the store of the log.
        table: the table's URI.
        listing: of the log, up to the version that is shown.
        now: what that version holds; `None` if the table can't be read.
        tell: called with what is being done.
    """
    found, events = Timeline([]), [empty_table(_EVENTS)]
    times = commit_times(listing)
    done = 0
    for group in _groups(listing):
        tell(f"reading commits: {done:,} of {len(listing.commits):,}")
        done += len(group)
        changes = read_file_changes(store, table, group)
        found.unread += map(str, changes.unread)
        found.taken.update((each.version, each) for each in taken_out(changes))
        counts = _counts(changes.files)
        for commit in changes.commits:
            found.versions.append(_version(commit, times[commit.version], counts))
        events.append(_events(table, changes.files))
    if now is not None and found.versions:
        # What is before a gap says nothing of what is after it.
        start = _unbroken(found.versions)
        every = pa.concat_tables(events)
        first = found.versions[start].version
        since = pc.greater_equal(every["version"], first)
        changed = _changes(every.filter(since), is_whole=first == 0)
        for each in reversed(found.versions[start:]):
            each.totals = now
            files, size, rows = changed.get(each.version, (0, 0, 0))
            left = None if now.rows is None or rows is None else now.rows - rows
            now = Totals(now.files - files, now.bytes - size, left)
    return found


def _groups(listing: Listing) -> Iterator[dict[int, str]]:
    """The paths of the commits, by version, as many at once as are held in memory."""
    group: dict[int, str] = {}
    size = 0
    for version, file in sorted(listing.commits.items()):
        if group and (len(group) == _AT_ONCE or size + file.length > _BYTES_AT_ONCE):
            yield group
            group, size = {}, 0
        group[version] = file.path
        size += file.length
    if group:
        yield group


def _counts(files: pa.Table) -> dict[tuple[int, bool], int]:
    """How many files each version adds (`True`) and removes."""
    found = files.group_by(["version", "adds"]).aggregate([("adds", "count")])
    columns = (found[name].to_pylist() for name in ("version", "adds", "adds_count"))
    return {(version, adds): count for version, adds, count in zip(*columns, strict=True)}


def _unbroken(versions: Sequence[Version]) -> int:
    """From which place on no version is missing."""
    last = len(versions) - 1
    return next(
        (
            at + 1
            for at in range(last - 1, -1, -1)
            if versions[at].version + 1 != versions[at + 1].version
        ),
        0,
    )


def _version(commit: Commit, time: int, counts: Mapping[tuple[int, bool], int]) -> Version:
    info = commit.info
    carried = None if info is None else info.in_commit_timestamp
    made = Version(commit.version, time if carried is None else carried)
    made.added = counts.get((commit.version, True), 0)
    made.removed = counts.get((commit.version, False), 0)
    if info is not None:
        made.operation = info.operation
        made.parameters = info.operation_parameters or {}
        made.metrics = info.operation_metrics or {}
        made.engine = info.engine_info
        made.user = _text(info.extra.get("userName"))
        made.note = info.user_metadata
    return made


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _events(table: str, files: pa.Table) -> pa.Table:
    """What is added and removed, by a number for each file and vector."""
    # Numbers, since the paths of all commits would not fit into memory.
    keys = [hash(key) for key in file_keys(table, files).to_pylist()]
    columns = [pa.array(keys, pa.int64()), files["version"], files["adds"], files["size"]]
    return pa.table([*columns, row_counts(files)], schema=_EVENTS)


def _changes(events: pa.Table, *, is_whole: bool) -> dict[int, tuple[int, int, int | None]]:
    """Version -> by how much files, bytes and rows grew; no rows where they are unknown.

    A file that is added although it is there, as new statistics are, counts once; where the history
    is whole, one that is removed and never was there does not.
    """
    counted = pc.value_counts(events["key"])
    again = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    is_again = pc.is_in(events["key"], value_set=again)
    # Most files are named once, and their order tells nothing.
    in_order = events.filter(is_again).sort_by(
        [(name, "ascending") for name in ("key", "version", "adds")]
    )
    events = pa.concat_tables([in_order, events.filter(pc.invert(is_again))])
    key, adds = (events[name].combine_chunks() for name in ("key", "adds"))
    sizes, rows = (events[name].combine_chunks() for name in ("bytes", "rows"))
    known = pc.and_(pc.equal(key, _before(key)), _before(adds))
    was_there = pc.fill_null(known, False)
    seen = pc.fill_null(pc.equal(key, _before(key)), False)
    leaves = pc.and_(pc.invert(adds), was_there if is_whole else pc.or_(was_there, pc.invert(seen)))
    old_size = pc.if_else(was_there, _before(sizes), None)
    old_rows = pc.if_else(was_there, _before(rows), None)
    left_size, left_rows = pc.coalesce(old_size, sizes), pc.coalesce(old_rows, rows)

    def change(new: Any, old: Any, left: Any) -> Any:
        added = pc.subtract_checked(new, pc.if_else(was_there, old, 0))
        return pc.if_else(adds, added, pc.if_else(leaves, pc.negate_checked(left), 0))

    files = pc.if_else(
        adds,
        pc.if_else(was_there, 0, 1),
        pc.if_else(leaves, -1, 0),
    )
    grown = change(rows, old_rows, left_rows)
    summed = (
        pa.table(
            {
                "version": events["version"],
                "files": files,
                "bytes": pc.fill_null(change(sizes, old_size, left_size), 0),
                "rows": grown,
                "unknown": grown.is_null().cast(pa.int64()),
            }
        )
        .group_by("version")
        .aggregate([(name, "sum") for name in ("files", "bytes", "rows", "unknown")])
    )
    return {
        row["version"]: (
            row["files_sum"],
            row["bytes_sum"],
            None if row["unknown_sum"] else row["rows_sum"] or 0,
        )
        for row in summed.to_pylist()
    }


def _before(values: Any) -> Any:
    """The values of the event before, null for the first."""
    return pa.concat_arrays([pa.nulls(min(1, len(values)), values.type), values[:-1]])
