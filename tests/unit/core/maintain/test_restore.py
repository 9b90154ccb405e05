"""RESTORE: what comes back, what is kept, and what is refused."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import (
    DeltaLog,
    Operation,
    create_table,
    delete_rows,
    restore,
    table_changes,
    update_rows,
    write_arrow,
)
from lakelog.core.actions import DomainMetadata
from lakelog.core.alter import (
    add_columns,
    drop_columns,
    enable_row_tracking,
    set_properties,
    unset_properties,
)
from lakelog.core.errors import (
    AppendOnlyError,
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    DataFileMissingError,
    DeltaAnalysisError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakelog.core.features.numbered_rows import high_water_mark
from lakelog.core.features.protocol import supported_features
from lakelog.core.schema import StructType, identity_column
from support.examples import examples
from support.faults import Fault, FaultyLogStore
from support.manual_clock import ManualClock
from support.tables import add_file, new_table

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "text": [f"t{i}" for i in values]})


def rows(uri: str, version: int | None = None) -> list[dict[str, Any]]:
    log = DeltaLog.for_table(uri)
    snapshot = log.snapshot if version is None else log.snapshot_at(version)
    return sorted(snapshot.to_arrow().to_pylist(), key=str)


def lines(uri: str, version: int, kind: str) -> list[dict[str, Any]]:
    path = Path(uri) / "_delta_log" / f"{version:020d}.json"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line[kind] for line in found if kind in line]


def test_rows_schema_and_properties_are_those_of_the_version(uri):
    write_arrow(uri, numbers(1, 2, 3), mode="append", properties={"mine": "x"})
    add_columns(uri, pa.schema([("more", pa.int32())]))
    set_properties(uri, {"mine": "y", "other": "z"})
    delete_rows(uri, "id = 2")

    done = restore(uri, 0)

    assert (done.version, done.restored_version, done.missing) == (4, 0, ())
    snapshot = DeltaLog.for_table(uri).snapshot
    assert rows(uri) == rows(uri, 0) == numbers(1, 2, 3).to_pylist()
    assert snapshot.schema.names == ["id", "text"]
    assert snapshot.metadata.configuration == {"mine": "x"}


def test_the_history_says_what_delta_says(uri):
    write_arrow(uri, numbers(1, 2), mode="append")
    write_arrow(uri, numbers(3), mode="append")
    delete_rows(uri, "id = 1")
    then = DeltaLog.for_table(uri).snapshot_at(1)

    done = restore(uri, 1, user_metadata="oops")

    (info,) = lines(uri, 3, "commitInfo")
    assert info["operation"] == "RESTORE"
    assert info["operationParameters"] == {"version": 1, "timestamp": None}
    assert info["userMetadata"] == "oops"
    assert info["isBlindAppend"] is False
    metrics = {key: int(value) for key, value in info["operationMetrics"].items()}
    assert metrics == done.metrics
    assert metrics["tableSizeAfterRestore"] == then.size_in_bytes
    assert metrics["numOfFilesAfterRestore"] == then.num_files == 2
    assert (metrics["numRemovedFiles"], metrics["numRestoredFiles"]) == (1, 1)
    (add,), (gone,) = lines(uri, 3, "add"), lines(uri, 3, "remove")
    assert add["dataChange"] is gone["dataChange"] is True
    assert metrics["removedFilesSize"] == gone["size"]
    assert metrics["restoredFilesSize"] == add["size"]


def test_by_time(uri):
    clock = ManualClock()
    log = new_table(uri, properties={"delta.enableInCommitTimestamps": "true"}, clock=clock)
    for name in "abc":
        clock.sleep(60)
        log.start_transaction().commit([add_file(name)], Operation.write("Append"))
        Path(uri, name).touch()
    time = log.snapshot_at(2).timestamp + 1
    restore(log, timestamp=time)
    assert [f.path for f in log.snapshot.files()] == ["a", "b"]
    (info,) = lines(uri, 4, "commitInfo")
    said = info["operationParameters"]
    assert said["version"] is None
    assert said["timestamp"].startswith("20")


def test_a_restore_can_be_restored(uri):
    write_arrow(uri, numbers(1), mode="append", properties=VECTORS)
    write_arrow(uri, numbers(2, 3), mode="append")
    delete_rows(uri, "id = 3")
    restore(uri, 0)
    assert restore(uri, 2).version == 4
    assert rows(uri) == numbers(1, 2).to_pylist()


def test_the_newest_version_needs_nothing(uri):
    write_arrow(uri, numbers(1), mode="append")
    done = restore(uri, 0)
    assert (done.version, done.restored_version, done.metrics) == (None, 0, {})
    assert DeltaLog.for_table(uri).snapshot.version == 0


def test_a_dry_run_commits_nothing_and_says_the_same(uri):
    write_arrow(uri, numbers(1), mode="append")
    write_arrow(uri, numbers(2), mode="append")
    dry = restore(uri, 0, dry_run=True)
    assert (dry.version, DeltaLog.for_table(uri).snapshot.version) == (None, 1)
    assert restore(uri, 0).metrics == dry.metrics


@pytest.mark.parametrize(
    ("asked", "error", "condition"),
    [
        ({"version": 7}, VersionNotFoundError, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ({"version": -1}, VersionNotFoundError, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        (
            {"timestamp": "2001-01-01"},
            TimestampOutOfRangeError,
            "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
        ),
        (
            {"timestamp": "2999-01-01"},
            TimestampOutOfRangeError,
            "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
        ),
        ({}, DeltaAnalysisError, "neither"),
        ({"version": 0, "timestamp": "2999-01-01"}, DeltaAnalysisError, "not both"),
        ({"version": "0"}, DeltaAnalysisError, "must be a whole number"),
    ],
)
def test_a_version_that_is_not_there_is_refused(uri, asked, error, condition):
    write_arrow(uri, numbers(1), mode="append")
    write_arrow(uri, numbers(2), mode="append")
    with pytest.raises(error, match=condition):
        restore(uri, **asked)
    assert DeltaLog.for_table(uri).snapshot.version == 1


def test_no_table(uri):
    with pytest.raises(TableNotFoundError):
        restore(uri, 0)


def test_files_that_are_gone_are_listed(uri):
    for first in range(0, 28, 2):
        write_arrow(uri, numbers(first, first + 1), mode="append", properties=VECTORS)
    delete_rows(uri, "id = 4")
    delete_rows(uri)
    log = DeltaLog.for_table(uri)
    places = sorted(f"{uri}/{f.path}" for f in log.snapshot_at(14).files())
    vector = next(Path(uri).glob("deletion_vector_*.bin"))
    for place in (*places[:12], str(vector)):
        Path(place).unlink()

    gone: list[str] = sorted([*places[:12], str(vector)])
    assert restore(uri, 14, dry_run=True).missing == tuple(gone)
    with pytest.raises(DataFileMissingError, match=r"ignoreMissingFiles=true.*") as caught:
        restore(uri, 14)
    assert caught.value.fields["paths"] == gone
    assert "and 3 more" in str(caught.value)
    assert log.update().version == 15

    done = restore(uri, 14, conf={"spark.sql.files.ignoreMissingFiles": "true"})
    assert done.missing == tuple(gone)
    kept = [f for f in log.update().files() if f.deletion_vector is None]
    assert done.metrics["numOfFilesAfterRestore"] == log.snapshot.num_files <= 2
    assert {f"{uri}/{f.path}" for f in kept} <= set(places[12:])
    assert len(rows(uri)) == 2 * len(kept), "the table reads without what is gone"


def test_files_that_stay_are_not_looked_for(uri):
    """A version that only adds files needs no file of the storage."""
    write_arrow(uri, numbers(1), mode="append")
    write_arrow(uri, numbers(2), mode="append")
    for file in DeltaLog.for_table(uri).snapshot_at(0).files():
        Path(uri, file.path).unlink()
    assert restore(uri, 0).missing == ()


def test_a_version_older_than_the_retention_is_refused(uri):
    clock = ManualClock()
    properties = {
        "delta.enableInCommitTimestamps": "true",
        "delta.deletedFileRetentionDuration": "interval 2 hours",
        "delta.logRetentionDuration": "interval 3 hours",
    }
    log = new_table(uri, properties=properties, clock=clock)
    clock.sleep(3 * 3600)
    log.start_transaction().commit([add_file("a")], Operation.write("Append"))
    with pytest.raises(DeltaAnalysisError, match=r"BEYOND_DELETED_FILE_RETENTION.*2 hours"):
        restore(log, 0)
    key = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    free = DeltaLog.for_table(uri, {key: "false"}, clock)
    assert restore(free, 0).version == 2


def test_an_append_only_table_keeps_its_rows(uri):
    write_arrow(uri, numbers(1), mode="append", properties={"delta.appendOnly": "true"})
    write_arrow(uri, numbers(2), mode="append")
    with pytest.raises(AppendOnlyError):
        restore(uri, 0)
    set_properties(uri, {"mine": "x"})
    restore(uri, 1)
    assert "mine" not in DeltaLog.for_table(uri).snapshot.metadata.configuration


def test_the_protocol_never_loses_a_feature_unless_the_conf_allows(uri):
    write_arrow(uri, numbers(1), mode="append")
    set_properties(uri, {"delta.enableDeletionVectors": True, "delta.enableChangeDataFeed": True})
    restore(uri, 0)
    log = DeltaLog.for_table(uri)
    assert {"deletionVectors", "changeDataFeed"} <= supported_features(log.snapshot.protocol)
    assert log.snapshot.metadata.configuration == {}
    key = "spark.databricks.delta.restore.protocolDowngradeAllowed"
    restore(uri, 0, conf={key: "true"})
    assert log.update().protocol == log.snapshot_at(0).protocol


def test_the_numbers_of_identity_columns_go_on(uri):
    schema = StructType(
        (
            identity_column("up"),
            identity_column("down", start=-1, step=-1),
            *StructType.from_json(
                '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,'
                '"metadata":{}}]}'
            ),
        )
    )
    create_table(uri, schema)
    write_arrow(uri, pa.table({"v": pa.array([1], pa.int64())}), mode="append")
    write_arrow(uri, pa.table({"v": pa.array([2, 3], pa.int64())}), mode="append")
    taken = {(r["up"], r["down"]) for r in rows(uri)}
    restore(uri, 1)
    write_arrow(uri, pa.table({"v": pa.array([4], pa.int64())}), mode="append")
    (new,) = [r for r in rows(uri) if r["v"] == 4]
    assert all(new["up"] > up and new["down"] < down for up, down in taken)


def test_row_ids_come_back_and_new_ones_go_on(uri):
    write_arrow(uri, numbers(1), mode="append", properties={"delta.enableRowTracking": "true"})
    write_arrow(uri, numbers(2), mode="append")
    write_arrow(uri, numbers(3), mode="append")
    log = DeltaLog.for_table(uri)
    before = {f.path: f.base_row_id for f in log.snapshot_at(1).files()}
    restore(log, 0)
    restore(log, 1)
    assert {f.path: f.base_row_id for f in log.snapshot.files()} == before
    assert high_water_mark(log.snapshot.domain_metadata, uri) == 2
    write_arrow(log, numbers(4), mode="append")
    assert max(f.base_row_id or 0 for f in log.snapshot.files()) == 3


def test_files_from_before_row_tracking_get_ids(uri):
    write_arrow(uri, numbers(1, 2), mode="append")
    enable_row_tracking(uri)
    update_rows(uri, {"text": "'x'"})
    log = DeltaLog.for_table(uri)
    restore(log, 0)
    (file,) = log.snapshot.files()
    assert file.base_row_id is not None
    assert "delta.enableRowTracking" not in log.snapshot.metadata.configuration


def test_mapping_comes_and_goes_with_the_files(uri):
    write_arrow(uri, numbers(1), mode="append")
    set_properties(uri, {"delta.columnMapping.mode": "name"})
    drop_columns(uri, "text")
    add_columns(uri, pa.schema([("text", pa.int32())]))
    write_arrow(
        uri,
        pa.table({"id": pa.array([2], pa.int64()), "text": pa.array([9], pa.int32())}),
        mode="append",
    )
    log = DeltaLog.for_table(uri)
    restore(log, 0)
    assert rows(uri) == numbers(1).to_pylist()
    restore(log, 4)
    assert rows(uri) == [{"id": 1, "text": None}, {"id": 2, "text": 9}]
    restore(log, 2)
    assert log.snapshot.metadata.configuration["delta.columnMapping.maxColumnId"] == "3"


def test_clustering_is_that_of_the_version_and_other_domains_stay(uri):
    log = new_table(
        uri,
        properties={
            "delta.feature.clustering": "supported",
            "delta.feature.domainMetadata": "supported",
        },
    )

    def set_domain(name: str, text: str) -> None:
        action = DomainMetadata(domain=name, configuration=text, removed=False)
        log.start_transaction().commit([action], Operation.manual())

    set_domain("delta.clustering", '{"clusteringColumns":[["id"]]}')
    set_domain("mine", "1")
    set_domain("delta.clustering", '{"clusteringColumns":[]}')
    set_domain("mine", "2")
    restore(log, 2)
    domains = log.snapshot.domain_metadata
    assert json.loads(domains["delta.clustering"].configuration)["clusteringColumns"] == [["id"]]
    assert domains["mine"].configuration == "2"
    restore(log, 0)
    domains = log.snapshot.domain_metadata
    assert json.loads(domains["delta.clustering"].configuration)["clusteringColumns"] == []


def test_in_commit_timestamps_begin_again(uri):
    write_arrow(
        uri, numbers(1), mode="append", properties={"delta.enableInCommitTimestamps": "true"}
    )
    set_properties(uri, {"delta.enableInCommitTimestamps": "false"})
    write_arrow(uri, numbers(2), mode="append")
    restore(uri, 0)
    log = DeltaLog.for_table(uri)
    found = log.snapshot.metadata.configuration
    assert found["delta.inCommitTimestampEnablementVersion"] == "3"
    assert log.snapshot_at(timestamp=log.snapshot.timestamp).version == 3


def test_the_change_feed_shows_the_difference(uri):
    write_arrow(
        uri,
        numbers(1, 2),
        mode="append",
        properties={**VECTORS, "delta.enableChangeDataFeed": "true"},
    )
    delete_rows(uri, "id = 1")
    write_arrow(uri, numbers(3), mode="append")
    restore(uri, 0)
    found = pa.Table.from_batches(table_changes(uri, 3)).to_pylist()
    assert sorted((r["_change_type"], r["id"]) for r in found) == [("delete", 3), ("insert", 1)]


def test_manifests_follow(uri):
    properties = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
    write_arrow(uri, numbers(1), mode="append", properties=properties)
    write_arrow(uri, numbers(2), mode="append")
    restore(uri, 0)
    (file,) = DeltaLog.for_table(uri).snapshot.files()
    listed = Path(uri, "_symlink_format_manifest", "manifest").read_text().split()
    assert [place.rpartition("/")[2] for place in listed] == [file.path]


def test_files_of_another_partitioning_come_back(uri):
    write_arrow(uri, numbers(1, 2), mode="append", partition_by=["text"])
    write_arrow(uri, numbers(3), mode="overwrite", schema_mode="overwrite", partition_by=["id"])
    restore(uri, 0)
    assert DeltaLog.for_table(uri).snapshot.partition_columns == ["text"]
    assert rows(uri) == numbers(1, 2).to_pylist()


def test_another_writer_wins(uri):
    write_arrow(uri, numbers(1), mode="append")
    write_arrow(uri, numbers(2), mode="append")
    slow = DeltaLog.for_table(uri)
    start = slow.start_transaction

    def overtaken():
        txn = start()
        write_arrow(uri, numbers(3), mode="append")
        return txn

    slow.start_transaction = overtaken  # type: ignore[assignment, method-assign]
    with pytest.raises(ConcurrentWriteException):
        restore(slow, 0)
    assert [r["id"] for r in rows(uri)] == [1, 2, 3]


@pytest.mark.parametrize("fault", [Fault.OSERROR, Fault.LOST_UNKNOWN, Fault.LANDS_OSERROR])
def test_after_a_fault_the_table_is_the_old_or_the_new_one(uri, fault):
    write_arrow(uri, numbers(1), mode="append")
    write_arrow(uri, numbers(2), mode="append")
    log = DeltaLog.for_table(uri)
    faulty = DeltaLog(log.table, FaultyLogStore(log.store, fault), log.conf, log.clock)
    try:
        restore(faulty, 0)
    except (OSError, CommitOutcomeUnknownError):
        assert rows(uri) == numbers(1, 2).to_pylist()
    else:
        assert rows(uri) == numbers(1).to_pylist()
    assert restore(uri, 1).version is not None or rows(uri) == numbers(1, 2).to_pylist()


STEPS = st.sampled_from(
    ["append", "delete", "update", "overwrite", "vectors", "rewrite", "feed", "column", "restore"]
)


@settings(max_examples=examples(6))
@given(st.lists(st.tuples(STEPS, st.integers(0, 9)), min_size=2, max_size=7), st.data())
def test_any_version_of_any_history_comes_back(steps, data):
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t"
        write_arrow(uri, numbers(0, 1, 2, 3), mode="append")
        log = DeltaLog.for_table(uri)
        shown = {0: (rows(uri), log.snapshot.schema, log.snapshot.metadata.configuration)}
        for step, number in steps:
            _step(log, step, number, shown)
            now = log.update()
            kept = {k: v for k, v in now.metadata.configuration.items() if "maxColumn" not in k}
            shown[now.version] = (rows(uri), now.schema, kept)
        version = data.draw(st.sampled_from(sorted(shown)))
        restore(log, version)
        now = log.update()
        assert (rows(uri), now.schema) == shown[version][:2]
        assert now.metadata.configuration == shown[version][2]
        lost = data.draw(st.sampled_from(sorted(shown)))
        present = {f.path for f in now.files()}
        needed = {f.path for f in log.snapshot_at(lost).files()} - present
        for path in needed:
            Path(uri, path).unlink()
        missing = restore(log, lost, dry_run=True).missing
        assert {f"{uri}/{path}" for path in needed} == set(missing)


def _step(log: DeltaLog, step: str, number: int, shown: dict[int, Any]) -> None:
    match step:
        case "append":
            data = numbers(number, number + 20)
            write_arrow(log, data, mode="append")
        case "overwrite":
            write_arrow(log, numbers(number), mode="overwrite")
        case "delete":
            delete_rows(log, f"id = {number}")
        case "update":
            update_rows(log, {"id": "id + 1"}, f"id > {number}")
        case "vectors":
            set_properties(log, VECTORS)
        case "rewrite":
            unset_properties(log, "delta.enableDeletionVectors", if_exists=True)
        case "feed":
            set_properties(log, {"delta.enableChangeDataFeed": "true"})
        case "column":
            if log.update().schema.get("c") is None:
                add_columns(log, StructType.from_json(_COLUMN))
        case "restore":
            restore(log, sorted(shown)[number % len(shown)])


_COLUMN = '{"type":"struct","fields":[{"name":"c","type":"long","nullable":true,"metadata":{}}]}'
