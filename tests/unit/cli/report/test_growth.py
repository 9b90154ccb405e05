"""What the report says that a table held after each version is what its snapshots hold."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cli.report.facts import facts
from lakelog.cli.report.growth import Timeline, Totals, timeline
from lakelog.core import DeltaLog, delete_rows, optimize, restore, update_rows, vacuum, write_arrow
from lakelog.core.engine.log import list_log
from lakelog.core.engine.maintenance import vacuum_outlook
from lakelog.logstores import LocalLogStore
from support.examples import examples
from support.manual_clock import ManualClock
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "overwrite", "delete", "update", "optimize", "restore"]),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=9,
)


def seen(log: DeltaLog, *, without: int | None = None) -> Timeline:
    """The timeline of a table; `without` takes a commit out of the listing."""
    snapshot = log.snapshot
    listing = list_log(log.store, log.table)
    if without is not None:
        del listing.commits[without]
    rows = snapshot.to_arrow().num_rows
    now = Totals(snapshot.num_files, snapshot.size_in_bytes, rows)
    return timeline(log.store, log.table, listing, now, lambda _: None)


def held(log: DeltaLog, version: int) -> Totals:
    snapshot = log.snapshot_at(version)
    return Totals(snapshot.num_files, snapshot.size_in_bytes, snapshot.to_arrow().num_rows)


def play(
    table: str, steps: list[tuple[str, int]], *, vectors: bool, feed: bool = False
) -> DeltaLog:
    properties = {
        "delta.enableDeletionVectors": str(vectors).lower(),
        "delta.enableChangeDataFeed": str(feed).lower(),
    }
    write_arrow(table, pa.table({"a": list(range(20))}), properties=properties)
    log = DeltaLog.for_table(table)
    for what, number in steps:
        rows = pa.table({"a": list(range(number))})
        match what:
            case "append":
                write_arrow(log, rows, mode="append")
            case "overwrite":
                write_arrow(log, rows, mode="overwrite")
            case "delete":
                delete_rows(log, f"a % 7 = {number % 7}")
            case "update":
                update_rows(log, {"a": "a + 1"}, f"a < {number}")
            case "optimize":
                optimize(log)
            case _:
                restore(log, number % (log.snapshot.version + 1))
    return log


@settings(max_examples=examples(12), deadline=None)
@given(st.data(), STEPS, st.booleans())
def test_each_version_held_what_its_snapshot_holds(
    tmp_path_factory: Any, data: st.DataObject, steps: list[tuple[str, int]], vectors: bool
) -> None:
    table = str(tmp_path_factory.mktemp("grown") / "t")
    log = play(table, steps, vectors=vectors)
    found = seen(log).versions
    assert [each.version for each in found] == list(range(log.snapshot.version + 1))
    assert [each.totals for each in found] == [held(log, each.version) for each in found]
    # Behind a gap nothing is known, and what is before it stays as it is.
    if len(found) > 2:
        gone = data.draw(st.integers(1, len(found) - 2))
        left = {each.version: each.totals for each in seen(log, without=gone).versions}
        assert gone not in left
        for version, totals in left.items():
            assert totals == (held(log, version) if version > gone else None)


@settings(max_examples=examples(12), deadline=None)
@given(STEPS, st.booleans(), st.booleans(), st.integers(-1, 9), st.sampled_from(["full", "lite"]))
def test_vacuum_is_told_what_it_would_read(
    tmp_path_factory: Any,
    steps: list[tuple[str, int]],
    vectors: bool,
    feed: bool,
    cut: int,
    mode: str,
) -> None:
    folder = tmp_path_factory.mktemp("told") / "t"
    play(str(folder), steps, vectors=vectors, feed=feed)
    began = int(time.time()) + 60
    for file in folder.rglob("*.*"):
        # The commits ten seconds apart, and everything else long ago.
        version = int(file.stem) if file.stem.isdigit() else -1000
        changed = began + 10 * version
        os.utime(file, (changed, changed))
    week = 7 * 24 * 3600
    clock = ManualClock((began + 10 * cut + 5 + week) * 1000)
    log = DeltaLog.for_table(str(folder), clock=clock)
    line = seen(log)
    assert sorted(line.taken) == [each.version for each in line.versions]
    told = vacuum_outlook(log, mode, line.taken)
    asked = vacuum(log, dry_run=True, mode=mode)
    assert told.files.equals(asked.files)
    assert told.files_seen == asked.files_seen
    assert told.cutoff == asked.cutoff


def test_a_report_reads_each_commit_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = str(tmp_path / "t")
    play(table, [("append", 5), ("delete", 1), ("overwrite", 3)] * 2, vectors=False)
    DeltaLog.for_table(table).checkpoint()
    monkeypatch.setattr("lakelog.cli.report.facts._LISTED", 1)
    read: list[str] = []
    read_bytes = LocalLogStore.read_bytes

    def counted(store: LocalLogStore, path: str) -> bytes:
        read.append(path.rpartition("/")[2])
        return read_bytes(store, path)

    monkeypatch.setattr(LocalLogStore, "read_bytes", counted)
    gathered = facts(DeltaLog.for_table(table), (), lambda _: None)
    assert gathered["vacuum"]["mode"] == "LITE"
    commits = [f"{version:020}.json" for version in range(7)]
    assert sorted(each for each in read if each in commits) == commits


def test_rows_of_files_without_statistics_are_unknown_and_bytes_are_not(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t")
    log.commit(PROTOCOL, metadata(), add("a", size=10, stats='{"numRecords": 3}'))
    log.commit(add("b", size=20))
    log.commit(add("c", size=40, stats='{"numRecords": 4}'))
    log.commit({"remove": {"path": "b", "dataChange": True, "deletionTimestamp": 1}})
    opened = DeltaLog.for_table(str(tmp_path / "t"))
    listing = list_log(opened.store, opened.table)
    found = timeline(opened.store, opened.table, listing, Totals(2, 50, 7), lambda _: None)
    assert [each.totals for each in found.versions] == [
        Totals(1, 10, None),
        Totals(2, 30, None),
        Totals(3, 70, None),
        Totals(2, 50, 7),
    ]


def test_a_file_that_is_added_once_more_counts_once(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t")
    log.commit(PROTOCOL, metadata(), add("a", size=10, stats='{"numRecords": 3}'))
    log.commit(add("a", size=10, stats='{"numRecords": 3}', dataChange=False))
    opened = DeltaLog.for_table(str(tmp_path / "t"))
    listing = list_log(opened.store, opened.table)
    found = timeline(opened.store, opened.table, listing, Totals(1, 10, 3), lambda _: None)
    assert [each.totals for each in found.versions] == [Totals(1, 10, 3)] * 2


def test_the_removal_of_a_file_that_never_was_counts_nothing(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t")
    log.commit(PROTOCOL, metadata(), add("a", size=10, stats='{"numRecords": 3}'))
    log.commit(remove("ghost", size=5))
    log.commit(remove("a"))
    opened = DeltaLog.for_table(str(tmp_path / "t"))
    listing = list_log(opened.store, opened.table)

    def totals() -> list[Totals | None]:
        found = timeline(opened.store, opened.table, listing, Totals(0, 0, 0), lambda _: None)
        return [each.totals for each in found.versions]

    assert totals() == [Totals(1, 10, 3), Totals(1, 10, 3), Totals(0, 0, 0)]
    # Where the commits before are gone, it may have been.
    del listing.commits[0]
    assert [each and each[:2] for each in totals()] == [(1, 0), (0, 0)]


def test_a_commit_that_cannot_be_read_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    log = play(table, [("append", 5)] * 4, vectors=False)
    path = tmp_path / "t" / "_delta_log" / f"{2:020}.json"
    path.write_text("{broken")
    listing = list_log(log.store, log.table)
    found = timeline(log.store, log.table, listing, Totals(5, 1, 40), lambda _: None)
    assert [each.version for each in found.versions] == [0, 1, 3, 4]
    assert len(found.unread) == 1
    assert path.name in found.unread[0]
    assert [each.totals is None for each in found.versions] == [True, True, False, False]
