"""CLONE: rows, terms, files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, clone, delete_rows, update_rows, write_arrow
from lakelog.core.alter import cluster_by, enable_row_tracking, rename_column, set_properties
from lakelog.core.alter.clustered_by import shown_columns
from lakelog.core.create.clone import cloned_files as places
from lakelog.core.create.clone.cloned_files import file_uri
from lakelog.core.errors import (
    ConcurrentWriteException,
    DataFileMissingError,
    DeltaAnalysisError,
    TableExistsError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lakelog.core.features.protocol import supported_features

if TYPE_CHECKING:
    from lakelog.core.state.snapshot import Snapshot

VECTORS = {"delta.enableDeletionVectors": "true"}
either = pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])


@pytest.fixture
def source(tmp_path: Path) -> str:
    uri = str(tmp_path / "the sourc%e é")
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["x y", "z%/é", "x y", None]})
    write_arrow(uri, rows, mode="append", partition_by=["p"], properties={**VECTORS, "mine": "s"})
    delete_rows(uri, "id = 1")
    return uri


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "target")


def snapshot(uri: str) -> Snapshot:
    return DeltaLog.for_table(uri).snapshot


def rows(uri: str, **kwargs: Any) -> list[dict[str, Any]]:
    return sorted(snapshot(uri).to_arrow(**kwargs).to_pylist(), key=str)


def on_disk(uri: str) -> set[str]:
    found = (path for path in Path(uri).rglob("*") if path.is_file())
    return {str(path) for path in found if "_delta_log" not in path.parts}


@either
def test_the_clone_has_the_rows_and_goes_its_own_way(source, target, shallow):
    shown = rows(source)
    done = clone(source, target, shallow=shallow)
    assert (done.version, done.source_version) == (0, 1)
    assert rows(target) == shown
    assert snapshot(target).metadata.configuration == snapshot(source).metadata.configuration
    assert snapshot(target).protocol == snapshot(source).protocol
    assert snapshot(target).metadata.id != snapshot(source).metadata.id
    delete_rows(target, "id = 2")
    update_rows(target, {"id": "id * 10"})
    write_arrow(target, pa.table({"id": [9], "p": ["n"]}), mode="append")
    assert [row["id"] for row in rows(target)] == [30, 40, 9]
    assert rows(source) == shown


def test_a_shallow_clone_copies_nothing(source, target):
    done = clone(source, target, user_metadata="why")
    assert on_disk(target) == set()
    lines = Path(target, "_delta_log", f"{0:020d}.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    info = actions[0]["commitInfo"]
    assert info["operation"] == "CLONE"
    assert info["operationParameters"] == {
        "source": f"delta.`file:{source}`",
        "sourceVersion": 1,
    }
    assert info["userMetadata"] == "why"
    assert {key: int(value) for key, value in info["operationMetrics"].items()} == done.metrics
    adds = [action["add"] for action in actions if "add" in action]
    assert all(add["path"].startswith("file:/") and add["dataChange"] for add in adds)
    (vector,) = [add["deletionVector"] for add in adds if "deletionVector" in add]
    assert vector["storageType"] == "p"
    assert vector["pathOrInlineDv"].startswith("file:/")


def test_a_deep_clone_shares_nothing(source, target):
    shown = rows(source)
    done = clone(source, target, shallow=False)
    assert done.metrics["numCopiedFiles"] == snapshot(source).num_files
    assert done.metrics["copiedFilesSize"] == sum(Path(p).stat().st_size for p in on_disk(target))
    for path in on_disk(source):
        Path(path).unlink()
    assert rows(target) == shown
    assert not [file for file in snapshot(target).files() if ":" in file.path]


@either
def test_a_clone_of_a_clone(source, target, shallow):
    clone(source, target)
    delete_rows(target, "id = 2")
    third = f"{target}3"
    clone(target, third, shallow=shallow)
    assert rows(third) == rows(target)


@either
def test_an_older_version(source, target, shallow):
    clone(source, target, 0, shallow=shallow, properties={"mine": "t", "delta.appendOnly": True})
    assert len(rows(target)) == 4
    configuration = snapshot(target).metadata.configuration
    assert (configuration["mine"], configuration["delta.appendOnly"]) == ("t", "true")
    time = DeltaLog.for_table(source).snapshot_at(0).timestamp
    clone(source, f"{target}2", timestamp=time, shallow=shallow)
    assert len(rows(f"{target}2")) == 4


def test_rows_get_ids_of_their_own(source, target):
    enable_row_tracking(source)
    update_rows(source, {"id": "id + 1"})
    clone(source, target)
    theirs, ours = (snapshot(uri).metadata.configuration for uri in (source, target))
    key = "delta.rowTracking.materializedRowIdColumnName"
    assert ours["delta.enableRowTracking"] == "true"
    assert ours[key] != theirs[key]
    files = snapshot(target).files()
    assert min(file.base_row_id or 0 for file in files) == 0
    assert {file.default_row_commit_version for file in files} == {0}


def test_mapping_clustering_and_progress_come_along(tmp_path, target):
    source = str(tmp_path / "s")
    write_arrow(
        source,
        pa.table({"id": [1], "t": ["x"]}),
        mode="append",
        app_id="job",
        app_version=7,
        properties={"delta.columnMapping.mode": "name", "delta.enableInCommitTimestamps": "true"},
    )
    rename_column(source, "t", "a title")
    cluster_by(source, "a title")
    clone(source, target)
    made = snapshot(target)
    assert rows(target) == [{"id": 1, "a title": "x"}]
    assert shown_columns(made) == ["`a title`"] or shown_columns(made) == ["a title"]
    assert made.txn_version("job") == 7
    assert "delta.inCommitTimestampEnablementVersion" not in made.metadata.configuration
    assert made.timestamp


def test_a_table_without_rows_is_replaced_and_loses_no_feature(source, target):
    write_arrow(target, pa.table({"other": [1]}), mode="append")
    set_properties(target, {"delta.feature.rowTracking": "supported"})
    with pytest.raises(TableExistsError):
        clone(source, target)
    with pytest.raises(DeltaAnalysisError, match="NON_EMPTY_CLONE"):
        clone(source, target, replace_target=True)
    delete_rows(target)
    number = snapshot(target).metadata.id
    done = clone(source, target, replace_target=True)
    assert done.version == 3
    assert rows(target) == rows(source)
    assert snapshot(target).metadata.id == number
    assert {"rowTracking", "deletionVectors"} <= supported_features(snapshot(target).protocol)


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"version": 9}, VersionNotFoundError, "0 to 1"),
        ({"properties": {"delta.columnMapping.mode": "name"}}, DeltaAnalysisError, "MODE_CHANGE"),
        ({"properties": {"delta.nonsense": "1"}}, DeltaAnalysisError, "delta.nonsense"),
        ({"version": 1, "timestamp": "2026-01-01"}, DeltaAnalysisError, "not both"),
    ],
)
def test_what_is_refused_leaves_nothing(source, target, options, error, why):
    with pytest.raises(error, match=why):
        clone(source, target, **options)
    assert not Path(target).exists()


def test_places_where_no_clone_can_be(source, tmp_path):
    with pytest.raises(DeltaAnalysisError, match="NON_EMPTY_LOCATION"):
        clone(source, str(tmp_path))
    with pytest.raises(DeltaAnalysisError, match="another storage"):
        clone(source, "memory://m/t")
    with pytest.raises(DeltaAnalysisError, match="NON_EMPTY_CLONE"):
        clone(source, source, replace_target=True)
    with pytest.raises(TableNotFoundError):
        clone(str(tmp_path / "none"), str(tmp_path / "x"))


def test_what_was_copied_goes_where_the_commit_fails(source, target):
    file = next(f for f in snapshot(source).files() if f.deletion_vector is None)
    (place,) = [p for p in on_disk(source) if p.endswith(file.path.rpartition("/")[2])]
    content = Path(place).read_bytes()
    Path(place).unlink()
    with pytest.raises(DataFileMissingError):
        clone(source, target, shallow=False)
    assert on_disk(target) == set()
    Path(place).write_bytes(content)
    clone(source, f"{target}2", shallow=False)

    slow = DeltaLog.for_table(target)
    copied = places.FileCopies.run

    def overtaken(self, tell):
        size = copied(self, tell)
        write_arrow(target, pa.table({"id": [1]}), mode="append")
        return size

    places.FileCopies.run = overtaken  # type: ignore[method-assign]
    try:
        with pytest.raises(ConcurrentWriteException):
            clone(source, slow, shallow=False)
    finally:
        places.FileCopies.run = copied  # type: ignore[method-assign]
    assert rows(target) == [{"id": 1}]
    assert len(on_disk(target)) == 1


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("/a b/ü%", "file:/a%20b/%C3%BC%25"),
        ("s3a://bucket/a b/x=1", "s3a://bucket/a%20b/x=1"),
        ("abfss://c@acc.dfs.core.windows.net/p#q", "abfss://c@acc.dfs.core.windows.net/p%23q"),
    ],
)
def test_absolute_paths_are_spelled_as_spark_does(place, uri):
    assert file_uri(place) == uri
