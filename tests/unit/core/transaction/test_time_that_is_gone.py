"""The time of the version that was read, where log cleanup removed the commit that holds it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, write_arrow
from lakelog.core.actions.operation import Operation
from lakelog.core.errors import ConcurrentWriteException, LogGapError
from support.manual_clock import ManualClock

NOW = 1_790_000_000_000
ROWS = pa.table({"a": [1]})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Version 1 has a checkpoint, which does not keep its time."""
    uri = str(tmp_path / "t")
    create_table(uri, {"a": "long"}, properties={"delta.enableInCommitTimestamps": "true"})
    write_arrow(uri, ROWS, mode="append")
    DeltaLog.for_table(uri).checkpoint(1)
    return uri


def clean_up(table: str) -> None:
    for version in (0, 1):
        Path(table, "_delta_log", f"{version:020}.json").unlink()
    for each in Path(table, "_delta_log").glob("*.crc"):
        each.unlink()


def test_a_snapshot_can_not_tell_it_and_says_why(table: str) -> None:
    log = DeltaLog.for_table(table, {}, ManualClock(NOW))
    snapshot = log.snapshot
    clean_up(table)
    with pytest.raises(LogGapError, match=r"the time of version 1 of .* can't be read") as caught:
        _ = snapshot.timestamp
    assert caught.value.version == 1
    assert snapshot.num_files == 1


def test_a_writer_commits_nothing_and_is_told_to_read_again(table: str) -> None:
    log = DeltaLog.for_table(table, {}, ManualClock(NOW))
    transaction = log.start_transaction()
    clean_up(table)
    with pytest.raises(ConcurrentWriteException, match="Nothing was committed"):
        transaction.commit([], Operation("WRITE"))
    assert not list(Path(table, "_delta_log").glob(f"{2:020}.*"))
