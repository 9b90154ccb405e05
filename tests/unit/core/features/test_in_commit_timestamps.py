"""In-commit timestamps, from the writer's side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, Operation
from lakelog.core.errors import (
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
from lakelog.core.log.file_names import checksum_path, commit_name
from support.manual_clock import ManualClock
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.transaction.optimistic import OptimisticTransaction

NOW = 1_700_000_000_000
ON = {"delta.enableInCommitTimestamps": "true"}
SINCE = "delta.inCommitTimestampEnablementVersion"
AT = "delta.inCommitTimestampEnablementTimestamp"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def log_at(uri: str, now: int = NOW) -> DeltaLog:
    return DeltaLog.for_table(uri, None, ManualClock(now))


def table(uri: str, properties: Mapping[str, str] = ON, now: int = NOW) -> DeltaLog:
    return new_table(uri, properties=properties, clock=ManualClock(now))


def lines(uri: str, version: int) -> list[dict[str, Any]]:
    text = (Path(uri) / "_delta_log" / commit_name(version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def time_of(uri: str, version: int) -> int:
    first = lines(uri, version)[0]["commitInfo"]
    time = first["inCommitTimestamp"]
    assert isinstance(time, int)
    return time


def append(log: DeltaLog, path: str) -> int:
    return log.start_transaction().commit([add_file(path)], Operation.write("Append"))


def switch_on(txn: OptimisticTransaction, **more: str) -> int:
    txn.update_metadata(
        replace(txn.metadata, configuration={**txn.metadata.configuration, **ON, **more})
    )
    return txn.commit([], Operation("SET TBLPROPERTIES"))


def test_a_table_that_has_them_from_the_start_says_so_in_its_first_line_and_in_no_record(
    uri: str,
) -> None:
    log = table(uri)
    assert next(iter(lines(uri, 0)[0]["commitInfo"])) == "inCommitTimestamp"
    assert time_of(uri, 0) == NOW
    assert log.update().timestamp == NOW
    assert dict(log.update().metadata.configuration) == ON
    assert "inCommitTimestamp" in (log.update().protocol.writer_features or ())


def test_they_ascend_when_the_clock_goes_back(uri: str) -> None:
    table(uri)
    for version, now in enumerate((NOW - 5000, NOW - 9000, NOW + 7, NOW), start=1):
        append(log_at(uri, now), f"f{version}")
    assert [time_of(uri, v) for v in range(5)] == [NOW, NOW + 1, NOW + 2, NOW + 7, NOW + 8]
    assert [e.timestamp for e in log_at(uri).history()][::-1] == [time_of(uri, v) for v in range(5)]


def test_they_ascend_behind_a_checkpoint_that_lacks_the_time(uri: str) -> None:
    log = table(uri, now=NOW + 50)
    log.checkpoint()
    append(log_at(uri, NOW), "a")
    assert time_of(uri, 1) == NOW + 51


def test_a_loser_with_an_older_clock_ends_above_the_winner(uri: str) -> None:
    table(uri)
    loser = log_at(uri, NOW + 10).start_transaction()
    append(log_at(uri, NOW + 1000), "first")
    append(log_at(uri, NOW + 1000), "second")
    assert loser.commit([add_file("late")], Operation.write("Append")) == 3
    assert [time_of(uri, v) for v in (1, 2, 3)] == [NOW + 1000, NOW + 1001, NOW + 1002]


def test_a_loser_with_a_later_clock_keeps_its_time(uri: str) -> None:
    table(uri)
    loser = log_at(uri, NOW + 5000).start_transaction()
    append(log_at(uri, NOW + 10), "first")
    loser.commit([add_file("late")], Operation.write("Append"))
    assert time_of(uri, 2) == NOW + 5000


def test_what_is_handed_on_after_a_rebase_is_what_is_in_the_log(uri: str) -> None:
    table(uri)
    log = log_at(uri, NOW + 10)
    loser = log.start_transaction()
    append(log_at(uri, NOW + 1000), "first")
    loser.commit([add_file("late")], Operation.write("Append"))
    assert log.update().timestamp == time_of(uri, 2) == log_at(uri).update().timestamp
    checksum = json.loads(log.store.read_bytes(checksum_path(log.table, 1)))
    assert checksum["inCommitTimestampOpt"] == time_of(uri, 1)


def test_switching_them_on_later_is_recorded(uri: str) -> None:
    log = table(uri, {})
    append(log, "a")
    switch_on(log.start_transaction())
    # The clock is behind the storage's, whose time the version before goes by.
    since = log.update().metadata.configuration
    assert since[SINCE] == "2"
    assert since[AT] == str(time_of(uri, 2))
    assert time_of(uri, 2) > log.snapshot_at(1).timestamp
    append(log_at(uri), "b")
    assert time_of(uri, 3) == time_of(uri, 2) + 1


@pytest.mark.parametrize("winners", [1, 3])
def test_a_loser_that_switches_them_on_records_where_it_landed(uri: str, winners: int) -> None:
    table(uri, {})
    loser = log_at(uri).start_transaction()
    for number in range(winners):
        append(log_at(uri), f"f{number}")
    log = loser.delta_log
    assert switch_on(loser) == winners + 1
    said = log_at(uri).update().metadata
    assert said.configuration[SINCE] == str(winners + 1)
    assert said.configuration[AT] == str(time_of(uri, winners + 1))
    assert log.update().metadata == said
    assert time_of(uri, winners + 1) > log.snapshot_at(winners).timestamp


def test_a_writer_that_met_the_switch_carries_its_time_too(uri: str) -> None:
    table(uri, {})
    far = 4_000_000_000_000
    losers = [log_at(uri, now).start_transaction() for now in (NOW, far + 10**6)]
    switch_on(log_at(uri, far).start_transaction())
    for number, loser in enumerate(losers):
        loser.commit([add_file(f"late{number}")], Operation.write("Append"))
    assert [time_of(uri, v) for v in (1, 2, 3)] == [far, far + 1, far + 10**6]
    assert log_at(uri).update().terms.in_commit_since == (1, far)


def test_two_that_switch_them_on_at_once_conflict(uri: str) -> None:
    table(uri, {})
    loser = log_at(uri).start_transaction()
    switch_on(log_at(uri).start_transaction())
    with pytest.raises(ProtocolChangedException):
        switch_on(loser)


def test_a_writer_of_metadata_does_not_go_by_the_switch(uri: str) -> None:
    table(uri, {"delta.feature.inCommitTimestamp": "supported"})
    loser = log_at(uri).start_transaction()
    switch_on(log_at(uri).start_transaction())
    loser.update_metadata(replace(loser.metadata, name="other"))
    with pytest.raises(MetadataChangedException):
        loser.commit([], Operation("SET TBLPROPERTIES"))


def test_a_switch_beside_another_change_is_not_gone_by(uri: str) -> None:
    table(uri, {})
    loser = log_at(uri).start_transaction()
    switch_on(log_at(uri).start_transaction(), **{"delta.checkpointInterval": "7"})
    with pytest.raises(MetadataChangedException):
        loser.commit([add_file("late")], Operation.write("Append"))


def test_the_record_outlives_changes_of_the_metadata(uri: str) -> None:
    log = table(uri, {})
    switch_on(log.start_transaction())
    record = log.update().terms.in_commit_since
    txn = log.start_transaction()
    bare = {k: v for k, v in txn.metadata.configuration.items() if k not in (SINCE, AT)}
    txn.update_metadata(replace(txn.metadata, configuration={**bare, "note": "x"}))
    txn.commit([], Operation("SET TBLPROPERTIES"))
    assert log_at(uri).update().terms.in_commit_since == record


def test_switched_off_and_on_again_they_are_recorded_again(uri: str) -> None:
    log = table(uri)
    txn = log.start_transaction()
    txn.update_metadata(
        replace(txn.metadata, configuration={"delta.enableInCommitTimestamps": "false"})
    )
    txn.commit([], Operation("SET TBLPROPERTIES"))
    assert "inCommitTimestamp" not in lines(uri, 1)[0]["commitInfo"]
    switch_on(log.start_transaction())
    assert log.update().metadata.configuration[SINCE] == "2"
    assert log.update().terms.in_commit_since == (2, time_of(uri, 2))


def test_a_table_without_them_carries_no_time(uri: str) -> None:
    table(uri, {"delta.feature.inCommitTimestamp": "supported"})
    assert "inCommitTimestamp" not in lines(uri, 0)[0]["commitInfo"]


def test_a_writer_whose_version_was_cleaned_up_meanwhile_is_told_so(uri: str) -> None:
    log = table(uri)
    append(log, "a")
    log.checkpoint()
    slow = log_at(uri).start_transaction()
    assert slow.reads.version == 1
    append(log, "b")
    (Path(uri) / "_delta_log" / commit_name(1)).unlink()

    with pytest.raises(ConcurrentWriteException, match="version 1, which this transaction read"):
        slow.commit([add_file("c")], Operation.write("Append"))

    assert not (Path(uri) / "_delta_log" / commit_name(3)).exists()
