"""ALTER TABLE and RESTORE as methods of `DeltaTable`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import LongType, StructField, StructType

import lakelog.spark as delta
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> delta.DeltaTable:
    path = str(tmp_path / "t")
    made = (
        delta.DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "BIGINT")
        .addColumn("s", "STRUCT<x: INT, y: STRING>")
        .property("delta.columnMapping.mode", "name")
        .clusterBy("id", "s.x")
        .execute()
    )
    delta.write(spark.sql("SELECT 1L AS id, named_struct('x', 2, 'y', 'a') AS s")).mode(
        "append"
    ).save(path)
    return made


def test_columns_come_change_and_go(table: delta.DeltaTable) -> None:
    (detail,) = table.detail().collect()
    assert detail.clusteringColumns == ["id", "s.x"]
    assert detail.tableFeatures == sorted(detail.tableFeatures)
    assert {"appendOnly", "clustering", "columnMapping"} <= set(detail.tableFeatures)
    table.addColumns("n INT COMMENT 'x', d DATE", after="id")
    table.addColumns(StructType([StructField("z", LongType())]), parent="s", first=True)
    table.renameColumn("s.y", "yy")
    table.dropColumns("d")
    table.alterColumn("n", comment="of things")
    table.setProperties({"delta.enableTypeWidening": True, "mine": "1"})
    table.alterColumn("n", LongType())
    table.unsetProperties("mine")
    table.clusterBy("n")
    schema = table.toDF().schema
    assert schema.simpleString() == "struct<id:bigint,n:bigint,s:struct<z:bigint,x:int,yy:string>>"
    assert schema["n"].metadata["comment"] == "of things"
    table.replaceColumns("s STRUCT<z: BIGINT, x: INT, yy: STRING>, n BIGINT, id BIGINT")
    assert table.toDF().columns == ["s", "n", "id"]
    (detail,) = table.detail().collect()
    assert detail.clusteringColumns == ["n"]
    assert "mine" not in detail.properties


def test_constraints_and_the_protocol(table: delta.DeltaTable) -> None:
    table.addConstraint("c", "length(concat(s.y, cast(id AS STRING))) > 1")
    with pytest.raises(ConstraintViolationError):
        table.addConstraint("d", "soundex(s.y) = 'x'")
    table.dropConstraint("C")
    with pytest.raises(DeltaAnalysisError, match="DELTA_CONSTRAINT_DOES_NOT_EXIST"):
        table.dropConstraint("c")
    table.dropConstraint("c", ifExists=True)
    table.upgradeTableProtocol(2, 5)
    table.addFeatureSupport("deletionVectors")
    (detail,) = table.detail().collect()
    assert {"deletionVectors", "checkConstraints", "changeDataFeed"} <= set(detail.tableFeatures)
    table.dropFeatureSupport("deletionVectors", False)
    table.dropFeatureSupport("checkConstraints")
    (detail,) = table.detail().collect()
    assert not {"deletionVectors", "checkConstraints"} & set(detail.tableFeatures)
    assert "checkpointProtection" in detail.tableFeatures
    with pytest.raises(DeltaAnalysisError, match="no such table feature"):
        table.addFeatureSupport("deletionVector")


def test_older_versions_come_back(spark: SparkSession, table: delta.DeltaTable) -> None:
    path = table.log.table
    delta.write(spark.range(5, 7)).mode("append").save(path)
    table.addColumns("n INT")
    (row,) = table.restoreToVersion(1).collect()
    assert row.asDict().keys() == {
        "table_size_after_restore",
        "num_of_files_after_restore",
        "num_removed_files",
        "num_restored_files",
        "removed_files_size",
        "restored_files_size",
    }
    assert row.num_removed_files >= 1
    assert [r.id for r in table.toDF().collect()] == [1]
    assert table.restoreToVersion(4).collect() == []
    (said,) = table.history(1).collect()
    assert said.operation == "RESTORE"
    assert said.operationParameters == {"version": "1", "timestamp": None}
    (third,) = table.history().where("version = 3").collect()
    (row,) = table.restoreToTimestamp(str(third.timestamp)).collect()
    assert table.toDF().columns == ["id", "s", "n"]
    assert sorted(r.id for r in table.toDF().collect()) == [1, 5, 6]


def _data_files(table: Path) -> list[Path]:
    return [each for each in table.rglob("*.parquet") if "_delta_log" not in each.parts]


def test_clones(spark: SparkSession, table: delta.DeltaTable, tmp_path: Path) -> None:
    delta.write(spark.range(5, 7)).mode("append").save(table.log.table)
    made = table.clone(str(tmp_path / "c"), isShallow=True)
    assert isinstance(made, delta.DeltaTable)
    assert sorted(r.id for r in made.toDF().collect()) == [1, 5, 6]
    assert not _data_files(tmp_path / "c")
    older = table.cloneAtVersion(1, str(tmp_path / "d"), properties={"mine": "x"})
    assert _data_files(tmp_path / "d")  # as delta-spark's default says
    assert [r.id for r in older.toDF().collect()] == [1]
    (detail,) = older.detail().collect()
    assert detail.properties["mine"] == "x"
    (first,) = table.history().where("version = 1").collect()
    timed = table.cloneAtTimestamp(str(first.timestamp), str(tmp_path / "e"), isShallow=True)
    assert [r.id for r in timed.toDF().collect()] == [1]
    delta.write(spark.range(9, 10)).mode("append").save(made.log.table)
    assert made.toDF().count() == 4
    assert table.toDF().count() == 3
