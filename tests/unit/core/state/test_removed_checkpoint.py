"""A log that was opened long ago outlives the checkpoint that it was opened by."""

from __future__ import annotations

import pytest

from lakelog.core import DeltaLog
from lakelog.core.errors import CorruptCheckpointError
from support.manual_clock import ManualClock
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove


def opened(log):
    return DeltaLog.for_table(log.table, clock=ManualClock())


@pytest.fixture
def log(tmp_path):
    return RawLog(tmp_path / "t").create(add("a")).commit(add("b"))


def cleaned(log, until):
    """As log cleanup leaves it: the newest checkpoint, and what came after it."""
    opened(log).checkpoint()
    for path in log.folder.iterdir():
        if path.name[:20].isdecimal() and int(path.name[:20]) < until:
            path.unlink()


def grown(log):
    """The log with a snapshot by a checkpoint whose files nobody has asked for."""
    opened(log).checkpoint()
    kept = opened(log)
    kept.update()
    log.commit(remove("a"), add("c"))
    kept.update()
    return kept


def test_the_files_are_read_from_the_newer_checkpoint(log):
    kept = grown(log)
    cleaned(log, 2)
    snapshot = kept.update()
    assert sorted(snapshot.file_table["path"].to_pylist()) == ["b", "c"]
    assert snapshot.tombstones["path"].to_pylist() == ["a"]
    log.commit(add("d"))
    assert sorted(kept.update().file_table["path"].to_pylist()) == ["b", "c", "d"]


def test_so_are_the_tombstones_and_chosen_files(log):
    kept = grown(log)
    cleaned(log, 2)
    assert kept.update().tombstones["path"].to_pylist() == ["a"]
    assert len(kept.update().files("a = 1")) == 2


def test_another_table_at_the_path_does_not_stand_in(log):
    snapshot = grown(log).snapshot
    for path in log.folder.iterdir():
        path.unlink()
    log.next = 0
    log.commit(PROTOCOL, metadata(table_id="table-2"), add("x")).commit(add("y")).commit(add("z"))
    with pytest.raises(CorruptCheckpointError):
        _ = snapshot.file_table


def test_a_version_that_nothing_gives_any_more_is_an_error(log):
    snapshot = grown(log).snapshot
    log.commit(add("d"))
    cleaned(log, 3)
    with pytest.raises(CorruptCheckpointError):
        _ = snapshot.file_table
