"""Reading commit events back: whatever else stands in the files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cli.conflicts.event_files import EventTail, Reading, parse_event, read_events
from lakelog.core.events import CommitOutcome, CommitStats

if TYPE_CHECKING:
    from pathlib import Path

EVENT = CommitStats(
    table="/t",
    version=3,
    attempt=1,
    outcome=CommitOutcome.CONFLICT,
    operation="UPDATE",
    txn_id="u-1",
    read_version=2,
    winner_version=3,
    winners=1,
    conflict="DELTA_CONCURRENT_APPEND",
    conflict_partition={"day": None},
    partition_columns=("day",),
    reads_whole_table=True,
    timestamp=1_700_000_000_000,
    backoff_ms=1.5,
    job="cleaner",
)
LINE = EVENT.to_json()


def read(*places: Path | str) -> Reading:
    return read_events([str(place) for place in places], {}, lambda _: None)


@given(
    st.builds(
        replace,
        st.just(EVENT),
        table=st.text(),
        outcome=st.sampled_from(CommitOutcome),
        txn_id=st.text(),
        version=st.integers(0, 1 << 40),
        error=st.none() | st.text(),
        job=st.none() | st.text(),
        conflict_partition=st.none() | st.dictionaries(st.text(), st.none() | st.text()),
        winners=st.integers(0, 1000),
    )
)
def test_what_a_job_wrote_comes_back(event: CommitStats) -> None:
    assert parse_event(event.to_json().encode() + b"\n") == event


@given(st.binary())
def test_no_line_at_all_does_harm(line: bytes) -> None:
    parse_event(line)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "3"},
        {"version": True},
        {"outcome": "won"},
        {"outcome": ["committed"]},
        {"table": 7},
        {"txn_id": None},
        {"winners": 10**12},
        {"winners": -1},
        {"timestamp": "now"},
        {"conflict_partition": ["day"]},
        {"job": 7},
    ],
)
def test_a_record_that_only_looks_like_an_event_is_none(change: dict[str, object]) -> None:
    assert parse_event(json.dumps({**json.loads(LINE), **change}).encode()) is None


@pytest.mark.parametrize("name", ["table", "version", "attempt", "outcome", "txn_id"])
def test_a_record_that_lacks_what_matters_is_none(name: str) -> None:
    value = json.loads(LINE)
    del value[name]
    assert parse_event(json.dumps(value).encode()) is None


def test_fields_of_later_versions_are_passed_over() -> None:
    value = {**json.loads(LINE), "from_the_future": [1]}
    assert parse_event(json.dumps(value).encode()) == EVENT


def test_records_of_earlier_versions_lack_the_job_and_the_time() -> None:
    names = ("table", "version", "attempt", "outcome", "operation", "txn_id", "read_version")
    old = {name: json.loads(LINE)[name] for name in names}
    event = parse_event(json.dumps(old).encode())
    assert event is not None
    assert (event.job, event.timestamp, event.winners) == (None, None, 0)


def test_other_lines_are_counted_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    torn = LINE[: len(LINE) // 2]
    path.write_bytes(
        b"\n".join([b"INFO hello {", b'{"a": 1}', b"", b"\xff\xfe", LINE.encode(), torn.encode()])
    )
    found = read(path)
    assert found.events == [EVENT]
    assert (found.lines, found.foreign, found.torn, found.duplicates) == (5, 3, 1, 0)


def test_a_last_line_without_a_line_break_is_an_event_if_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text(LINE)
    assert read(path).events == [EVENT]


def test_what_a_logger_puts_before_the_record_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(f"2026-01-31 12:00:00 INFO lakelog.commit - {LINE}\n")
    assert read(path).events == [EVENT]


def test_an_event_that_was_written_to_two_places_counts_once(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(LINE + "\n")
    found = read(tmp_path)
    assert (len(found.events), found.duplicates, len(found.files)) == (1, 1, 2)


def test_files_folders_and_globs_are_places(tmp_path: Path) -> None:
    deep = tmp_path / "jobs" / "deep"
    deep.mkdir(parents=True)
    paths = [tmp_path / "one.txt", tmp_path / "jobs" / "two.jsonl", deep / "three.json"]
    for number, path in enumerate(paths):
        path.write_text(replace(EVENT, txn_id=str(number)).to_json() + "\n")
    (deep / ".hidden.json").write_text("x\n")
    (deep / "_temporary.json").write_text("x\n")
    (deep / "notes.txt").write_text("x\n")

    def ids(*places: Path | str) -> list[str]:
        found = read(*places)
        assert found.foreign == 0
        return sorted(each.txn_id for each in found.events)

    assert ids(paths[0]) == ["0"]
    assert ids(tmp_path / "jobs") == ["1", "2"]
    assert ids(f"{tmp_path}/jobs/*.jsonl") == ["1"]
    assert ids(f"{tmp_path}/**/t*.json*") == ["1", "2"]
    assert ids(f"file://{paths[0]}", f"{tmp_path}/jobs") == ["0", "1", "2"]


def test_a_file_whose_name_has_wildcards_is_meant_by_it(tmp_path: Path) -> None:
    path = tmp_path / "odd[1].jsonl"
    path.write_text(LINE + "\n")
    assert len(read(path).events) == 1


def test_a_store_is_a_place_too() -> None:
    from lakelog.logstores import MemoryLogStore

    MemoryLogStore.forget("events")
    store = MemoryLogStore()
    filesystem = store.filesystem
    for number, name in enumerate(("events/a.jsonl", "events/x/b.jsonl", "events/x/c.txt")):
        uri = f"memory://events/{name}"
        path = store.filesystem_path(uri)
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(path) as sink:
            sink.write(replace(EVENT, txn_id=str(number)).to_json().encode() + b"\n")

    def ids(place: str) -> list[str]:
        return sorted(each.txn_id for each in read(place).events)

    assert ids("memory://events/events") == ["0", "1"]
    assert ids("memory://events/events/a.jsonl") == ["0"]
    assert ids("memory://events/events/*/*.txt") == ["2"]
    assert ids("memory://events/events/**/*.jsonl") == ["0", "1"]
    with pytest.raises(FileNotFoundError, match="no event file found"):
        ids("memory://events/nothing")


@pytest.mark.parametrize("place", ["missing.jsonl", "missing/*.jsonl", "empty"])
def test_a_place_without_files_is_an_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no event file found"):
        read(tmp_path / place)


def line(number: int) -> str:
    return replace(EVENT, txn_id=f"u-{number}").to_json() + "\n"


def test_a_tail_reads_each_event_once_as_it_comes(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    tail = EventTail([str(tmp_path)], {}, 100)
    assert not tail.look()
    file.write_text(line(1))
    assert tail.look()
    assert not tail.look()
    with file.open("a") as target:
        target.write(line(2) + line(1) + "noise\n" + line(3)[:20])
    assert tail.look()
    with file.open("a") as target:
        target.write(line(3)[20:])
    (tmp_path / "another.jsonl").write_text(line(4))
    assert tail.look()
    assert sorted(each.txn_id for each in tail.reading.events) == ["u-1", "u-2", "u-3", "u-4"]
    assert (tail.reading.foreign, tail.reading.torn, tail.reading.duplicates) == (1, 0, 1)
    assert tail.reading.files == [str(tmp_path / "another.jsonl"), str(file)]


def test_a_tail_reads_a_file_that_was_begun_again_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    tail = EventTail([str(file)], {}, 100)
    file.write_text(line(1) + line(2))
    tail.look()
    file.write_text(line(3))
    tail.look()
    assert [each.txn_id for each in tail.reading.events] == ["u-1", "u-2", "u-3"]


def test_a_tail_keeps_the_newest_events_alone(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    tail = EventTail([str(file)], {}, 3)
    file.write_text("".join(map(line, range(5))))
    tail.look()
    assert [each.txn_id for each in tail.reading.events] == ["u-2", "u-3", "u-4"]
    with file.open("a") as target:
        target.write(line(5))
    tail.look()
    assert [each.txn_id for each in tail.reading.events] == ["u-3", "u-4", "u-5"]
    assert tail.forgotten == 3
