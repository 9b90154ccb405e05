"""What a commit leaves in records: an end where it gives up, and Delta's numbers where it lands."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakelog.core.actions import AddCDCFile, SetTransaction
from lakelog.core.actions.operation import Operation
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    MaxCommitAttemptsExceededError,
)
from lakelog.core.events import CommitOutcome
from support.faults import Fault, FaultyLogStore
from support.manual_clock import ManualClock
from support.tables import add_file, new_table, schema_json

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from lakelog.core.transaction.optimistic import OptimisticTransaction

APPEND = Operation.write("Append")
SECONDS_KEY = "spark.lakelog.commit.timeBudget"
TRIES_KEY = "spark.databricks.delta.maxCommitAttempts"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def recorded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def start(uri: str, events: Path, **conf: str) -> OptimisticTransaction:
    conf["spark.lakelog.commitEvents.path"] = str(events)
    return DeltaLog.for_table(uri, conf).start_transaction()


def test_a_commit_that_gives_up_leaves_a_closing_record(uri: str, tmp_path: Path) -> None:
    rival = new_table(uri)
    txn = start(uri, tmp_path / "events", **{TRIES_KEY: "0"})
    rival.start_transaction().commit([add_file("theirs")], APPEND)
    with pytest.raises(MaxCommitAttemptsExceededError) as caught:
        txn.commit([add_file("ours")], APPEND)
    attempt, end = recorded(tmp_path / "events")
    assert (attempt["outcome"], attempt["attempt"]) == ("conflict-rebased", 1)
    assert (end["outcome"], end["attempt"], end["version"]) == ("given-up", 1, 2)
    assert (end["winner_version"], end["winner_operation"]) == (1, "WRITE")
    assert end["error"] == str(caught.value)
    assert end["commit_duration_ms"] >= 0
    assert [each.outcome for each in txn.attempts] == [CommitOutcome.REBASED], "it is no attempt"


def test_a_conflict_and_an_unknown_outcome_are_ends_of_their_own(uri: str, tmp_path: Path) -> None:
    rival = new_table(uri)
    txn = start(uri, tmp_path / "events")
    txn.filter_files()
    rival.start_transaction().commit([add_file("theirs")], APPEND)
    with pytest.raises(ConcurrentAppendException):
        txn.commit([add_file("ours")], APPEND)
    assert [each["outcome"] for each in recorded(tmp_path / "events")] == ["conflict-failed"]


def test_a_commit_in_doubt_does_not_say_that_it_gave_up(tmp_path: Path) -> None:
    table = "memory://commit-records/doubt"
    conf = {SECONDS_KEY: "0", "spark.lakelog.commitEvents.path": str(tmp_path / "events")}
    store = FaultyLogStore(new_table(table).store, *([Fault.LOST_UNKNOWN] * 20))
    txn = DeltaLog(table, store, DeltaConf.from_mapping(conf), ManualClock()).start_transaction()
    with pytest.raises(CommitOutcomeUnknownError):
        txn.commit([add_file("ours")], APPEND)
    assert {each["outcome"] for each in recorded(tmp_path / "events")} == {"unknown"}


def test_the_record_of_a_commit_counts_what_it_did(uri: str, tmp_path: Path) -> None:
    new_table(uri, schema=schema_json(id="long", day="long"), partition_by=["day"])
    txn = start(uri, tmp_path / "events")
    old = replace(add_file("old", day="1"), size=100)
    txn.commit([old], APPEND)
    txn = start(uri, tmp_path / "events")
    cdc = AddCDCFile(path="_change_data/c", partition_values={"day": "1"}, size=7)
    progress = SetTransaction(app_id="app", version=3)
    moved = replace(add_file("moved", day="2"), size=40)
    elsewhere = replace(add_file("s3a://bucket/there", day="2"), size=2)
    txn.commit([old.remove(5), moved, elsewhere, cdc, progress], Operation(name="UPDATE"))
    first, second = recorded(tmp_path / "events")
    assert (first["num_add"], first["bytes_new"], first["num_remove"]) == (1, 100, 0)
    found = {key: second[key] for key in second if key.startswith(("num_", "new_", "bytes_n"))}
    assert found == {
        "num_add": 2,
        "num_remove": 1,
        "num_cdc_files": 1,
        "num_set_transaction": 1,
        "num_domain_metadatas": 0,
        "num_absolute_paths_in_add": 1,
        "num_distinct_partitions_in_add": 1,
        "num_partition_columns_in_table": 1,
        "bytes_new": 42,
        "new_metadata": False,
        "new_protocol": False,
    }
    assert second["cdc_bytes_new"] == 7
    assert second["txn_duration_ms"] >= 0
    assert second["commit_duration_ms"] >= second["write_ms"] > 0
