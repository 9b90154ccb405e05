"""The versions of a table whose commits are left, and what the table held after each of them.

The log says what each commit added and removed, and the snapshot what there is now: counted back
from now, each version's totals follow, although older commits may be gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa

from lakelog.cli.files.live_numbers import row_counts
from lakelog.core.engine.log import commit_times, read_commits
from lakelog.core.engine.values import pc
from lakelog.core.errors import DeltaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.core.engine.log import Commit, Listing
    from lakelog.logstores import LogStore

_AT_ONCE = 512
"""Commits that are held in memory at once."""

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
    found, events = Timeline([]), []
    times = commit_times(listing)
    numbers = sorted(listing.commits)
    for start in range(0, len(numbers), _AT_ONCE):
        tell(f"reading commits: {start:,} of {len(numbers):,}")
        for commit in _read(store, table, listing, numbers[start : start + _AT_ONCE], found):
            events.append(_events(commit))
            found.versions.append(_version(commit, times[commit.version], events[-1]))
    if now is not None and found.versions:
        # What is before a gap says nothing of what is after it.
        start = _unbroken(found.versions)
        changes = _changes(pa.concat_tables(events[start:]))
        for each in reversed(found.versions[start:]):
            each.totals = now
            files, size, rows = changes.get(each.version, (0, 0, 0))
            left = None if now.rows is None or rows is None else now.rows - rows
            now = Totals(now.files - files, now.bytes - size, left)
    return found


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


def _read(
    store: LogStore, table: str, listing: Listing, numbers: Sequence[int], found: Timeline
) -> Iterator[Commit]:
    """The commits; of a group that has a broken one, those that can be read."""
    paths = {number: listing.commits[number].path for number in numbers}
    try:
        yield from read_commits(store, table, paths)
    except DeltaError as error:
        if len(numbers) == 1:
            found.unread.append(str(error))
            return
        for number in numbers:
            yield from _read(store, table, listing, [number], found)


def _version(commit: Commit, time: int, events: pa.Table) -> Version:
    info = commit.info
    carried = None if info is None else info.in_commit_timestamp
    made = Version(commit.version, time if carried is None else carried)
    made.added = int(pc.sum(events["adds"]).as_py() or 0)
    made.removed = events.num_rows - made.added
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


def _events(commit: Commit) -> pa.Table:
    """The files that a commit adds and removes, by a number for each file and vector."""
    adds, removes = commit.adds, commit.removes
    parts = []
    for kind, rows in ((False, removes), (True, adds)):
        columns = _of_table(rows, adds=kind) if isinstance(rows, pa.Table) else _of_dicts(rows)
        parts.append(
            pa.table(
                [
                    pa.array(columns[0], pa.int64()),
                    pa.array([commit.version] * len(columns[0]), pa.int64()),
                    pa.array([kind] * len(columns[0]), pa.bool_()),
                    pa.array(columns[1], pa.int64()),
                    pa.array(columns[2], pa.int64()),
                ],
                schema=_EVENTS,
            )
        )
    return pa.concat_tables(parts)


def _of_dicts(rows: Sequence[dict[str, Any]]) -> tuple[list[int], list[Any], list[Any]]:
    keys, sizes, counts = [], [], []
    for row in rows:
        vector = row.get("deletionVector")
        keys.append(hash((row.get("path"), vector and _vector_id(vector, "pathOrInlineDv"))))
        sizes.append(row.get("size"))
        counts.append(_rows_of(row.get("stats"), vector))
    return keys, sizes, counts


def _vector_id(vector: dict[str, Any], name: str) -> tuple[Any, ...]:
    return (vector.get(name), vector.get("offset"))


def _rows_of(stats: Any, vector: dict[str, Any] | None) -> int | None:
    """The live rows of a file, `None` where its statistics don't say."""
    try:
        counted = orjson.loads(stats)["numRecords"] if stats else None
        if type(counted) is not int or not 0 <= counted < 1 << 63:
            return None
        return counted - int((vector or {}).get("cardinality", 0))
    except (ValueError, KeyError, TypeError):
        return None


def _of_table(rows: pa.Table, *, adds: bool) -> tuple[list[int], Any, Any]:
    vectors = rows["deletion_vector"].to_pylist()
    keys = [
        hash((path, vector and _vector_id(vector, "path_or_inline_dv")))
        for path, vector in zip(rows["path"].to_pylist(), vectors, strict=True)
    ]
    counts = row_counts(rows).to_pylist() if adds else [None] * len(keys)
    return keys, rows["size"].to_pylist(), counts


def _changes(events: pa.Table) -> dict[int, tuple[int, int, int | None]]:
    """Version -> by how much files, bytes and rows grew; no rows where they are unknown.

    A file that is added although it is there, as new statistics are, counts once.
    """
    events = events.sort_by([(name, "ascending") for name in ("key", "version", "adds")])
    key, adds = (events[name].combine_chunks() for name in ("key", "adds"))
    sizes, rows = (events[name].combine_chunks() for name in ("bytes", "rows"))
    known = pc.and_(pc.equal(key, _before(key)), _before(adds))
    was_there = pc.fill_null(known, False)
    seen = pc.fill_null(pc.equal(key, _before(key)), False)
    leaves = pc.and_(pc.invert(adds), pc.or_(was_there, pc.invert(seen)))
    none, zero = pa.scalar(None, pa.int64()), pa.scalar(0, pa.int64())
    old_size = pc.if_else(was_there, _before(sizes), none)
    old_rows = pc.if_else(was_there, _before(rows), none)
    left_size, left_rows = pc.coalesce(old_size, sizes), pc.coalesce(old_rows, rows)

    def change(new: Any, old: Any, left: Any) -> Any:
        added = pc.subtract_checked(new, pc.if_else(was_there, old, zero))
        return pc.if_else(adds, added, pc.if_else(leaves, pc.negate_checked(left), zero))

    one = pa.scalar(1, pa.int64())
    files = pc.if_else(
        adds,
        pc.if_else(was_there, zero, one),
        pc.if_else(leaves, pc.negate_checked(one), zero),
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
