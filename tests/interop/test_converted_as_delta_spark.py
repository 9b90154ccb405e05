"""Folders of Parquet files that Spark wrote: our conversion and delta-spark's, side by side."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lakelog.core import DeltaLog
from lakelog.core.create.convert_to_delta import convert_to_delta
from lakelog.core.errors import DeltaError
from lakelog.core.log.file_names import commit_name
from support.delta_spark_peer import DeltaSparkError
from support.samples import rows_of

SELECT = """
    SELECT id, CAST(id AS SMALLINT) AS small, id * 1.5 AS x, CAST(id AS DECIMAL(9, 2)) AS money,
        CONCAT('name ', id) AS name, TIMESTAMP'2024-01-02 03:04:05.678901' AS at,
        DATE'2024-01-02' AS day, id % 2 = 0 AS even, ARRAY(id) AS many,
        NAMED_STRUCT('a', id, 'b', STRING(id)) AS pair, {partition}
    FROM range(20)
"""


@pytest.fixture
def paths(tmp_path):
    """Of what becomes our table, and of what becomes theirs."""
    return str(tmp_path / "ours"), str(tmp_path / "theirs")


def actions(path):
    text = (Path(path) / "_delta_log" / commit_name(0)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def one(path, kind):
    (found,) = [each[kind] for each in actions(path) if kind in each]
    return found


def adds(path):
    found = [each["add"] for each in actions(path) if "add" in each]
    for each in found:
        stats = json.loads(each["stats"]) if each.get("stats") else {}
        each["stats"] = stats.get("numRecords")
    return sorted(found, key=lambda each: each["path"])


def parquet(delta_spark, path, partition, clause=""):
    delta_spark.sql("DROP TABLE IF EXISTS source")
    delta_spark.sql(
        f"CREATE TABLE source USING parquet {clause} LOCATION '{path}' AS "
        + SELECT.format(partition=partition)
    )
    delta_spark.sql("DROP TABLE source")


@pytest.mark.one_day_in(6, 1)
@pytest.mark.parametrize(
    ("partition", "columns"),
    [
        ("1 AS last", None),
        ("id % 3 AS p", {"p": "bigint"}),
        ("CASE id % 4 WHEN 0 THEN 'a b%' WHEN 1 THEN 'x/y=z' WHEN 2 THEN 'é:#' END AS p",
         {"p": "string"}),
    ],
    ids=["unpartitioned", "numbers", "odd texts"],
)  # fmt: skip
def test_both_make_the_same_table(delta_spark, paths, partition, columns):
    ours, theirs = paths
    clause = f"PARTITIONED BY ({', '.join(columns)})" if columns else ""
    parquet(delta_spark, ours, partition, clause)
    shutil.copytree(ours, theirs)
    kinds = ", ".join(f"{name} {kind}" for name, kind in (columns or {}).items())
    by = f"PARTITIONED BY ({kinds})" if columns else ""
    delta_spark.sql(f"CONVERT TO DELTA parquet.`{theirs}` {by}")
    assert convert_to_delta(ours, columns, non_ascii_paths="bare") == 0
    left, right = one(ours, "metaData"), one(theirs, "metaData")
    assert json.loads(left["schemaString"]) == json.loads(right["schemaString"])
    assert left["partitionColumns"] == right["partitionColumns"]
    assert one(ours, "protocol") == one(theirs, "protocol")
    mine, other = one(ours, "commitInfo"), one(theirs, "commitInfo")
    assert mine["operationParameters"] == other["operationParameters"]
    assert mine["operationMetrics"] == other["operationMetrics"]
    assert (mine["readVersion"], mine["isBlindAppend"]) == (-1, False)
    assert ("dataChange" in mine) == ("dataChange" in other)
    kept = ("path", "partitionValues", "size", "dataChange", "stats")
    assert [[a[k] for k in kept] for a in adds(ours)] == [
        [a[k] for k in kept] for a in adds(theirs)
    ]
    expected = rows_of(delta_spark.read(theirs))
    assert rows_of(delta_spark.read(ours)) == expected
    assert rows_of(DeltaLog.for_table(ours).snapshot.to_arrow()) == expected


@pytest.mark.one_day_in(4)
@pytest.mark.parametrize(
    "columns", [{}, {"q": "int"}, {"p": "date"}, {"p": "int", "q": "int"}], ids=str
)
def test_both_refuse_folders_that_are_not_those_of_the_columns(delta_spark, paths, columns):
    ours, theirs = paths
    parquet(delta_spark, ours, "STRING(id % 3 + 0.5) AS p", "PARTITIONED BY (p)")
    shutil.copytree(ours, theirs)
    kinds = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    by = f"PARTITIONED BY ({kinds})" if columns else ""
    with pytest.raises(DeltaSparkError) as refused:
        delta_spark.sql(f"CONVERT TO DELTA parquet.`{theirs}` {by}")
    with pytest.raises(DeltaError) as caught:
        convert_to_delta(ours, columns)
    condition = str(caught.value).partition("]")[0].strip("[")
    assert condition in str(refused.value)
