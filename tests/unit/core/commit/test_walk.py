"""How far a reader has to walk to follow one commit: each file more is one more to hold in mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile
from support.walk import Walk, walk

if TYPE_CHECKING:
    from pathlib import Path

MOST_FILES, MOST_CALLS = 40, 208
MOST_FILES_AT_FIRST = 45
UNWATCHED = {"spark.lakelog.telemetry": "off"}
"""As if no test of this process had imported OpenTelemetry."""
"""Of a table that was just opened: what its metadata and the conf mean is worked out too."""


def commit_of_one_file(log: DeltaLog, name: str, *, is_written: bool = False) -> Walk:
    txn = log.start_transaction()
    if is_written:
        txn.changes.mark_written()
    add = AddFile(
        path=name,
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )
    operation = Operation("WRITE", {"mode": "Append"})
    return walk(lambda: txn.commit([add], operation))


COUNTS = pytest.mark.skipif(
    not hasattr(pa.default_memory_pool(), "num_allocations"),
    reason="pyarrow counts what its arrays take from 20 on",
)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.table({"month": [1, 2, 3]}))
    commit_of_one_file(
        DeltaLog.for_table(uri, UNWATCHED), "part-warm.parquet"
    )  # what a process does once
    return uri


def test_the_commit_of_one_file_is_a_short_walk(uri: str) -> None:
    log = DeltaLog.for_table(uri, UNWATCHED)
    for number in range(4):  # what is worked out once for a log is worked out now
        commit_of_one_file(log, f"part-{number}.parquet")
    found = commit_of_one_file(log, "part-4.parquet")
    assert len(found.files) <= MOST_FILES, sorted(found.files)
    assert len(found.calls) <= MOST_CALLS, sorted(found.calls)


@pytest.mark.parametrize("is_written", [False, True])
def test_the_first_commit_of_a_log_is_a_short_walk(uri: str, is_written: bool) -> None:
    found = commit_of_one_file(
        DeltaLog.for_table(uri, UNWATCHED), "part-0.parquet", is_written=is_written
    )
    assert len(found.files) <= MOST_FILES_AT_FIRST, sorted(found.files)


@COUNTS
@pytest.mark.parametrize("is_written", [False, True])
def test_to_commit_one_file_no_array_of_arrow_is_built(uri: str, is_written: bool) -> None:
    log = DeltaLog.for_table(uri, UNWATCHED)
    for number in range(4):
        name = f"part-{number}.parquet"
        assert commit_of_one_file(log, name, is_written=is_written).arrow_buffers == 0


@COUNTS
def test_the_walk_counts_the_memory_of_an_array(uri: str) -> None:
    snapshot = DeltaLog.for_table(uri, UNWATCHED).update()
    assert walk(lambda: snapshot.file_table).arrow_buffers
