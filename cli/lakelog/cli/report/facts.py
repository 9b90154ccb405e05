"""Everything that a report says of a table, as one JSON value; what fails is said in its place."""

from __future__ import annotations

import statistics
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from lakelog.cli.describe.description import description
from lakelog.cli.files import file_list
from lakelog.cli.files.live_numbers import row_counts, total
from lakelog.cli.report.advice import advice
from lakelog.cli.report.column_ranges import column_ranges
from lakelog.cli.report.growth import Timeline, Totals, Version, timeline
from lakelog.cli.table_options import looked_at, refuse_governed
from lakelog.core.engine.log import drafts, list_log
from lakelog.core.engine.shown import (
    SMALL,
    effect_text,
    metric_value,
    parameters_text,
    size_classes,
    time_text,
)
from lakelog.core.engine.values import pc
from lakelog.core.errors import DeltaError, UnsupportedFeatureError
from lakelog.logstores.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakelog.core import DeltaLog, Snapshot
    from lakelog.core.engine.log import Listing
    from lakelog.core.engine.maintenance import Taken

FORMAT: Final = 1
"""Of the JSON form; a change that takes away or renames a field makes it 2."""
VERSIONS: Final = 500
"""Versions that are listed one by one; older ones are in the sums by time."""
PARTITIONS: Final = 200
_BUCKETS: Final = 120
_ERRORS: Final = (DeltaError, LogStoreError, OSError, ValueError)
_LISTED: Final = 100_000
"""From this many live files on, VACUUM is asked what the log says, and no folder is listed."""

_KINDS: Final = {
    "WRITE": "write",
    "STREAMING UPDATE": "write",
    "CREATE TABLE AS SELECT": "write",
    "REPLACE TABLE AS SELECT": "write",
    "CREATE OR REPLACE TABLE AS SELECT": "write",
    "COPY INTO": "write",
    "CONVERT": "write",
    "CLONE": "write",
    "MERGE": "change",
    "UPDATE": "change",
    "DELETE": "change",
    "TRUNCATE": "change",
    "RESTORE": "change",
    "OPTIMIZE": "upkeep",
    "REORG": "upkeep",
    "VACUUM START": "upkeep",
    "VACUUM END": "upkeep",
    "FSCK": "upkeep",
    "COMPUTE STATS": "upkeep",
}
KINDS: Final = ("write", "change", "upkeep", "definition")
"""Rows written, rows changed, upkeep, and everything that changes what the table is."""


def facts(
    log: DeltaLog,
    events: Sequence[str],
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Look at a table from all sides.

    Args:
        log: the table.
        events: files, folders or globs of commit events; none if empty.
        tell: called with what is being done.

    Raises:
        DeltaError: there is no table at all, or it is a path, and a catalog governs the table.
    """
    found: dict[str, Any] = {"format": FORMAT, "table": log.table, "troubles": []}
    listing = _listed(log)
    snapshot = _tried(found, "the newest version", lambda: _newest(log))
    files, now = None, None
    if snapshot is None:
        refuse_governed(log.store, log.table, listing.latest())
    else:
        found["what"] = _tried(found, "the description", lambda: description(log, snapshot, tell))
        files = _tried(found, "the list of files", lambda: snapshot.file_table)
        if files is not None:
            rows, unknown = total(row_counts(files))
            now = Totals(snapshot.num_files, snapshot.size_in_bytes, None if unknown else rows)
    line = timeline(log.store, log.table, listing, now, tell)
    if snapshot is not None and files is not None:
        tell("adding up files")
        found["files"] = _files(snapshot, files)
        tell("reading statistics")
        found["columns"] = _tried(found, "the statistics", lambda: column_ranges(snapshot, files))
        tell("asking what OPTIMIZE and VACUUM would do")
        found["optimize"] = _tried(
            found, "OPTIMIZE's plan", lambda: _optimize(log, snapshot, files)
        )
        found["vacuum"] = _tried(
            found, "VACUUM's plan", lambda: _vacuum(log, files.num_rows, line.taken)
        )
        found["log"] = _tried(found, "the log's files", lambda: _log(log, snapshot, listing))
    found["troubles"] += line.unread
    found["history"] = _history(line)
    tell("examining the storage")
    found["doctor"] = doctor_facts(log, tell)
    if events:
        found["contention"] = _tried(found, "the events", lambda: _contention(log, events, tell))
    found["advice"] = advice(found)
    return found


def _listed(log: DeltaLog) -> Listing:
    """The log's files.

    Raises:
        TableNotFoundError: there are none; it says what is there instead.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        listing = list_log(log.store, log.table)
        if listing.latest() is not None:
            return listing
    _ = log.snapshot
    return list_log(log.store, log.table)  # it was made meanwhile


def _newest(log: DeltaLog) -> Snapshot:
    """The newest version, even where lakelog could not read its rows."""
    try:
        # The log keeps it, so that the plans of OPTIMIZE and VACUUM don't read it once more.
        return log.snapshot
    except UnsupportedFeatureError:
        return looked_at(log, None, None)


def _tried(found: dict[str, Any], what: str, ask: Callable[[], Any]) -> Any:
    """The answer, or None: then the trouble is noted, and the rest of the page goes on."""
    try:
        return ask()
    except _ERRORS as error:
        found["troubles"].append(f"{what}: {error}")
        return None


def _files(snapshot: Snapshot, files: Any) -> dict[str, Any]:
    vectors = files["deletion_vector"]
    deleted = pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0
    found: dict[str, Any] = {
        **file_list.sums(files),
        "small": pc.sum(pc.less(files["size"], SMALL)).as_py() or 0,
        "small_below": SMALL,
        "files_with_deleted_rows": len(files) - vectors.null_count,
        "deleted_rows": deleted,
        "oldest": time_text(pc.min(files["modification_time"]).as_py()),
        "newest": time_text(pc.max(files["modification_time"]).as_py()),
        "sizes": size_classes(files),
    }
    if snapshot.partition_columns:
        parts = file_list.sums_by_partition(snapshot, files)
        sizes = [each["bytes"] for each in parts]
        middle = statistics.median(sizes) if sizes else 0
        found["partition_columns"] = snapshot.partition_columns
        found["partition_count"] = len(parts)
        found["partitions"] = parts[:PARTITIONS]
        found["largest_to_median"] = sizes[0] / middle if middle else None
    return found


def _optimize(log: DeltaLog, snapshot: Snapshot, files: Any) -> dict[str, Any]:
    """What OPTIMIZE would put together; of very many files by their sums, without its plan."""
    if len(files) >= _LISTED:
        return _estimated(log, snapshot, files)
    from lakelog.core import optimize

    metrics = optimize(log, dry_run=True).metrics
    return {
        "files": metrics.num_files_removed,
        "bytes": metrics.files_removed.total_size,
        "groups": metrics.num_bins,
        "estimated": False,
    }


def _estimated(log: DeltaLog, snapshot: Snapshot, files: Any) -> dict[str, Any]:
    from lakelog.core.engine.maintenance import OptimizeSettings

    sizes = OptimizeSettings.chosen(log.conf, snapshot.metadata.configuration)
    small = pc.less(files["size"], sizes.min_size)
    parts = [
        each for each in file_list.sums_by_partition(snapshot, files, small) if each["files"] > 1
    ]
    return {
        "files": sum(each["files"] for each in parts),
        "bytes": sum(each["bytes"] for each in parts),
        "groups": sum(-(-each["bytes"] // sizes.target_size) for each in parts),
        "estimated": True,
    }


def _vacuum(log: DeltaLog, live: int, taken: Mapping[int, Taken]) -> dict[str, Any]:
    from lakelog.core.engine.maintenance import vacuum_outlook

    done = vacuum_outlook(log, "lite" if live >= _LISTED else "full", taken)
    return {
        "mode": done.mode,
        "older_than": time_text(done.cutoff),
        "files": done.num_files,
        "bytes": done.size_in_bytes,
    }


def _log(log: DeltaLog, snapshot: Snapshot, listing: Any) -> dict[str, Any]:
    properties = snapshot.properties
    left = [each.length for each, _ in drafts(log.store, log.table)]
    checkpoints = listing.checkpoints
    last = checkpoints[-1].version if checkpoints else None
    return {
        "earliest_version": listing.earliest(),
        "commits": len(listing.commits),
        "commit_bytes": sum(each.length for each in listing.commits.values()),
        "checkpoints": len(checkpoints),
        "checkpoint_bytes": sum(each.size_in_bytes for each in checkpoints),
        "last_checkpoint": last,
        "commits_since_checkpoint": snapshot.version - (-1 if last is None else last),
        "checkpoint_interval": properties.checkpoint_interval,
        "checksum_of_newest": snapshot.version in listing.checksums,
        "compacted": len(listing.compacted),
        "drafts": len(left),
        "draft_bytes": sum(left),
        "tombstones": snapshot.tombstones.num_rows,
        "log_retention": _property(snapshot, "delta.logRetentionDuration"),
        "file_retention": _property(snapshot, "delta.deletedFileRetentionDuration"),
        "applications": len(snapshot.transactions),
    }


def _property(snapshot: Snapshot, name: str) -> str | None:
    from lakelog.core.engine.commit import KNOWN

    return snapshot.metadata.configuration.get(name, KNOWN[name].default)


def kind_of(operation: str | None) -> str:
    """Which of `KINDS` an operation is."""
    return _KINDS.get((operation or "").upper(), "definition")


def _history(line: Timeline) -> dict[str, Any]:
    versions = line.versions
    times = [each.time for each in versions]
    return {
        "versions": len(versions),
        "first": versions[0].version if versions else None,
        "last": versions[-1].version if versions else None,
        "from": time_text(min(times, default=None)),
        "to": time_text(max(times, default=None)),
        "by_time": _by_time(versions),
        "growth": _growth(versions),
        "list": [version_facts(each) for each in reversed(versions[-VERSIONS:])],
    }


def version_facts(each: Version) -> dict[str, Any]:
    """One version, as `facts` lists it."""
    return {
        "version": each.version,
        "time": time_text(each.time),
        "operation": each.operation,
        "kind": kind_of(each.operation),
        "parameters": parameters_text(each.parameters),
        "effect": effect_text(each.metrics),
        "files_added": each.added,
        "files_removed": each.removed,
        "duration_ms": _duration(each.metrics),
        "engine": each.engine,
        "user": each.user,
        "note": each.note,
        **({} if each.totals is None else each.totals._asdict()),
    }


def _duration(metrics: Mapping[str, Any]) -> int | None:
    for name in ("executionTimeMs", "execution_time_ms"):
        number = metric_value(metrics.get(name))
        if isinstance(number, int) and number >= 0:
            return number
    return None


def _by_time(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """How many commits of which kind, in equal spans of time."""
    if not versions:
        return []
    first = min(each.time for each in versions)
    last = max(each.time for each in versions)
    count = min(_BUCKETS, len(versions))
    width = max((last - first) // count + 1, 1)
    buckets = [
        {"from": time_text(first + at * width), **dict.fromkeys(KINDS, 0)} for at in range(count)
    ]
    for each in versions:
        bucket: dict[str, Any] = buckets[min((each.time - first) // width, count - 1)]
        bucket[kind_of(each.operation)] += 1
    return buckets


def _growth(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """Totals after some of the versions, the newest among them."""
    known = [each for each in versions if each.totals is not None]
    step = max(len(known) / _BUCKETS, 1)
    count = min(_BUCKETS, len(known))
    picked = [known[len(known) - 1 - int(at * step)] for at in range(count)]
    return [
        {"version": each.version, "time": time_text(each.time), **each.totals._asdict()}
        for each in reversed(picked)
        if each.totals is not None
    ]


def doctor_facts(log: DeltaLog, tell: Callable[[str], None]) -> dict[str, Any]:
    """What the doctor sees of a table's storage without writing.

    Args:
        log: the table.
        tell: called with what is being done.
    """
    from lakelog.cli.doctor.examination import Depth, examine

    found = examine(log.table, dict(log.conf), Depth(read_only=True), tell).as_json()
    return {name: found[name] for name in ("verdict", "store", "commit_lock", "findings")}


def _contention(
    log: DeltaLog, events: Sequence[str], tell: Callable[[str], None]
) -> dict[str, Any]:
    from lakelog.cli.conflicts.conflicts_command import conflicts_document

    return conflicts_document(events, log.conf, log.table, None, VERSIONS, tell)
