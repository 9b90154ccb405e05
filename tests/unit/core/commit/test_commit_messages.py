"""The log messages that people who run Delta look for."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import ConcurrentAppendException
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from pathlib import Path

APPEND = Operation.write("Append")


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the logger `lakelog` told, times taken out."""
    logged = [record for record in caplog.records if record.name == "lakelog"]
    return [re.sub(r"\d+ ms", "N ms", record.getMessage()) for record in logged]


def test_a_commit_tells_what_it_tries_and_what_it_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_table(str(tmp_path / "t"))
    txn = log.start_transaction()
    with caplog.at_level(logging.INFO, "lakelog"):
        txn.commit([add_file("a"), add_file("b")], APPEND)
    prefix = f"[tableId={log.snapshot.metadata.id[:8]},txnId={txn._committer.txn_id[:8]}]"
    assert said(caplog) == [
        f"{prefix} Attempting to commit version 1 with 3 actions with Serializable isolation level",
        f"{prefix} Committed delta #1 to {log.table}/_delta_log",
    ]
    of_it = [record for record in caplog.records if record.name == "lakelog"]
    assert {record.levelno for record in of_it} == {logging.INFO}


def test_a_rebased_commit_tells_whom_it_met(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_table(str(tmp_path / "t"))
    txn = log.start_transaction()
    for name in "xy":
        DeltaLog.for_table(log.table).start_transaction().commit([add_file(name)], APPEND)
    with caplog.at_level(logging.INFO, "lakelog"):
        assert txn.commit([add_file("a")], APPEND) == 3
    having = "current txn having 1 adds, 0 removes, 0 read predicates, 0 read files"
    assert [text.partition("] ")[2] for text in said(caplog)] == [
        "Attempting to commit version 1 with 2 actions with Serializable isolation level",
        f"[attempt 1] Checking for conflicts with versions from 1 on with {having}",
        "[attempt 1] No conflicts in version 1, N ms since start",
        "[attempt 1] No conflicts in version 2, N ms since start",
        f"[attempt 1] No conflicts with versions [1, 3) with {having}, N ms since start",
        "Attempting to commit version 3 with 2 actions with Serializable isolation level",
        f"Committed delta #3 to {log.table}/_delta_log",
    ]


def test_a_lost_commit_tells_to_whom(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = new_table(str(tmp_path / "t"))
    log.start_transaction().commit([add_file("old")], APPEND)
    txn = log.start_transaction()
    txn.filter_files()
    other = DeltaLog.for_table(log.table)
    version = other.start_transaction().commit([add_file("x")], APPEND)
    with caplog.at_level(logging.INFO, "lakelog"), pytest.raises(ConcurrentAppendException):
        txn.commit([add_file("a")], Operation(name="UPDATE"))
    assert said(caplog)[-1].endswith(
        f"[attempt 1] Conflict with version {version}: DELTA_CONCURRENT_APPEND, N ms since start"
    )
    assert "1 read predicates, 1 read files" in said(caplog)[1]


def test_a_checkpoint_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = new_table(str(tmp_path / "t"))
    log.start_transaction().commit([add_file("a")], APPEND)
    with caplog.at_level(logging.INFO, "lakelog"):
        log.checkpoint()
    folder = f"{log.table}/_delta_log"
    size = (tmp_path / "t" / "_delta_log" / f"{1:020d}.checkpoint.parquet").stat().st_size
    assert said(caplog) == [
        f"Checkpoint of version 1 written to {folder}: 3 actions, 1 files of the table, "
        f"{size} bytes"
    ]


def test_another_table_id_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = new_table(str(tmp_path / "t"))
    txn = log.start_transaction()
    txn.update_metadata(replace(txn.metadata, id="another"))
    with caplog.at_level(logging.WARNING, "lakelog"):
        txn.commit([], Operation.manual())
    [text] = said(caplog)
    assert "Change in the table id detected in txn." in text
    assert text.endswith("was test when the txn was created and is now changed to another.")
