"""DROP FEATURE: what is done before, what it leaves, and what is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, delete_rows, read_arrow, restore, write_arrow
from lakelog.core.alter import (
    add_constraint,
    change_column,
    cluster_by,
    drop_columns,
    drop_constraint,
    drop_feature,
    rename_column,
    set_properties,
)
from lakelog.core.alter.clustered_by import shown_columns
from lakelog.core.alter.feature_removal import drop_feature as command
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.protocol import supported_features
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "n": ["a", "b", None],
        "s": [{"x": 1}, None, {"x": None}],
        "p": [1, 1, 2],
    }
)
DAY_MS = 86_400_000


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def make(uri: str, **properties: str) -> None:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    write_arrow(uri, ROWS, mode="append", partition_by=["p"], properties=named)


def rows(uri: str) -> list[dict[str, Any]]:
    return sorted(read_arrow(uri).to_pylist(), key=str)


def operations(uri: str, since: int) -> list[str | None]:
    found = DeltaLog.for_table(uri).history()
    return [each.operation for each in reversed(found) if each.version > since]


def widen(uri: str) -> None:
    change_column(uri, "id", data_type="bigint")
    change_column(uri, "s.x", data_type="bigint")
    write_arrow(uri, read_arrow(uri), mode="append")


def rename(uri: str) -> None:
    rename_column(uri, "n", "title")
    drop_columns(uri, "s")
    rename_column(uri, "p", "part")


def constrain(uri: str) -> None:
    add_constraint(uri, "c", "id > 0")
    drop_constraint(uri, "c")


def nothing(uri: str) -> None:
    pass


EMPTY = ["Empty Commit"] * 3
WAYS: dict[str, tuple[dict[str, str], Callable[[str], object], list[str]]] = {
    "deletionVectors": (
        {"delta_enableDeletionVectors": "true"},
        lambda uri: delete_rows(uri, "id = 1"),
        ["UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones", *EMPTY, "DROP FEATURE"],
    ),
    "typeWidening": (
        {"delta_enableTypeWidening": "true"},
        widen,
        ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE", *EMPTY, "DROP FEATURE"],
    ),
    "columnMapping": (
        {"delta_columnMapping_mode": "name"},
        rename,
        ["REMOVE COLUMN MAPPING", *EMPTY, "DROP FEATURE"],
    ),
    "v2Checkpoint": (
        {"delta_checkpointPolicy": "v2"},
        lambda uri: DeltaLog.for_table(uri).checkpoint(),
        ["SET TBLPROPERTIES", *EMPTY, "DROP FEATURE"],
    ),
    "vacuumProtocolCheck": (
        {"delta_feature_vacuumProtocolCheck": "supported"},
        nothing,
        [*EMPTY, "DROP FEATURE"],
    ),
    "inCommitTimestamp": (
        {"delta_enableInCommitTimestamps": "true"},
        nothing,
        ["UNSET TBLPROPERTIES", "DROP FEATURE"],
    ),
    "checkConstraints": ({}, constrain, ["DROP FEATURE"]),
    "rowTracking": (
        {"delta_enableRowTracking": "true"},
        nothing,
        ["SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL", "DROP FEATURE"],
    ),
    "domainMetadata": (
        {"delta_feature_domainMetadata": "supported"},
        nothing,
        ["DROP FEATURE"],
    ),
    "materializePartitionColumns": (
        {"delta_enableMaterializePartitionColumnsFeature": "true"},
        nothing,
        ["UNSET TBLPROPERTIES", "DROP FEATURE"],
    ),
}


@pytest.mark.parametrize("feature", WAYS)
def test_the_rows_stay_and_the_feature_goes(uri, feature):
    properties, before, steps = WAYS[feature]
    make(uri, **properties)
    before(uri)
    shown, since = rows(uri), DeltaLog.for_table(uri).snapshot.version

    version = drop_feature(uri, feature.upper())

    log = DeltaLog.for_table(uri)
    features = supported_features(log.snapshot.protocol)
    assert rows(uri) == shown
    assert operations(uri, since) == steps
    assert log.snapshot.version == version
    assert feature not in features
    guarded = "Empty Commit" in steps
    assert ("checkpointProtection" in features) == guarded
    said = log.snapshot.metadata.configuration.get("delta.requireCheckpointProtectionBeforeVersion")
    assert said == (str(version) if guarded else None)
    write_arrow(uri, read_arrow(uri), mode="append")
    assert len(rows(uri)) == 2 * len(shown)


def test_files_have_the_names_and_the_types_of_the_table(uri):
    make(uri, delta_columnMapping_mode="name", delta_enableTypeWidening="true")
    cluster = f"{uri}-clustered"
    write_arrow(cluster, ROWS, mode="append", properties={"delta.columnMapping.mode": "name"})
    rename_column(cluster, "n", "title")
    cluster_by(cluster, "title")
    drop_feature(cluster, "columnMapping")
    snapshot = DeltaLog.for_table(cluster).snapshot
    assert shown_columns(snapshot) == ["title"]
    assert "col-" not in snapshot.domain_metadata["delta.clustering"].configuration
    widen(uri)
    drop_feature(uri, "typeWidening")
    rename(uri)
    drop_feature(uri, "columnMapping")
    log = DeltaLog.for_table(uri)
    for file in log.snapshot.files():
        schema = pq.read_schema(f"{uri}/{file.path}")
        assert schema.names == ["id", "title"]
        assert schema.field("id").type == pa.int64()
        assert file.partition_values.keys() == {"part"}
    assert "delta." not in log.snapshot.metadata.schema_string


def test_vectors_are_recorded_as_removed(uri):
    make(uri, delta_enableDeletionVectors="true")
    delete_rows(uri, "id = 1")
    vectors = {path.name for path in Path(uri).rglob("deletion_vector_*.bin")}
    drop_feature(uri, "deletionVectors")
    gone = set(DeltaLog.for_table(uri).snapshot.tombstones["path"].to_pylist())
    assert vectors
    assert {path for path in gone if "deletion_vector" in path} == vectors


def test_row_ids_are_gone(uri):
    make(uri, delta_enableRowTracking="true")
    drop_feature(uri, "rowTracking")
    snapshot = DeltaLog.for_table(uri).snapshot
    assert {file.base_row_id for file in snapshot.files()} == {None}
    assert snapshot.domain_metadata == {}
    assert snapshot.metadata.configuration == {}
    drop_feature(uri, "domainMetadata")


@pytest.mark.parametrize(
    ("properties", "feature", "truncate", "condition"),
    [
        ({}, "appendOnly", False, "NONREMOVABLE_FEATURE"),
        ({}, "clustering", False, "NONREMOVABLE_FEATURE"),
        ({}, "nonsense", False, "UNSUPPORTED_CLIENT_FEATURE"),
        ({}, "deletionVectors", False, "FEATURE_NOT_PRESENT"),
        ({"delta_enableRowTracking": "true"}, "domainMetadata", False, "DEPENDENT_FEATURE"),
        ({"delta_enableRowTracking": "true"}, "rowTracking", True, "TRUNCATION_NOT_ALLOWED"),
        (
            {"delta_feature_checkpointProtection": "supported"},
            "checkpointProtection",
            False,
            "WITH_HISTORY_TRUNCATION",
        ),
    ],
)
def test_what_can_not_be_dropped(uri, properties, feature, truncate, condition):
    make(uri, **properties)
    with pytest.raises(DeltaAnalysisError, match=condition):
        drop_feature(uri, feature, truncate_history=truncate)
    assert DeltaLog.for_table(uri).snapshot.version == 0


def test_constraints_and_names_are_for_the_user_to_decide(uri):
    make(uri, delta_columnMapping_mode="name")
    add_constraint(uri, "c", "id > 0")
    with pytest.raises(DeltaAnalysisError, match="dropped first: c"):
        drop_feature(uri, "checkConstraints")
    rename_column(uri, "n", "a b")
    with pytest.raises(DeltaAnalysisError, match=r"REMOVING_COLUMN_MAPPING.*`a b`"):
        drop_feature(uri, "columnMapping")
    assert DeltaLog.for_table(uri).snapshot.version == 2


@pytest.mark.parametrize("feature", ["deletionVectors", "v2Checkpoint", "columnMapping"])
def test_history_is_cut_once_it_is_old(uri, feature):
    properties, before, _ = WAYS[feature]
    make(uri, **properties)
    before(uri)
    shown = rows(uri)
    with pytest.raises(DeltaAnalysisError, match="WAIT_FOR_RETENTION_PERIOD"):
        drop_feature(uri, feature, truncate_history=True)
    with pytest.raises(DeltaAnalysisError, match="HISTORICAL_VERSIONS_EXIST"):
        drop_feature(uri, feature, truncate_history=True)
    assert feature in supported_features(DeltaLog.for_table(uri).snapshot.protocol)

    later = ManualClock(int(time.time() * 1000) + 2 * DAY_MS)
    log = DeltaLog.for_table(uri, clock=later)
    drop_feature(log, feature, truncate_history=True)

    features = supported_features(log.update().protocol)
    assert not {feature, "checkpointProtection"} & features
    assert not Path(uri, "_delta_log", f"{0:020d}.json").exists()
    assert rows(uri) == shown


def test_protection_goes_with_what_it_protects(uri):
    make(uri, delta_enableDeletionVectors="true")
    delete_rows(uri, "id = 1")
    drop_feature(uri, "deletionVectors")
    with pytest.raises(DeltaAnalysisError, match="PROTECTION_WAIT_FOR_RETENTION_PERIOD"):
        drop_feature(uri, "checkpointProtection", truncate_history=True)
    later = ManualClock(int(time.time() * 1000) + 2 * DAY_MS)
    log = DeltaLog.for_table(uri, clock=later)
    drop_feature(log, "checkpointProtection", truncate_history=True)
    assert supported_features(log.update().protocol) == {"appendOnly", "invariants"}
    assert log.snapshot.metadata.configuration == {}


def test_a_version_from_before_can_be_restored_and_stays_protected(uri):
    make(uri, delta_enableDeletionVectors="true")
    delete_rows(uri, "id = 1")
    shown = rows(uri)
    version = drop_feature(uri, "deletionVectors")
    restore(uri, 1)
    snapshot = DeltaLog.for_table(uri).snapshot
    assert rows(uri) == shown
    features = supported_features(snapshot.protocol)
    assert {"deletionVectors", "checkpointProtection"} <= features
    key = "delta.requireCheckpointProtectionBeforeVersion"
    assert snapshot.metadata.configuration[key] == str(version)


def test_a_writer_in_between_moves_the_version(uri, monkeypatch):
    make(uri, delta_enableDeletionVectors="true")
    committed, count = command._metadata, [0]

    def overtaken(*args):
        count[0] += 1
        if count[0] == 1:
            set_properties(uri, {"mine": "x"})
        return committed(*args)

    monkeypatch.setattr(command, "_metadata", overtaken)
    version = drop_feature(uri, "deletionVectors")
    configuration = DeltaLog.for_table(uri).snapshot.metadata.configuration
    assert configuration == {
        "mine": "x",
        "delta.requireCheckpointProtectionBeforeVersion": str(version),
    }


def test_a_writer_that_brings_it_back_is_reported(uri, monkeypatch):
    make(uri, delta_enableDeletionVectors="true")
    committed = command._metadata

    def back(*args):
        set_properties(uri, {"delta.enableDeletionVectors": "true"})
        return committed(*args)

    monkeypatch.setattr(command, "_metadata", back)
    with pytest.raises(DeltaAnalysisError, match="CONFLICT_REVALIDATION_FAIL"):
        drop_feature(uri, "deletionVectors")
    monkeypatch.undo()
    lines = Path(uri, "_delta_log").glob("*.json")
    newest = [json.loads(line) for line in max(lines).read_text().splitlines()]
    assert "deletionVectors" in supported_features(DeltaLog.for_table(uri).snapshot.protocol)
    assert newest[0]["commitInfo"]["operation"] == "SET TBLPROPERTIES"
