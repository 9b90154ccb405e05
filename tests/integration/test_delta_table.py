from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakelog.spark as delta
from lakelog.core import write_arrow
from lakelog.core.alter import add_constraint
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    DeltaAnalysisError,
    TableNotFoundError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    rows = spark.range(10).selectExpr("id", "id % 2 AS p")
    delta.write(rows).partitionBy("p").option("delta.appendOnly", "true").save(path)
    delta.write(rows).mode("append").option("userMetadata", "again").save(path)
    return path


def test_a_table_is_opened_by_its_path_and_follows_the_newest_version(
    spark: SparkSession, table: str
) -> None:
    opened = delta.DeltaTable.forPath(spark, table)
    assert opened.toDF().count() == 20
    delta.write(spark.range(5).selectExpr("id", "id AS p")).mode("append").save(table)
    assert opened.toDF().count() == 25


def test_a_notebook_shows_its_columns_or_what_is_wrong(spark: SparkSession, table: str) -> None:
    opened = delta.DeltaTable.forPath(spark, table)
    shown = opened._repr_html_()
    assert all(cell in shown for cell in ("<td>id</td>", "<td>1.</td>", "delta.appendOnly"))
    opened._log = type(opened._log).for_table(f"{table}/<gone>")
    assert "&lt;gone&gt;" in opened._repr_html_()
    assert "<gone>" not in opened._repr_html_()


def test_a_notebook_shows_the_answers_of_commands_as_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(20, numPartitions=2).selectExpr("id", "id % 2 AS p")
    for mode in ("overwrite", "append"):
        delta.write(rows).mode(mode).save(str(tmp_path))
    opened = delta.DeltaTable.forPath(spark, str(tmp_path))
    source = spark.range(3).selectExpr("id", "id AS p").alias("s")
    shown = {
        "2 versions": opened.history(),
        "<td>numFiles</td>": opened.detail(),
        "num_affected_rows": opened.alias("t")
        .merge(source, "t.id = s.id")
        .whenMatchedUpdateAll()
        .execute(),
        "partitions_optimized": opened.optimize().executeCompaction(),
        "TableVacuumed": opened.vacuum(),
        "num_restored_files": opened.restoreToVersion(0),
    }
    for wanted, frame in shown.items():
        assert wanted in (frame._repr_html_() or "")
        assert isinstance(frame, type(spark.range(1)))
    history = opened.history(1)
    # What is made of it is Spark's to show.
    assert not history.select("version")._repr_html_()
    assert repr(history) == repr(spark.createDataFrame([], history.schema))


def test_no_table_is_said_at_once(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        delta.DeltaTable.forPath(spark, str(tmp_path))
    with pytest.raises(TableNotFoundError, match="DELTA_MISSING_DELTA_TABLE"):
        delta.DeltaTable.forName(spark, "db.t")


def test_is_delta_table_answers_for_any_folder(
    spark: SparkSession, tmp_path: Path, table: str
) -> None:
    assert delta.DeltaTable.isDeltaTable(spark, table)
    assert not delta.DeltaTable.isDeltaTable(spark, str(tmp_path))
    assert not delta.DeltaTable.isDeltaTable(spark, str(tmp_path / "none"))


def test_history_is_newest_first_in_deltas_columns(spark: SparkSession, table: str) -> None:
    history = delta.DeltaTable.forPath(spark, table).history()
    second, first = history.collect()
    assert (second.version, first.version) == (1, 0)
    assert second.operation == "WRITE"
    assert second.userMetadata == "again"
    assert second.operationParameters["mode"] == "Append"
    assert second.operationMetrics["numOutputRows"] == "10"
    assert second.isBlindAppend
    assert second.readVersion == 0
    assert second.engineInfo.startswith("lakelog/")
    assert history.columns[:6] == [
        "version", "timestamp", "userId", "userName", "operation", "operationParameters",
    ]  # fmt: skip
    age = history.selectExpr("(unix_millis(now()) - unix_millis(timestamp)) / 1000 AS s")
    assert all(-5 < row.s < 300 for row in age.collect())


def test_history_stops_at_its_limit(spark: SparkSession, table: str) -> None:
    (row,) = delta.DeltaTable.forPath(spark, table).history(1).collect()
    assert row.version == 1


def test_detail_is_one_row_about_the_table(spark: SparkSession, table: str) -> None:
    (row,) = delta.DeltaTable.forPath(spark, table).detail().collect()
    assert row.format == "delta"
    assert row.location == f"file:{table}"
    assert row.partitionColumns == ["p"]
    assert row.numFiles == len(delta.DeltaTable.forPath(spark, table).toDF().inputFiles())
    assert row.sizeInBytes > 0
    assert row.properties == {"delta.appendOnly": "true"}
    assert (row.minReaderVersion, row.minWriterVersion) == (1, 2)
    assert row.createdAt <= row.lastModified
    assert isinstance(row.createdAt, dt.datetime)


def test_generate_writes_symlink_manifests_and_knows_no_other_mode(
    spark: SparkSession, table: str
) -> None:
    found = delta.DeltaTable.forPath(spark, table)
    found.generate("symlink_format_manifest")
    manifests = sorted(Path(table, "_symlink_format_manifest").rglob("manifest"))
    lines = [line for each in manifests for line in each.read_text().splitlines()]
    files = [file.replace("file:///", "file:/") for file in found.toDF().inputFiles()]
    assert sorted(lines) == sorted(files)
    assert lines
    with pytest.raises(DeltaAnalysisError, match="DELTA_MODE_NOT_SUPPORTED"):
        found.generate("nonsense")


def test_convert_to_delta_makes_a_table_of_what_spark_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "old")
    rows = spark.range(10).selectExpr("id", "CAST(id AS STRING) AS name", "id % 3 AS p")
    rows.write.partitionBy("p").parquet(path)
    found = delta.DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "p BIGINT")
    assert sorted(found.toDF().select("id", "name", "p").collect()) == sorted(rows.collect())
    assert found.log.snapshot.metadata.partition_columns == ["p"]
    again = delta.DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "p BIGINT")
    assert again.history().count() == 1
    with pytest.raises(DeltaAnalysisError, match="MISSING_PROVIDER_FOR_CONVERT"):
        delta.DeltaTable.convertToDelta(spark, "a.table")


def test_a_constraint_that_only_spark_evaluates_is_added_and_kept(
    spark: SparkSession, table: str
) -> None:
    opened, condition = delta.DeltaTable.forPath(spark, table), "length(base64(string(id))) > 1"
    with pytest.raises(DeltaAnalysisError, match=r"without Spark.*addConstraint"):
        add_constraint(table, "hashed", condition)
    with pytest.raises(ConstraintViolationError, match="violate the new"):
        opened.addConstraint("hashed", "base64(string(id)) < '0'")
    with pytest.raises(DeltaAnalysisError, match="no_such_function"):
        opened.addConstraint("hashed", "no_such_function(id) = 1")
    with pytest.raises(DeltaAnalysisError, match="not a condition on the rows"):
        opened.addConstraint("hashed", "hex(id, id) = 1")
    before = opened.log.update().version
    assert opened.addConstraint("Hashed", f"id < 1000 AND {condition}") == before + 1
    assert opened.log.update().properties.constraints == {"hashed": f"id < 1000 AND {condition}"}
    with pytest.raises(DeltaAnalysisError, match="already exists"):
        opened.addConstraint("hashed", condition)
    with pytest.raises(ConstraintViolationError, match="hashed"):
        delta.write(spark.range(1000, 1001).selectExpr("id", "id AS p")).mode("append").save(table)


def test_rows_that_came_in_while_spark_looked_were_not_checked(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.spark.table.new_constraint import check_new_constraint

    def late(*given: Any) -> None:
        check_new_constraint(*given)
        write_arrow(table, pa.table({"id": [7000], "p": pa.array([0], pa.int64())}), mode="append")

    monkeypatch.setattr("lakelog.spark.table.alteration.check_new_constraint", late)
    with pytest.raises(ConcurrentAppendException):
        delta.DeltaTable.forPath(spark, table).addConstraint("small", "id < 1000")
