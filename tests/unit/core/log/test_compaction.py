from __future__ import annotations

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.errors import CorruptCommitError, LogGapError
from lakelog.core.log.compaction import covering
from lakelog.core.log.segment import CompactedFile
from lakelog.logstores import FileStatus, LocalLogStore
from support.examples import examples
from support.log_histories import NOW, histories, whole_state
from support.manual_clock import ManualClock
from support.raw_log import RawLog, add, remove

OFF = "spark.databricks.delta.deltaLog.minorCompaction.useForReads"


@pytest.fixture
def log(tmp_path):
    log = RawLog(tmp_path / "t").create(add("a"))
    return log.commit(add("b")).commit(remove("a", NOW), add("c")).commit(add("d"))


def opened(log, **conf):
    return DeltaLog.for_table(log.table, conf, ManualClock(NOW))


def compacted(log, first, last):
    return log.folder / f"{first:020d}.{last:020d}.compacted.json"


def compact(log, first, last):
    """What the commits come to, by the plainest reconciliation there is."""
    state: dict[object, str] = {}
    for version in range(first, last + 1):
        lines = map(json.loads, log.path(version).read_text().splitlines())
        # Within a commit the file that is to stay comes last.
        for line in sorted(lines, key=lambda line: "add" in line):
            (kind, value), *_ = line.items()
            if kind == "commitInfo":
                continue
            vector = value.get("deletionVector")
            named = value.get("path") or value.get("appId") or value.get("domain") or kind
            group = "file" if kind in ("add", "remove") else kind
            key = (
                group,
                named,
                json.dumps(vector and [vector["storageType"], vector.get("offset")]),
            )
            state.pop(key, None)
            state[key] = json.dumps(line)
    compacted(log, first, last).write_text("".join(f"{line}\n" for line in state.values()))


def reads(monkeypatch):
    seen = []
    whole = LocalLogStore.read_bytes

    def noting(self, path):
        seen.append(path.rsplit("/", 1)[1])
        return whole(self, path)

    monkeypatch.setattr(LocalLogStore, "read_bytes", noting)
    return seen


@settings(max_examples=examples(24))
@given(histories, st.data())
def test_any_history_reads_the_same_through_compaction_files(tmp_path_factory, made, data):
    log = RawLog(tmp_path_factory.mktemp("t")).create()
    for actions in made:
        log.commit(*actions)
    expected = whole_state(opened(log).snapshot)
    newest = len(made)
    bounds = st.tuples(st.integers(0, newest), st.integers(0, newest))
    for first, last in data.draw(st.lists(bounds, max_size=3)):
        # A range of one commit is none; with nothing to say there is no file.
        if first < last:
            compact(log, first, last)
    if data.draw(st.booleans()):
        opened(log).checkpoint(data.draw(st.integers(0, newest)))
    assert whole_state(opened(log).snapshot) == expected
    shutil.rmtree(log.table)


def test_it_is_read_instead_of_the_commits(log, monkeypatch):
    expected = whole_state(opened(log).snapshot)
    compact(log, 0, 2)
    seen = reads(monkeypatch)
    assert whole_state(opened(log).snapshot) == expected
    assert sorted(seen) == [compacted(log, 0, 2).name, log.path(3).name]


def test_the_last_commit_is_read_itself_and_tells_who_made_it(log, monkeypatch):
    log.commit({"commitInfo": {"operation": "TEST"}}, add("e"))
    compact(log, 1, 4)
    seen = reads(monkeypatch)
    info = opened(log).snapshot.commit_info
    assert info is not None
    assert info.operation == "TEST"
    assert sorted(seen) == [log.path(0).name, compacted(log, 1, 4).name, log.path(4).name]


def test_a_session_may_do_without(log, monkeypatch):
    compact(log, 0, 2)
    seen = reads(monkeypatch)
    assert opened(log, **{OFF: "false"}).snapshot.num_files == 3
    assert compacted(log, 0, 2).name not in seen


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"add":{"path":1}}\n', b"\n"])
def test_a_broken_one_is_passed_over(log, content):
    expected = whole_state(opened(log).snapshot)
    compact(log, 0, 1)
    compacted(log, 2, 3).write_bytes(content)
    assert whole_state(opened(log).snapshot) == expected


def test_it_does_not_hide_a_missing_commit(log):
    compact(log, 0, 2)
    log.path(1).unlink()
    with pytest.raises(LogGapError):
        _ = opened(log).snapshot


def test_it_does_not_stand_in_for_a_damaged_commit_at_the_end(log):
    compact(log, 1, 3)
    log.path(3).write_text("{")
    with pytest.raises(CorruptCommitError):
        _ = opened(log).snapshot


def test_older_versions_are_read_with_what_ends_before_them(log):
    expected = whole_state(opened(log).snapshot_at(1))
    compact(log, 0, 2)
    assert whole_state(opened(log).snapshot_at(1)) == expected


# Windows and what is left of them, as in Delta's DeltaLogMinorCompactionSuite.
@pytest.mark.parametrize(
    ("windows", "first", "last", "taken"),
    [
        ([(0, 10)], 0, 10, [(0, 10)]),
        ([(0, 2), (3, 4), (4, 5)], 0, 10, [(0, 2), (3, 4)]),
        ([(7, 10), (8, 10)], 0, 10, [(7, 10)]),
        ([(0, 10), (5, 10)], 5, 10, [(5, 10)]),
        ([(0, 3), (0, 6), (4, 9)], 0, 10, [(0, 6)]),
        ([(0, 11)], 0, 10, []),
    ],
)
def test_which_files_are_taken(windows, first, last, taken):
    files = [CompactedFile(a, b, FileStatus(f"{a}.{b}", 1, 1)) for a, b in windows]
    assert [(each.first, each.last) for each in covering(files, first, last)] == taken
