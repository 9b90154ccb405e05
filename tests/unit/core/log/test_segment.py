from __future__ import annotations

import contextlib
import json
import logging
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    LogGapError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lakelog.core.log.file_names import checkpoint_name
from lakelog.core.log.segment import find_segment, list_log
from lakelog.logstores import FileStatus, LocalLogStore
from support.examples import examples
from support.manual_clock import ManualClock
from support.raw_log import RawLog, add

STORE = LocalLogStore()


@pytest.fixture
def log(tmp_path):
    return RawLog(tmp_path / "t").create()


def commits(log, last):
    while log.next <= last:
        log.commit({"commitInfo": {}})


def put(log, name, content=b"x"):
    (log.folder / name).write_bytes(content)


def hint(log, version):
    put(log, "_last_checkpoint", json.dumps({"version": version, "size": 1}).encode())


def part(version, part, parts):
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def of(segment):
    """The checkpoint of a segment that has one."""
    assert segment.checkpoint is not None
    return segment.checkpoint


def versions(segment):
    return [int(status.name[:20]) for status in segment.commits]


def test_without_a_checkpoint_all_commits_are_needed(log):
    commits(log, 3)
    segment = find_segment(STORE, log.table)
    assert (segment.version, segment.checkpoint, versions(segment)) == (3, None, [0, 1, 2, 3])
    assert segment.timestamp == log.path(3).stat().st_mtime_ns // 1_000_000


@pytest.mark.parametrize("hinted", [True, False])
def test_the_newest_checkpoint_and_the_commits_after_it_are_enough(log, hinted):
    commits(log, 7)
    put(log, checkpoint_name(2))
    put(log, checkpoint_name(5))
    if hinted:
        hint(log, 5)
    segment = find_segment(STORE, log.table)
    assert of(segment).version == 5
    assert versions(segment) == [6, 7]
    assert (segment.hint is not None) == hinted


def test_a_checkpoint_newer_than_the_hint_is_found(log):
    commits(log, 7)
    put(log, checkpoint_name(2))
    put(log, checkpoint_name(5))
    hint(log, 2)
    segment = find_segment(STORE, log.table)
    assert of(segment).version == 5
    assert segment.hint is None


def test_a_hint_that_points_at_nothing_is_survived(log):
    commits(log, 3)
    put(log, checkpoint_name(1))
    hint(log, 9)
    segment = find_segment(STORE, log.table)
    assert (segment.version, of(segment).version) == (3, 1)


def test_a_hint_that_points_at_commits_without_a_checkpoint_is_survived(log):
    commits(log, 5)
    hint(log, 3)
    assert versions(find_segment(STORE, log.table)) == [0, 1, 2, 3, 4, 5]


def test_a_dangling_hint_without_the_first_commits_is_refused(log):
    commits(log, 5)
    hint(log, 3)
    log.path(0).unlink()
    with pytest.raises(LogGapError, match="no complete checkpoint"):
        find_segment(STORE, log.table)


def test_an_older_version_uses_an_older_checkpoint(log):
    commits(log, 7)
    put(log, checkpoint_name(2))
    put(log, checkpoint_name(5))
    hint(log, 5)
    segment = find_segment(STORE, log.table, 4)
    assert (segment.version, of(segment).version, versions(segment)) == (4, 2, [3, 4])


def test_an_empty_checkpoint_is_passed_over(log):
    commits(log, 3)
    put(log, checkpoint_name(2), b"")
    assert find_segment(STORE, log.table).checkpoint is None


def test_a_multi_part_checkpoint_counts_when_it_is_complete(log):
    commits(log, 3)
    put(log, part(2, 1, 3))
    put(log, part(2, 3, 3))
    assert find_segment(STORE, log.table).checkpoint is None
    put(log, part(2, 2, 3))
    found = of(find_segment(STORE, log.table))
    assert [each.name for each in found.files] == [part(2, i, 3) for i in (1, 2, 3)]
    assert found.size_in_bytes == 3


def test_parts_of_two_writers_do_not_mix(log):
    commits(log, 3)
    put(log, part(2, 1, 2))
    put(log, part(2, 2, 3))
    put(log, part(2, 3, 3))
    assert find_segment(STORE, log.table).checkpoint is None


def test_of_one_version_a_single_file_is_preferred_to_parts(log):
    commits(log, 3)
    put(log, part(2, 1, 2))
    put(log, part(2, 2, 2))
    put(log, checkpoint_name(2))
    segment = find_segment(STORE, log.table)
    assert [each.name for each in of(segment).files] == [checkpoint_name(2)]
    other = find_segment(STORE, log.table, rejected=[of(segment)])
    assert len(of(other).files) == 2


def test_a_rejected_checkpoint_is_not_used_again(log):
    commits(log, 7)
    put(log, checkpoint_name(2))
    put(log, checkpoint_name(5))
    hint(log, 5)
    first = find_segment(STORE, log.table)
    second = find_segment(STORE, log.table, rejected=[of(first)])
    assert of(second).version == 2
    third = find_segment(STORE, log.table, rejected=[of(first), of(second)])
    assert versions(third) == list(range(8))


def test_a_gap_is_an_error_that_names_the_missing_versions(log):
    commits(log, 9)
    for version in (3, 5, 6, 7):
        log.path(version).unlink()
    with pytest.raises(LogGapError, match=r"commits 3, 5-7 are missing") as caught:
        find_segment(STORE, log.table)
    assert caught.value.missing == [3, 5, 6, 7]
    assert caught.value.path == str(log.path(3))


def test_a_commit_of_the_far_future_is_a_gap_and_no_hang(log):
    commits(log, 3)
    put(log, "00000020240131120000.json")
    with pytest.raises(LogGapError, match=r"commits 4-10003, 20240131119999 are missing"):
        find_segment(STORE, log.table)


endings = st.sampled_from([".json", ".crc", ".checkpoint.parquet", ".checkpoint.x-y.json"])
strays = st.tuples(
    st.one_of(st.integers(1, 19), st.integers(21, 40)), st.integers(0, 10**9).map(str), endings
).map(lambda parts: parts[1].zfill(parts[0])[-parts[0] :] + parts[2])
too_late = st.tuples(st.integers(2**63, 10**20 - 1), endings).map(
    lambda parts: f"{parts[0]:020d}{parts[1]}"
)


@settings(deadline=None, max_examples=examples(12))
@given(st.lists(st.one_of(strays, too_late), min_size=1, max_size=4))
def test_strays_that_lack_the_digits_of_a_version_change_nothing_and_are_reported_once(names):
    with tempfile.TemporaryDirectory() as folder, watched() as warned:
        log = RawLog(Path(folder) / "t").create(add("a"))
        commits(log, 2)
        before = find_segment(STORE, log.table)
        for name in names:
            put(log, name, b"{}")
        assert find_segment(STORE, log.table) == before
        assert find_segment(STORE, log.table, 1).version == 1
        known = DeltaLog.for_table(log.table)
        log.commit(add("b"))
        assert [each.path for each in known.update().files()] == ["a", "b"]
        # What sorts before version 0 is never seen.
        seen = {name for name in names if name > f"{0:020d}."}
        strays = sorted(f"{log.folder}/{name}" for name in seen)
        assert sorted(warned) == strays
        assert known.history(10)
        assert sorted(warned) == strays


@contextlib.contextmanager
def watched():
    """The files that a warning names."""
    warned: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "20 digits" in record.getMessage():
                warned.append(record.getMessage().partition(" is not a log file")[0])

    handler, logger = Handler(), logging.getLogger("lakelog")
    logger.addHandler(handler)
    try:
        yield warned
    finally:
        logger.removeHandler(handler)


def test_a_gap_before_the_checkpoint_does_not_matter(log):
    commits(log, 9)
    log.path(3).unlink()
    put(log, checkpoint_name(8))
    assert versions(find_segment(STORE, log.table)) == [9]


def test_a_gap_right_after_the_checkpoint_is_an_error(log):
    commits(log, 9)
    put(log, checkpoint_name(7))
    hint(log, 7)
    log.path(8).unlink()
    with pytest.raises(LogGapError, match=r"checkpoint 7.*commits 8 are missing"):
        find_segment(STORE, log.table)


def test_a_checkpoint_alone_is_a_table(log):
    put(log, checkpoint_name(0))
    log.path(0).unlink()
    segment = find_segment(STORE, log.table)
    assert (segment.version, segment.last_file.name) == (0, checkpoint_name(0))


def test_a_version_after_the_last_names_those_that_exist(log):
    commits(log, 4)
    with pytest.raises(VersionNotFoundError, match="versions 0 to 4 can be read") as caught:
        find_segment(STORE, log.table, 5)
    assert (caught.value.earliest, caught.value.latest) == (0, 4)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_version_before_the_first_that_can_be_rebuilt_is_not_found(log, version):
    commits(log, 9)
    put(log, checkpoint_name(5))
    for gone in (0, 1, 2):
        log.path(gone).unlink()
    with pytest.raises(VersionNotFoundError, match="versions 5 to 9 can be read"):
        find_segment(STORE, log.table, version)
    assert find_segment(STORE, log.table, 5).version == 5


def test_a_negative_version_is_not_found(log):
    with pytest.raises(VersionNotFoundError, match="versions 0 to 0"):
        find_segment(STORE, log.table, -1)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_v2_checkpoint_stands_in_for_the_commits(log, form):
    commits(log, 4)
    put(log, f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}")
    log.path(0).unlink()
    segment = find_segment(STORE, log.table)
    assert (of(segment).version, of(segment).is_v2, of(segment).is_json) == (
        3,
        True,
        form == "json",
    )
    assert versions(segment) == [4]


def test_of_the_checkpoints_of_one_version_the_one_with_the_fewest_files_comes_first(log):
    commits(log, 3)
    v2 = f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    for name in (part(3, 1, 2), part(3, 2, 2), v2, checkpoint_name(3)):
        put(log, name)
    found = list_log(STORE, log.table).checkpoints
    assert [each.files[0].name for each in found] == [part(3, 1, 2), v2, checkpoint_name(3)]
    assert find_segment(STORE, log.table, rejected=found[2:]).checkpoint == found[1]
    assert find_segment(STORE, log.table, rejected=found[1:]).checkpoint == found[0]


def test_foreign_files_and_folders_are_ignored(log):
    commits(log, 2)
    for name in ("x.json", f".{9:020d}.json.u.tmp", f"{9:020d}.json.tmp", f"{9:020d}.crc"):
        put(log, name)
    put(log, f"{1:020d}.{2:020d}.compacted.json")
    (log.folder / f"{9:020d}.json").mkdir()
    (log.folder / f"{9:020d}.checkpoint.parquet").mkdir()
    assert find_segment(STORE, log.table).version == 2


class Shuffled(LocalLogStore):
    """Lists against its promise: out of order, and with files of subfolders."""

    def list_from(self, path):
        found = list(super().list_from(path))
        folder = path.rsplit("/", 1)[0]
        found.append(FileStatus(f"{folder}/sub/{99:020d}.json", 1, 1))
        random.Random(7).shuffle(found)
        return iter(found)


def test_nested_files_and_disorder_of_a_bad_store_do_no_harm(log):
    commits(log, 12)
    put(log, checkpoint_name(5))
    segment = find_segment(Shuffled(), log.table)
    assert (segment.version, versions(segment)) == (12, list(range(6, 13)))


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (lambda p: None, "nothing is there"),
        (lambda p: p.write_text("x"), "it is a file"),
        (lambda p: (p.mkdir(), (p / "a.parquet").write_text("x")), "1 of them Parquet files"),
        (lambda p: (p / "_delta_log").mkdir(parents=True), "holds no commit"),
    ],
)
def test_a_path_that_is_no_table_says_what_is_there(tmp_path, make, seen):
    make(tmp_path / "x")
    with pytest.raises(TableNotFoundError, match=seen) as caught:
        find_segment(STORE, str(tmp_path / "x"))
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("name", ["main.sales.flights", "sales.flights"])
def test_what_may_be_a_name_in_a_catalog_is_answered_with_what_takes_one(tmp_path, name):
    hint = f"if {name} is a name in a catalog, .* give the table's location, or ask Spark's table"
    with pytest.raises(TableNotFoundError, match=hint):
        find_segment(STORE, str(tmp_path / name))


def test_a_listing_can_end_early(log):
    commits(log, 5)
    assert sorted(list_log(STORE, log.table, 2, 3).commits) == [2, 3]


class Lagging(LocalLogStore):
    """Its listings leave out the names that are `unlisted`; reads find them all."""

    def __init__(self, *unlisted):
        super().__init__()
        self.unlisted = set(unlisted)
        self.read_versions = []

    def read_bytes(self, path):
        self.read_versions.append(int(path.rpartition("/")[2][:20]))
        return super().read_bytes(path)

    @property
    def capabilities(self):
        return replace(super().capabilities, consistent_listing=False)

    def list_from(self, path):
        shown = [each for each in super().list_from(path) if each.name not in self.unlisted]
        if not shown:
            raise FileNotFoundError(path)
        return iter(shown)


def unlisted(*versions):
    return Lagging(*(f"{version:020d}.json" for version in versions))


@pytest.mark.parametrize("hidden", [(4,), (3, 4), (2,), (1, 3), (0,), (0, 1, 2, 3, 4)])
def test_a_commit_that_a_listing_lacks_is_found_by_reading(log, hidden):
    commits(log, 4)
    segment = find_segment(unlisted(*hidden), log.table)
    assert segment == find_segment(STORE, log.table)
    assert find_segment(unlisted(*hidden), log.table, 3) == find_segment(STORE, log.table, 3)
    assert list_log(unlisted(*hidden), log.table).commits.keys() == set(range(5))


def test_commits_that_a_listing_lacks_are_found_after_a_checkpoint(log):
    commits(log, 7)
    put(log, checkpoint_name(5))
    hint(log, 5)
    for version in range(4):
        log.path(version).unlink()
    segment = find_segment(unlisted(5, 6, 7), log.table)
    assert of(segment).version == 5
    assert versions(segment) == [6, 7]


def test_what_was_removed_costs_a_store_that_lags_one_read(log):
    commits(log, 7)
    put(log, checkpoint_name(5))
    for version in range(4):
        log.path(version).unlink()
    store = unlisted(7)
    assert list_log(store, log.table).commits.keys() == {4, 5, 6, 7}
    assert store.read_versions == [7, 8, 3]


def test_a_store_whose_listings_are_complete_is_not_read_for_them(log, monkeypatch):
    commits(log, 2)
    monkeypatch.setattr(LocalLogStore, "read_bytes", None)
    assert list_log(STORE, log.table).commits.keys() == {0, 1, 2}


def test_where_nothing_can_be_read_either_there_is_no_table(tmp_path):
    with pytest.raises(TableNotFoundError):
        find_segment(Lagging(), str(tmp_path / "none"))


def test_a_table_on_a_store_that_lags_is_opened_at_its_newest_version(tmp_path):
    log = RawLog(tmp_path / "t").create(add("a"))
    log.commit(add("b"))
    log.commit(add("c"))
    store = unlisted(1, 2)
    newest = DeltaLog(log.table, store, DeltaConf.from_mapping(None), ManualClock()).snapshot
    assert newest.version == 2
    assert newest.file_table["path"].to_pylist() == ["a", "b", "c"]
    history = DeltaLog(log.table, store, DeltaConf.from_mapping(None), ManualClock()).history()
    assert [entry.version for entry in history] == [2, 1, 0]


class TornListing(LocalLogStore):
    """Its first listing misses files that came while it ran."""

    def __init__(self, *missed):
        super().__init__()
        self.missed = missed
        self.listings = 0

    def list_from(self, path):
        self.listings += 1
        missed = self.missed if self.listings == 1 else ()
        return (each for each in super().list_from(path) if each.name not in missed)


@pytest.mark.parametrize("checkpoint", [None, 2, 4])
@pytest.mark.parametrize("hinted", [True, False])
def test_a_commit_that_came_while_its_folder_was_listed_is_no_gap(log, checkpoint, hinted):
    commits(log, 7)
    if checkpoint:
        put(log, checkpoint_name(checkpoint))
        if hinted:
            hint(log, checkpoint)
    for missed in ([0], [5], [6], [3, 6], [0, 1, 2, 3, 4, 5, 6]):
        store = TornListing(*(f"{each:020d}.json" for each in missed))
        segment = find_segment(store, log.table)
        assert segment.version == 7
        assert versions(segment) == list(range((checkpoint or -1) + 1, 8)), missed
        assert store.listings <= 2


@pytest.mark.parametrize("start", [0, 3])
def test_a_listing_without_a_hole_is_listed_once(log, start):
    commits(log, 7)
    put(log, checkpoint_name(2))
    for gone in (0, 1, 2):
        store = TornListing()
        assert list_log(store, log.table, start).latest() == 7
        assert store.listings == 1
        log.path(gone).unlink()


def test_a_newest_commit_that_came_meanwhile_is_not_waited_for(log):
    commits(log, 7)
    store = TornListing(f"{7:020d}.json")
    assert find_segment(store, log.table).version == 6
    assert store.listings == 1
