"""The commands about tables, on tables that deltalake writes and reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest

from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def uri(tmp_path: Path) -> str:
    table = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"]})
    deltalake.write_deltalake(table, rows, partition_by=["day"], name="flights")
    deltalake.write_deltalake(table, rows, mode="append")
    deltalake.DeltaTable(table).delete("day = 'a'")
    return table


def test_its_history_is_told(uri: str) -> None:
    found = lakelog_json("history", uri)
    theirs = deltalake.DeltaTable(uri).history()
    assert [each["operation"] for each in found["entries"]] == [t["operation"] for t in theirs]
    assert found["entries"][0]["operation"] == "DELETE"
    assert found["entries"][0]["engine"] == theirs[0].get("engineInfo")
    assert "4 rows deleted" in lakelog("history", uri).out


def test_its_table_is_described(uri: str) -> None:
    found = lakelog_json("describe", uri)
    theirs = deltalake.DeltaTable(uri)
    assert (found["name"], found["version"]) == ("flights", theirs.version())
    assert found["id"] == str(theirs.metadata().id)
    assert found["files"] == len(theirs.file_uris())
    assert (found["rows"], found["partition_columns"]) == (2, ["day"])


def test_its_files_are_listed_and_pruned_alike(uri: str) -> None:
    before = lakelog_json("files", uri, "--version", "1", "--where", "day = 'a'")
    theirs = deltalake.DeltaTable(uri, version=1).file_uris(
        file_pruning_predicate=[("day", "=", "a")]
    )
    assert sorted(path.rpartition("/")[2] for path in theirs) == sorted(
        each["path"].rpartition("/")[2] for each in before["list"]
    )


def test_it_reads_from_our_checkpoint(uri: str, tmp_path: Path) -> None:
    found = lakelog_json("checkpoint", uri)
    assert found["verified"] is True
    for version in range(found["version"]):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    theirs = deltalake.DeltaTable(uri)
    assert sorted(theirs.to_pyarrow_table()["id"].to_pylist()) == [3, 3]
