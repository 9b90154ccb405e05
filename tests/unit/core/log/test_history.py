from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.errors import (
    CorruptCommitError,
    DeltaAnalysisError,
    LogGapError,
    TimestampOutOfRangeError,
)
from lakelog.core.log.commit_history import commit_times, read_history
from lakelog.core.log.file_names import commit_path, log_path
from lakelog.core.log.segment import Listing
from lakelog.core.state.version_at_time import parse_timestamp
from lakelog.logstores import FileStatus, LocalLogStore
from support.manual_clock import ManualClock
from support.raw_log import PROTOCOL, RawLog, add, metadata

T0 = 1_700_000_000_000


def made(path, times):
    """A table whose versions have these modification times."""
    log = RawLog(path).create()
    for index in range(1, len(times)):
        log.commit(add(f"f{index}"))
    for version, time in enumerate(times):
        log.touch(version, time)
    return log


def opened(log):
    return DeltaLog.for_table(log.table, clock=ManualClock(T0))


def version_at(log, timestamp):
    return opened(log).snapshot_at(timestamp=timestamp).version


def test_the_version_at_a_time_is_the_newest_not_after_it(tmp_path):
    log = made(tmp_path, [T0, T0 + 10, T0 + 20])
    asked = {T0: 0, T0 + 9: 0, T0 + 10: 1, T0 + 19: 1, T0 + 20: 2}
    assert {time: version_at(log, time) for time in asked} == asked


@pytest.mark.parametrize(
    ("time", "side", "near"), [(T0 - 1, "before the first", 0), (T0 + 21, "after the last", 2)]
)
def test_a_time_out_of_range_names_the_range(tmp_path, time, side, near):
    log = made(tmp_path, [T0, T0 + 10, T0 + 20])
    with pytest.raises(TimestampOutOfRangeError, match=side) as caught:
        version_at(log, time)
    assert f"Ask for version {near}" in str(caught.value)
    assert (caught.value.first, caught.value.last) == (T0, T0 + 20)


def test_times_that_run_backwards_are_made_ascending(tmp_path):
    log = made(tmp_path, [T0, T0 + 10, T0 + 5, T0 + 10, T0 + 30])
    assert [e.timestamp - T0 for e in opened(log).history()] == [30, 12, 11, 10, 0]
    assert version_at(log, T0 + 11) == 2
    assert version_at(log, T0 + 12) == 3


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_times_are_strictly_ascending_and_never_earlier_than_the_files(files):
    listing = Listing({v: FileStatus(f"/t/{v}", 1, time) for v, time in enumerate(files)})
    times = list(commit_times(listing).values())
    assert times == sorted(set(times))
    assert all(time >= file for time, file in zip(times, files, strict=True))
    assert times[0] == files[0]


def test_versions_that_can_not_be_rebuilt_are_not_offered(tmp_path):
    log = made(tmp_path, [T0 + i * 10 for i in range(6)])
    opened(log).checkpoint(3)
    log.path(0).unlink()
    with pytest.raises(TimestampOutOfRangeError, match="versions 3 to 5"):
        version_at(log, T0 + 20)
    assert version_at(log, T0 + 30) == 3


def test_history_is_newest_first_and_can_be_limited(tmp_path):
    log = RawLog(tmp_path).create()
    info = {
        "timestamp": 1,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "operationMetrics": {"numFiles": "1"},
        "userMetadata": "me",
        "engineInfo": "engine/1",
        "isBlindAppend": True,
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "clientVersion": "other writers' field",
    }
    log.commit({"commitInfo": info}, add("a"))
    log.commit(add("b"), {"commitInfo": {"operation": "DELETE"}})
    delete, write, create = opened(log).history()
    assert (delete.version, delete.operation) == (2, "DELETE")
    assert (write.operation, write.parameters, write.metrics) == (
        "WRITE",
        {"mode": "Append"},
        {"numFiles": "1"},
    )
    assert (write.user_metadata, write.engine_info, write.is_blind_append) == (
        "me",
        "engine/1",
        True,
    )
    assert (write.read_version, write.isolation_level, write.commit_info) == (
        0,
        "Serializable",
        info,
    )
    assert (create.version, create.operation, create.commit_info) == (0, None, {})
    assert [e.version for e in opened(log).history(2)] == [2, 1]
    assert opened(log).history(0) == []


class Watched(LocalLogStore):
    """Remembers what it is asked for."""

    def __init__(self):
        super().__init__()
        self.listed, self.opened = [], []

    def list_from(self, path):
        self.listed.append(path)
        return super().list_from(path)

    def read(self, path):
        self.opened.append(path)
        return super().read(path)


def test_a_limited_history_lists_and_reads_only_what_it_gives(tmp_path):
    log = made(tmp_path, [T0 + i for i in range(30)])
    store = Watched()
    entries = read_history(store, log.table, 29, limit=2)
    assert [(e.version, e.timestamp - T0) for e in entries] == [(29, 29), (28, 28)]
    assert store.listed == [log_path(log.table, f"{27:020d}.")]
    assert store.opened == [commit_path(log.table, 29), commit_path(log.table, 28)]


def test_history_goes_back_beyond_what_can_be_rebuilt(tmp_path):
    log = made(tmp_path, [T0 + i for i in range(4)])
    opened(log).checkpoint(2)
    log.path(0).unlink()
    assert [e.version for e in opened(log).history()] == [3, 2, 1]


def test_a_commit_info_that_is_no_json_is_named(tmp_path):
    log = RawLog(tmp_path).create().commit(add("a")).commit(add("b"))
    opened(log).checkpoint(2)
    log.path(1).write_text('{"commitInfo":{"operation":')
    with pytest.raises(CorruptCommitError, match=r"0001\.json"):
        opened(log).history()


def in_commit(path, times, since=None):
    """A table with in-commit timestamps; their files' times say nothing."""
    extra = {}
    if since is not None:
        extra = {
            "delta.inCommitTimestampEnablementVersion": str(since),
            "delta.inCommitTimestampEnablementTimestamp": str(times[since]),
        }
    lists = {"writerFeatures": ["inCommitTimestamp"]}
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, **lists}}
    log = RawLog(path)
    for version, time in enumerate(times):
        inside = {"inCommitTimestamp": time} if version >= (since or 0) else {}
        actions = [{"commitInfo": inside}, add(f"f{version}")]
        if version == 0:
            actions += [PROTOCOL if since else protocol]
            actions += [metadata()] if since else []
        if version == (since or 0):
            actions += [protocol] if since else []
            actions += [metadata(configuration={"delta.enableInCommitTimestamps": "true", **extra})]
        log.commit(*actions)
    for version, time in enumerate(times):
        log.touch(version, time if version < (since or 0) else T0 + 10**6)
    return log


@pytest.mark.parametrize("since", [None, 2])
def test_in_commit_timestamps_count_where_the_table_has_them(tmp_path, since):
    times = [T0 + i * 10 for i in range(6)]
    log = in_commit(tmp_path, times, since)
    assert opened(log).snapshot.timestamp == times[-1]
    assert [e.timestamp for e in opened(log).history()] == times[::-1]
    for version, time in enumerate(times):
        assert version_at(log, time) == version
    for version, time in enumerate(times[:-1]):
        assert version_at(log, time + 5) == version
    with pytest.raises(TimestampOutOfRangeError):
        version_at(log, times[-1] + 1)


def test_a_commit_that_lacks_its_in_commit_timestamp_is_damaged(tmp_path):
    log = in_commit(tmp_path, [T0, T0 + 10, T0 + 20])
    text = log.path(1).read_text().replace("inCommitTimestamp", "other")
    log.path(1).write_text(text)
    with pytest.raises(CorruptCommitError, match="DELTA_MISSING_COMMIT_"):
        version_at(log, T0 + 10)
    with pytest.raises(CorruptCommitError, match="DELTA_MISSING_COMMIT_"):
        opened(log).history()


def test_a_time_before_all_commits_that_are_left_is_too_early(tmp_path):
    times = [T0 + i * 10 for i in range(6)]
    log = in_commit(tmp_path, times, since=2)
    opened(log).checkpoint(3)
    for version in range(3):
        log.path(version).unlink()
    with pytest.raises(TimestampOutOfRangeError, match="before the first"):
        version_at(log, times[1])
    assert version_at(log, times[3] + 1) == 3


def test_times_that_commits_carry_count_only_where_they_are_switched_on(tmp_path):
    times = [T0 + i * 10 for i in range(3)]
    log = in_commit(tmp_path, times)
    off = {"delta.enableInCommitTimestamps": "false"}
    log.commit({"commitInfo": {"timestamp": 1}}, metadata(configuration=off))
    log.touch(3, T0 + 10**6 + 9)
    moved = [T0 + 10**6 + each for each in (9, 2, 1, 0)]
    assert [entry.timestamp for entry in opened(log).history()] == moved
    assert opened(log).snapshot.timestamp == moved[0]


def test_a_snapshot_from_a_checkpoint_takes_its_time_from_the_commit(tmp_path):
    log = in_commit(tmp_path, [T0, T0 + 10])
    opened(log).checkpoint(1)
    assert opened(log).snapshot.timestamp == T0 + 10
    log.path(1).write_text(log.path(1).read_text().replace('"commitInfo"', '"other"'))
    with pytest.raises(CorruptCommitError, match="DELTA_MISSING_COMMIT_INFO"):
        _ = opened(log).snapshot.timestamp


def test_a_log_of_which_nothing_can_be_rebuilt_says_so(tmp_path):
    log = made(tmp_path, [T0, T0 + 1])
    delta_log = opened(log)
    _ = delta_log.snapshot
    log.path(0).unlink()
    with pytest.raises(LogGapError, match="no version"):
        delta_log.snapshot_at(timestamp=T0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        ("1970-01-01", 0),
        ("1970-01-02", 86_400_000),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T00:00:01.234Z", 1234),
        ("1970-01-01T00:00:01.234999Z", 1234),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1000),
        (datetime(1970, 1, 1, 0, 0, 1), 1000),  # noqa: DTZ001  # no zone means UTC
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
    ],
)
def test_times_can_be_given_in_several_forms(value, expected):
    assert parse_timestamp(value) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2020", "2020-13-01", "20200101", "12:00"])
def test_text_that_is_no_time_is_refused(text):
    with pytest.raises(DeltaAnalysisError, match="is not a time"):
        parse_timestamp(text)


def test_an_entry_shows_odd_commit_info_as_it_is(tmp_path):
    log = RawLog(tmp_path).create().write(json.dumps({"commitInfo": {"operation": 5}}) + "\n")
    assert opened(log).history()[0].commit_info == {"operation": 5}
