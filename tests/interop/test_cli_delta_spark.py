"""The commands about tables, on a table of delta-spark with much that lakelog must know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


@pytest.mark.one_day_in(2)
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


@pytest.mark.parametrize(
    "rest",
    [
        "PARTITIONED BY (day) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.feature.allowColumnDefaults' = 'supported', 'team' = 'o\\'neill')",
        "CLUSTER BY (id, s.`a b`) COMMENT 'two\\nlines' TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'delta.feature.allowColumnDefaults' = 'supported')",
    ],
    ids=["partitioned", "clustered"],
)
def test_it_makes_such_a_table_by_the_statement_that_schema_shows(
    delta_spark: DeltaSparkPeer, rest: str, tmp_path: Path
) -> None:
    delta_spark.sql(
        f"CREATE TABLE delta.`{tmp_path}/one` ("
        "id BIGINT NOT NULL COMMENT 'the key''s', `odd ``name``` STRING DEFAULT 'it\\'s', "
        "s STRUCT<`a b`: INT NOT NULL COMMENT 'in', c: ARRAY<MAP<STRING, DECIMAL(5,2)>>>, "
        "day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), at TIMESTAMP, local TIMESTAMP_NTZ, "
        f"code VARCHAR(3), `left` DOUBLE) USING delta {rest}"
    )
    statement = lakelog("schema", f"{tmp_path}/one", "--sql").out
    delta_spark.sql(statement.replace(f"{tmp_path}/one", f"{tmp_path}/two").rstrip().rstrip(";"))
    one, two = (lakelog_json("schema", f"{tmp_path}/{name}") for name in ("one", "two"))
    assert _without_mapping(one) == _without_mapping(two)
    differ = (
        lakelog_json("properties", f"{tmp_path}/one"),
        lakelog_json("properties", f"{tmp_path}/two"),
    )
    assert differ[0]["properties"] == differ[1]["properties"]
    assert lakelog("schema", f"{tmp_path}/two", "--sql").out == statement.replace("/one", "/two")


def _without_mapping(value: Any) -> Any:
    """A document without the names and ids that column mapping draws, and without the table's."""
    if isinstance(value, dict):
        return {
            key: _without_mapping(each)
            for key, each in value.items()
            if not key.startswith("delta.columnMapping.") and key != "table"
        }
    return [_without_mapping(each) for each in value] if isinstance(value, list) else value


@pytest.mark.one_day_in(2, 1)
def test_rows_deleted_and_updated_here_are_so_there(delta_spark: DeltaSparkPeer, uri: str) -> None:
    assert lakelog_json("delete", uri, "--where", "id % 5 = 0")["rows"] == 4
    options = ("--set", "date=upper(date)", "--where", "id > 15")
    assert lakelog_json("update", uri, *options)["rows"] == 4
    rows = delta_spark.sql(f"SELECT date, count(*) AS n FROM delta.`{uri}` GROUP BY date")
    assert {(row["date"], row["n"]) for row in rows} == {("a", 6), ("b", 4), ("B", 4)}
    sampled = lakelog_json("sample", uri, "--limit", "99", "--column", "id")["rows"]
    there = delta_spark.sql(f"SELECT id FROM delta.`{uri}`")
    assert sorted(row["id"] for row in sampled) == sorted(row["id"] for row in there)
    lakelog_json("properties", uri, "--set", "delta.appendOnly=true")
    [properties] = [delta_spark.detail(uri)["properties"]]
    assert properties["delta.appendOnly"] == "true"
