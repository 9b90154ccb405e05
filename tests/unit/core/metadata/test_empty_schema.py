"""Metadata without a schema, as Delta Live Tables write it, is a table without columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.schema import StructType
from support.raw_log import PROTOCOL, RawLog, metadata

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["absent", "null"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> RawLog:
    line: dict[str, Any] = metadata()
    if request.param == "null":
        line["metaData"]["schemaString"] = None
    else:
        del line["metaData"]["schemaString"]
    return RawLog(tmp_path / "t").commit(PROTOCOL, line)


def test_it_is_read(log: RawLog) -> None:
    snapshot = DeltaLog.for_table(log.table).snapshot
    assert snapshot.schema == StructType()
    assert snapshot.to_arrow().shape == (0, 0)
    assert snapshot.num_files == 0


def test_it_is_written_and_its_checkpoint_read(log: RawLog) -> None:
    rows = pa.table({"a": [1, 2]})
    write_arrow(log.table, rows, schema_mode="merge", mode="append")
    found = DeltaLog.for_table(log.table)
    assert found.snapshot.to_arrow().equals(rows)


@pytest.mark.parametrize("v2", [False, True])
def test_a_checkpoint_keeps_it(log: RawLog, v2: bool) -> None:
    found = DeltaLog.for_table(log.table)
    log.commit({"txn": {"appId": "x", "version": 1}})
    found.update()
    if v2:
        found.upgrade_protocol(features=["v2Checkpoint"])
    found.update()
    found.checkpoint()
    version = found.snapshot.version
    for each in range(version + 1):
        log.path(each).unlink()
    log.commit({"commitInfo": {"operation": "x"}}, version=version + 1)
    again = DeltaLog.for_table(log.table).snapshot
    assert (again.version, again.schema) == (version + 1, StructType())


def test_an_overwrite_gives_it_columns(log: RawLog) -> None:
    rows = pa.table({"b": ["x"]})
    write_arrow(log.table, rows, mode="overwrite", schema_mode="overwrite")
    assert DeltaLog.for_table(log.table).snapshot.to_arrow().equals(rows)
