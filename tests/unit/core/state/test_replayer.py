"""Replay elsewhere, with somebody who replays by the core's own means."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.state.replay import load_state
from support.log_histories import whole_state
from support.raw_log import RawLog, add, remove

if TYPE_CHECKING:
    from lakelog.core.state.replayer import ReplayJob


class Elsewhere:
    """Takes logs of so many bytes, and notes what it is asked."""

    def __init__(self, least: int = 0, broken: str | None = None) -> None:
        self.least = least
        self.broken = broken
        self.asked: list[tuple[str, bool]] = []

    def takes(self, job: ReplayJob) -> bool:
        return job.size_in_bytes >= self.least

    def replay(self, job: ReplayJob, kind: str, selection: Any) -> Any:
        self.asked.append((kind, selection is not None))
        if job.checkpoint is not None and self.broken is not None:
            raise job.checkpoint.corrupt(self.broken)
        files = load_state(job.store, job.segment.table, job.segment.version).files
        if kind == "remove":
            return files.tombstones
        return files.live if selection is None else selection.select(files.live)


@pytest.fixture
def log(tmp_path):
    log = RawLog(tmp_path / "t").create(
        *(add(f"f{i}", stats=f'{{"numRecords":{i}}}') for i in range(5))
    )
    log.commit({"txn": {"appId": "x", "version": 4}}, remove("f0", 4_000_000_000_000))
    return log


def opened(log, replayer=None, version=None):
    found = DeltaLog.for_table(log.table, replayer=replayer)
    return found.update() if version is None else found.snapshot_at(version)


def test_files_come_from_elsewhere_and_everything_else_from_here(log):
    elsewhere = Elsewhere()
    snapshot = opened(log, elsewhere)
    assert elsewhere.asked == []
    assert snapshot.transactions == {"x": 4}
    assert whole_state(snapshot) == whole_state(opened(log))
    assert elsewhere.asked == [("add", False), ("remove", False)]
    assert whole_state(opened(log, elsewhere, 0)) == whole_state(opened(log, version=0))


def test_a_filter_travels_and_files_at_hand_need_no_journey(log):
    elsewhere = Elsewhere()
    snapshot = opened(log, elsewhere)
    assert snapshot.files("a = 1")
    assert elsewhere.asked == [("add", True)]
    assert snapshot.num_files == 4
    assert snapshot.files("a = 1")
    assert elsewhere.asked == [("add", True), ("add", False)]


def test_a_small_log_stays_here(log):
    size = sum(each.stat().st_size for each in log.folder.glob("*.json"))
    elsewhere = Elsewhere(least=size + 1)
    assert opened(log, elsewhere).num_files == 4
    assert elsewhere.asked == []
    assert opened(log, Elsewhere(least=size)).state.files.is_at_hand is False


def test_a_checkpoint_that_is_broken_elsewhere_is_passed_over(log, caplog):
    expected = whole_state(opened(log))
    DeltaLog.for_table(log.table).checkpoint()
    elsewhere = Elsewhere(broken="a page is torn")
    with caplog.at_level(logging.WARNING):
        assert whole_state(opened(log, elsewhere)) == expected
    assert "a page is torn" in caplog.text
    assert [each.path for each in opened(log, elsewhere).files("a = 1")] == ["f1", "f2", "f3", "f4"]
    log.path(0).unlink()
    with pytest.raises(CorruptCheckpointError, match="a page is torn"):
        _ = opened(log, elsewhere).num_files
