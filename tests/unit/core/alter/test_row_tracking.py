"""Enabling row tracking in a table that exists."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, Operation
from lakelog.core.alter import enable_row_tracking, set_properties
from lakelog.core.alter import row_tracking as row_tracking_backfill
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError
from lakelog.core.features.numbered_rows import BACKFILL, high_water_mark
from lakelog.core.log.file_names import commit_name
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.actions import AddFile

MAX_FILES = "spark.databricks.delta.rowTracking.backfill.maxNumFiles"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def table(uri: str, *paths: str) -> None:
    log = new_table(uri)
    log.start_transaction().commit([file(path) for path in paths], Operation.write("Append"))


def file(path: str, rows: int = 2) -> AddFile:
    return replace(add_file(path), stats=json.dumps({"numRecords": rows}))


def operations(uri: str) -> list[str | None]:
    return [entry.operation for entry in DeltaLog.for_table(uri).history()][::-1]


def ids(uri: str) -> dict[str, tuple[int | None, int | None]]:
    files = DeltaLog.for_table(uri).snapshot.files()
    return {f.path: (f.base_row_id, f.default_row_commit_version) for f in files}


def mark(uri: str) -> int:
    return high_water_mark(DeltaLog.for_table(uri).snapshot.domain_metadata, uri)


def lines(uri: str, version: int) -> list[dict[str, Any]]:
    text = (Path(uri) / "_delta_log" / commit_name(version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_every_file_gets_its_ids_in_batches_and_then_the_table_says_so(uri: str) -> None:
    table(uri, "a", "b", "c")
    log = DeltaLog.for_table(uri, {MAX_FILES: "2"})
    assert enable_row_tracking(log) == 5
    assert operations(uri)[2:] == ["UPGRADE PROTOCOL", BACKFILL, BACKFILL, "SET TBLPROPERTIES"]
    assert sorted(ids(uri).values()) == [(0, 3), (2, 3), (4, 4)]
    assert mark(uri) == 5
    snapshot = DeltaLog.for_table(uri).snapshot
    assert snapshot.properties.get("delta.enableRowTracking") is True
    info, *adds = lines(uri, 3)
    assert info["commitInfo"]["operationParameters"] == {"batchId": "0"}
    assert info["commitInfo"]["isolationLevel"] == "SnapshotIsolation"
    assert not info["commitInfo"]["isBlindAppend"]
    assert {line["add"]["dataChange"] for line in adds if "add" in line} == {False}
    assert lines(uri, 5)[0]["commitInfo"]["tags"] == {"rowTrackingEnablementOnly": "true"}


def test_a_table_that_has_it_is_left_alone(uri: str) -> None:
    table(uri, "a")
    version = enable_row_tracking(DeltaLog.for_table(uri))
    assert enable_row_tracking(DeltaLog.for_table(uri)) == version


def test_a_run_that_was_interrupted_is_taken_up(uri: str) -> None:
    table(uri, "a", "b")
    log = DeltaLog.for_table(uri, {MAX_FILES: "1"})
    log.upgrade_protocol(features=["rowTracking"])
    txn = log.start_transaction()
    assert txn.snapshot is not None
    row_tracking_backfill._commit_batch(txn, txn.snapshot.file_table.slice(0, 1), 0)
    enable_row_tracking(log)
    assert operations(uri).count(BACKFILL) == 2
    assert sorted(ids(uri).values()) == [(0, 3), (2, 4)]


def test_an_empty_table_needs_no_backfill(uri: str) -> None:
    new_table(uri)
    enable_row_tracking(DeltaLog.for_table(uri))
    assert operations(uri)[1:] == ["UPGRADE PROTOCOL", "SET TBLPROPERTIES"]


def test_a_file_without_a_count_of_rows_is_named(uri: str) -> None:
    log = new_table(uri)
    bare = replace(file("bare"), stats=None)
    log.start_transaction().commit([bare], Operation.write("Append"))
    with pytest.raises(DeltaAnalysisError, match=r"WITHOUT_STATS.*bare"):
        enable_row_tracking(log)


def test_while_it_is_suspended_it_is_not_enabled(uri: str) -> None:
    log = new_table(uri, properties={"delta.rowTrackingSuspended": "true"})
    with pytest.raises(DeltaAnalysisError, match="ILLEGAL_PROPERTY_COMBINATION"):
        enable_row_tracking(log)
    assert log.update().version == 0


def test_where_there_is_no_table_there_are_no_ids(uri: str) -> None:
    with pytest.raises(TableNotFoundError):
        enable_row_tracking(DeltaLog.for_table(uri))


# Races -------------------------------------------------------------------------------------


def raced(uri: str, rival: Callable[[DeltaLog], object]) -> None:
    """A backfill that reads before a rival commits, and commits after it."""
    log = DeltaLog.for_table(uri)
    if "rowTracking" not in (log.snapshot.protocol.writer_features or ()):
        log.upgrade_protocol(features=["rowTracking"])
    txn = log.start_transaction()
    assert txn.snapshot is not None
    rival(DeltaLog.for_table(uri))
    row_tracking_backfill._commit_batch(txn, txn.snapshot.file_table, 0)


def deletes(log: DeltaLog) -> None:
    txn = log.start_transaction()
    (a,) = (f for f in txn.filter_files() if f.path == "a")
    txn.commit([a.remove(1)], Operation("DELETE"))


def appends(log: DeltaLog) -> None:
    log.start_transaction().commit([file("new", 5)], Operation.write("Append"))


def test_a_backfill_leaves_out_what_a_winner_removed(uri: str) -> None:
    table(uri, "a", "b")
    raced(uri, deletes)
    assert ids(uri) == {"b": (0, 4)}
    assert mark(uri) == 1


def test_a_backfill_goes_on_behind_the_ids_of_a_winner(uri: str) -> None:
    table(uri, "a", "b")
    raced(uri, appends)
    assert ids(uri) == {"new": (0, 3), "a": (5, 4), "b": (7, 4)}
    assert mark(uri) == 8


def test_of_two_backfills_the_first_gives_the_ids(uri: str) -> None:
    table(uri, "a", "b")
    raced(uri, enable_row_tracking_in_batches)
    assert sorted(ids(uri).values()) == [(0, 3), (2, 3)]
    assert [line for line in lines(uri, 4) if "add" in line] == []


def enable_row_tracking_in_batches(log: DeltaLog) -> None:
    txn = log.start_transaction()
    assert txn.snapshot is not None
    row_tracking_backfill._commit_batch(txn, txn.snapshot.file_table, 0)


def test_a_writer_that_met_a_backfill_takes_its_ids(uri: str) -> None:
    table(uri, "a", "b")
    log = DeltaLog.for_table(uri)
    log.upgrade_protocol(features=["rowTracking"])
    marker, remover, late = (DeltaLog.for_table(uri).start_transaction() for _ in range(3))
    enable_row_tracking_in_batches(log)
    found = ids(uri)
    assert marker.snapshot is not None
    (a, b) = sorted(marker.snapshot.files(), key=lambda f: f.path)
    # Read before the backfill: neither knows the ids that the files have by now.
    assert a.base_row_id is None
    remover.commit([b.remove(1)], Operation("DELETE"))
    marker.commit([replace(a, tags={"note": "x"})], Operation.manual())
    late.commit([file("late")], Operation.write("Append"))
    assert ids(uri) == {"a": found["a"], "late": (4, 6)}
    removed = [line["remove"] for line in lines(uri, 4) if "remove" in line]
    assert [(r["baseRowId"], r["defaultRowCommitVersion"]) for r in removed] == [found["b"]]
    assert mark(uri) == 5


# By the property ---------------------------------------------------------------------------


def test_setting_the_property_gives_every_file_its_ids_first(uri: str) -> None:
    table(uri, "a", "b")
    assert set_properties(uri, {"delta.enablerowtracking": "true"}) == 4
    assert operations(uri)[2:] == ["UPGRADE PROTOCOL", BACKFILL, "SET TBLPROPERTIES"]
    assert sorted(ids(uri).values()) == [(0, 3), (2, 3)]
    assert lines(uri, 4)[0]["commitInfo"]["tags"] == {"rowTrackingEnablementOnly": "true"}
    assert set_properties(uri, {"delta.enableRowTracking": "true"}) == 4


def test_beside_another_property_the_commit_is_not_tagged(uri: str) -> None:
    table(uri, "a")
    set_properties(uri, {"delta.enableRowTracking": "true", "note": "x"})
    assert "tags" not in lines(uri, 4)[0]["commitInfo"]


def test_the_session_may_ask_for_no_backfill(uri: str) -> None:
    table(uri, "a")
    conf = {"spark.databricks.delta.rowTracking.backfill.enabled": "false"}
    with pytest.raises(DeltaAnalysisError, match="lacks the table feature rowTracking"):
        set_properties(uri, {"delta.enableRowTracking": "true"}, conf=conf)
    assert DeltaLog.for_table(uri).snapshot.version == 1


def test_a_property_that_suspends_is_refused_beside_it(
    uri: str,
) -> None:
    table(uri, "a")
    both = {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"}
    with pytest.raises(DeltaAnalysisError, match="ILLEGAL_PROPERTY_COMBINATION"):
        set_properties(uri, both)
    assert DeltaLog.for_table(uri).snapshot.version == 1
