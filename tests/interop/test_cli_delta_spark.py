"""The commands about tables, on a table of delta-spark with much that lakelog must know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

    from support.delta_spark_peer import DeltaSparkPeer


@pytest.fixture
def uri(delta_spark: DeltaSparkPeer, tmp_path: Path) -> str:
    table = f"delta.`{tmp_path}/t`"
    delta_spark.sql(
        f"CREATE TABLE {table} (id LONG COMMENT 'the key', day STRING) USING delta "
        "PARTITIONED BY (day) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        "'delta.columnMapping.mode' = 'name')"
    )
    delta_spark.sql(
        f"INSERT INTO {table} SELECT id, IF(id < 10, 'a', 'b') AS day FROM range(0, 20, 1, 1)"
    )
    delta_spark.sql(f"ALTER TABLE {table} RENAME COLUMN day TO date")
    delta_spark.sql(f"DELETE FROM {table} WHERE id IN (3, 4)")
    return f"{tmp_path}/t"


def test_its_table_is_told_as_it_tells_it_itself(delta_spark: DeltaSparkPeer, uri: str) -> None:
    history = lakelog_json("history", uri)["entries"]
    theirs = delta_spark.history(uri)
    assert [each["operation"] for each in history] == [each["operation"] for each in theirs]
    assert "2 rows deleted" in lakelog("history", uri).lines[2]

    found = lakelog_json("describe", uri)
    detail = delta_spark.detail(uri)
    assert (found["id"], found["files"], found["bytes"]) == (
        detail["id"],
        detail["numFiles"],
        detail["sizeInBytes"],
    )
    assert found["rows"] == 18
    assert found["partition_columns"] == ["date"]
    assert {each["name"] for each in found["protocol"]["features"]} == set(detail["tableFeatures"])
    assert found["protocol"]["cannot_read"] is None

    files = lakelog_json("files", uri, "--stats", "id", "--where", "date = 'a'")
    [file] = files["list"]
    assert file["partition_values"] == {"date": "a"}
    assert (file["rows"], file["deleted_rows"]) == (8, 2)
    assert file["stats"]["id"]["max"] == 9
    summary = lakelog_json("files", uri, "--summary")
    assert {(p["partition_values"]["date"], p["rows"]) for p in summary["partitions"]} == {
        ("a", 8),
        ("b", 10),
    }
