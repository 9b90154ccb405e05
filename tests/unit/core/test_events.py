from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING

import pytest

from lakelog.core import events
from lakelog.core.actions.operation import Operation
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import ConcurrentAppendException
from lakelog.core.events import CommitOutcome, CommitStats, Writer, emit, write_events_to
from support.tables import add_file, new_table, schema_json

if TYPE_CHECKING:
    from pathlib import Path


def stats(version: int = 3) -> CommitStats:
    return CommitStats(
        table="/t",
        version=version,
        attempt=1,
        outcome=CommitOutcome.COMMITTED,
        operation="WRITE",
        txn_id="id",
        read_version=version - 1,
        write_ms=1.23456,
    )


def test_a_record_is_one_line_of_json_without_what_is_unknown() -> None:
    text = stats().to_json()
    record = json.loads(text)
    assert "\n" not in text
    assert record["outcome"] == "committed"
    assert record["version"] == 3
    assert record["write_ms"] == 1.235
    assert "winner_version" not in record


def test_records_go_to_the_logger_at_info(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lakelog.commit"):
        emit(stats(), DeltaConf())
    messages = [each.getMessage() for each in caplog.records if each.name == "lakelog.commit"]
    assert [json.loads(each)["txn_id"] for each in messages] == ["id"]


def test_the_conf_names_a_file_that_gets_a_line_per_attempt(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    conf = DeltaConf({"spark.lakelog.commitEvents.path": str(path)})
    emit(stats(1), conf)
    emit(stats(2), conf)
    assert [json.loads(line)["version"] for line in path.read_text().splitlines()] == [1, 2]


def test_a_handler_writes_every_record_of_the_process_until_it_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    level = events.logger.level
    handler = write_events_to(path)
    try:
        emit(stats(1), DeltaConf())
    finally:
        events.logger.removeHandler(handler)
    emit(stats(2), DeltaConf())
    events.logger.setLevel(level)
    assert [json.loads(line)["version"] for line in path.read_text().splitlines()] == [1]


def test_a_handler_for_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_events_to(tmp_path / "missing" / "events.jsonl")


def test_a_file_that_cannot_be_written_costs_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conf = DeltaConf({"spark.lakelog.commitEvents.path": str(tmp_path)})
    with caplog.at_level(logging.WARNING, "lakelog"):
        emit(stats(), conf)
    assert "a commit event was lost" in caplog.text


@pytest.mark.parametrize(
    ("conf", "job"),
    [
        ({}, None),
        ({"spark.app.name": "nightly"}, "nightly"),
        ({"spark.app.name": "notebook", "spark.lakelog.commitEvents.job": "loader"}, "loader"),
    ],
)
def test_the_job_is_named_by_its_own_key_or_by_the_application(
    conf: dict[str, str], job: str | None
) -> None:
    writer = Writer.from_conf(DeltaConf({"spark.app.id": "app-7", **conf}))
    assert (writer.job, writer.app_id, writer.pid) == (job, "app-7", os.getpid())
    assert writer.host


def test_a_conflict_says_who_lost_to_whom_and_where(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    conf = {"spark.lakelog.commitEvents.path": str(path)}
    table = str(tmp_path / "t")
    new_table(table, schema=schema_json(id="long", day="long"), partition_by=["day"])
    loser = DeltaLog.for_table(table, {**conf, "spark.app.name": "cleaner"}).start_transaction()
    doomed = loser.filter_files("day = 1")
    winner = DeltaLog.for_table(table, {**conf, "spark.app.name": "loader"}).start_transaction()
    winner.commit([add_file("a", day="1")], Operation.write("Append"))
    with pytest.raises(ConcurrentAppendException):
        loser.commit([*doomed, add_file("b", day="1")], Operation(name="UPDATE"))
    won, lost = [json.loads(line) for line in path.read_text().splitlines()]
    assert (won["job"], won["outcome"], won["committed_version"]) == ("loader", "committed", 1)
    assert won["txn_id"] == lost["winner_txn_id"]
    assert "conflict" not in won
    assert lost["job"] == "cleaner"
    assert lost["conflict"] == "DELTA_CONCURRENT_APPEND"
    assert lost["conflict_partition"] == {"day": "1"}
    assert lost["partition_columns"] == ["day"]
    assert lost["reads_whole_table"] is False
    assert lost["isolation"] == "Serializable"
    assert lost["winner_version"] == 1
    assert lost["winner_engine"].startswith("lakelog/")
    assert lost["winner_timestamp"] <= won["timestamp"] <= lost["timestamp"]


def test_a_transaction_that_reads_without_a_condition_says_so(tmp_path: Path) -> None:
    log = new_table(str(tmp_path / "t"))
    txn = log.start_transaction()
    txn.filter_files()
    txn.commit([add_file("a")], Operation(name="UPDATE"))
    assert txn.attempts[0].reads_whole_table is True
