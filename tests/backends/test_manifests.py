"""Symlink manifests, and tables made of files that are there, on each storage."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector

from lakelog.core import DeltaLog, Operation, convert_to_delta, write_arrow
from lakelog.core.paths import data_path
from support.backends import backend_of

KEPT = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
STORAGES = ["minio", "azurite", "fake GCS", "HDFS"]  # DynamoDB decides on commits alone


def manifests(log: DeltaLog) -> dict[str, list[str]]:
    filesystem = log.store.filesystem
    root = log.store.filesystem_path(f"{log.table}/_symlink_format_manifest")
    found = {}
    for info in filesystem.get_file_info(FileSelector(root, recursive=True)):
        if info.is_file:
            with filesystem.open_input_file(info.path) as source:
                found[info.path[len(root) + 1 :]] = source.read().decode().splitlines()
    return found


def expected(log: DeltaLog) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in log.update().files():
        folder = {"a b": "p=a b", None: "p=__HIVE_DEFAULT_PARTITION__"}[file.partition_values["p"]]
        found.setdefault(f"{folder}/manifest", []).append(data_path(log.table, file.path))
    return {folder: sorted(lines) for folder, lines in found.items()}


@pytest.mark.parametrize("name", STORAGES)
def test_manifests_follow_commits(name: str, request: pytest.FixtureRequest) -> None:
    backend = backend_of(name, request)
    table = backend.uri("manifests")
    data = pa.table({"id": [1, 2], "p": ["a b", None]})
    write_arrow(table, data, partition_by=["p"], properties=KEPT, conf=backend.conf, mode="append")
    log = DeltaLog.for_table(table, backend.conf)
    assert manifests(log) == expected(log)
    assert len(manifests(log)) == 2
    write_arrow(table, data.slice(0, 1), conf=backend.conf, mode="append")
    assert manifests(log) == expected(log)
    txn = log.start_transaction()
    gone = [each.remove(1) for each in txn.filter_files("p is null")]
    txn.commit(gone, Operation(name="DELETE"))
    assert manifests(log) == expected(log)
    assert list(manifests(log)) == ["p=a b/manifest"]
    assert log.generate_symlink_manifest() == ["_symlink_format_manifest/p=a b/manifest"]


@pytest.mark.parametrize("name", STORAGES)
def test_files_that_are_there_become_a_table(name: str, request: pytest.FixtureRequest) -> None:
    backend = backend_of(name, request)
    table = backend.uri("converted")
    store = DeltaLog.for_table(table, backend.conf).store
    for value in ("a b", "x%2Fy"):
        store.create_folder(f"{table}/p={value}")
        path = store.filesystem_path(f"{table}/p={value}/f.parquet")
        pq.write_table(pa.table({"id": [1]}), path, filesystem=store.filesystem)
    assert convert_to_delta(table, {"p": "string"}, conf=backend.conf) == 0
    rows = DeltaLog.for_table(table, backend.conf).snapshot.to_arrow()
    assert sorted(rows["p"].to_pylist()) == ["a b", "x/y"]
