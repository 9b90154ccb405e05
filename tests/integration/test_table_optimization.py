"""`DeltaTable.optimize` on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.errors import DataFileMissingError, DeltaAnalysisError, InvalidPredicateError
from lakelog.spark.dml import delete_update
from lakelog.spark.dml import without_spark as here
from lakelog.spark.replay import bins
from lakelog.spark.session.temporary_confs import temporary_confs
from lakelog.spark.workers.executor_tasks import run_on_executors

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakelog.core import OptimizeProgress

ENABLED = "spark.databricks.delta.optimizeWrite.enabled"
REPARTITION = "spark.databricks.delta.merge.repartitionBeforeWrite.enabled"
pytestmark = pytest.mark.connect


def test_optimize_answers_with_delta_sparks_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for _ in range(3):
        rows = spark.range(12).selectExpr("id", "id % 2 AS p", "id % 3 AS q").coalesce(1)
        delta.write(rows).mode("append").partitionBy("p", "q").save(path)
    table = delta.DeltaTable.forPath(spark, path)

    answer = table.optimize().where("p = 0").where("q IN (0, 1)").executeCompaction()
    (row,) = answer.collect()
    assert row.path == path
    assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (2, 6)
    assert row.metrics.filesAdded.totalFiles == 2
    assert row.metrics.zOrderStats is None

    (row,) = table.optimize().executeZOrderBy(["id"]).collect()
    assert row.metrics.numFilesAdded == 6
    assert row.metrics.zOrderStats.mergedFiles.num == row.metrics.numFilesRemoved == 14
    (row,) = table.optimize().executeZOrderBy("id").collect()
    assert row.metrics.numFilesAdded == 0
    assert table.toDF().count() == 36

    with pytest.raises(InvalidPredicateError, match="non-partition column"):
        table.optimize().where("id = 1").executeCompaction()
    with pytest.raises(DeltaAnalysisError, match="name of a column"):
        table.optimize().executeZOrderBy()


def test_executors_optimize_what_is_large(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bins, "_HERE_BYTES", -1)
    path = str(tmp_path / "t")
    vectors = {"delta.enableDeletionVectors": "true"}
    for first in (0, 20, 40):
        ids = range(first, first + 20)
        data = pa.table({"id": ids, "p": [f"ä/{i % 2}" for i in ids]})
        new = not first
        write_arrow(
            path,
            data,
            mode="append",
            partition_by=["p"] if new else None,
            properties=vectors if new else None,
        )
    delete_rows(path, "id % 7 = 3")
    table = delta.DeltaTable.forPath(spark, path)
    before = sorted(row.id for row in table.toDF().collect())
    (row,) = table.optimize().executeCompaction().collect()
    assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (2, 6)
    assert row.metrics.deletionVectorStats.numDeletionVectorsRemoved == 6
    (row,) = table.optimize().executeZOrderBy("id").collect()
    assert row.metrics.numFilesAdded == 2
    assert sorted(row.id for row in table.toDF().collect()) == before
    lost = DeltaLog.for_table(path).snapshot.files()[0].path
    (tmp_path / "t" / unquote(lost)).unlink()
    write_arrow(path, pa.table({"id": [100], "p": ["ä/0"]}), mode="append")
    write_arrow(path, pa.table({"id": [101], "p": ["ä/1"]}), mode="append")
    there = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(DataFileMissingError):
        table.optimize().executeCompaction()
    # What another task wrote meanwhile is VACUUM's.
    assert there <= set(tmp_path.rglob("*.parquet"))


def test_whatever_rewrites_large_bins_has_executors_do_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bins, "_HERE_BYTES", -1)
    runs: list[int] = []

    def counted(session: SparkSession, run: Any, tasks: Any) -> Any:
        runs.append(len(tasks))
        return run_on_executors(session, run, tasks)

    monkeypatch.setattr(bins, "run_on_executors", counted)
    auto, path = "spark.databricks.delta.autoCompact.", str(tmp_path / "t")
    vectors = {"delta.enableDeletionVectors": "true"}
    with temporary_confs(spark, {f"{auto}enabled": "true", f"{auto}minNumFiles": "2"}):
        rows = spark.range(0, 4000, 1, 2)
        delta.write(rows).options(**vectors).save(path)
        assert runs == [1]  # after a write
        delta.DeltaTable.forPath(spark, path).update("id % 2 = 0", {"id": "id + 10000"})
        assert runs == [1, 1]  # after a small command, which has no Spark job of its own
    reports: list[OptimizeProgress] = []
    delta.DeltaTable.forPath(spark, path).delete("id % 2 = 1")
    delta.sql(spark, f"REORG TABLE delta.`{path}` APPLY (PURGE)")
    assert runs == [1, 1, 1]
    table = delta.DeltaTable.forPath(spark, path)
    table.optimize(progress=reports.append).executeZOrderBy("id")
    assert runs == [1, 1, 1, 1]
    assert [(each.bins, each.bins_done) for each in reports] == [(1, 0), (1, 1), (1, 1)]
    assert [each.version for each in reports] == [None, None, table.log.update().version]
    phases: list[str] = []
    table.vacuum(progress=lambda each: phases.append(each.text))
    assert "listing" in phases
    assert sorted(row.id for row in table.toDF().collect()) == list(range(10000, 14000, 2))


@pytest.mark.one_day_in(3)
@pytest.mark.connect(way=("native",))
@pytest.mark.parametrize("way", ["arrow", "native"])
@pytest.mark.parametrize(
    ("properties", "conf", "options", "few"),
    [
        ({}, {}, {}, False),
        ({"delta.autoOptimize.optimizeWrite": "true"}, {}, {}, True),
        ({"delta.autoOptimize": "true"}, {ENABLED: "false"}, {}, False),
        ({}, {ENABLED: "true"}, {}, True),
        ({}, {ENABLED: "true"}, {"optimizeWrite": "false"}, False),
        ({}, {}, {"optimizeWrite": True}, True),
    ],
)
def test_optimized_writes_make_few_files(
    spark: SparkSession,
    tmp_path: Path,
    way: str,
    properties: dict[str, str],
    conf: dict[str, str],
    options: dict[str, Any],
    few: bool,
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 4000, 1, 4).selectExpr("id", "id % 3 AS `p.q`")
    with temporary_confs(spark, {**conf, "spark.lakelog.write.path": way}):
        writer = delta.write(rows).partitionBy("p.q").options(**properties, **options)
        writer.save(path)
    snapshot = DeltaLog.for_table(path).update()
    assert snapshot.num_files == (3 if few else 12)
    assert delta.read(spark).load(path).where("`p.q` = 1").count() == 1333


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize(
    ("properties", "conf", "most"),
    [
        ({}, {}, 3),
        ({}, {REPARTITION: "false"}, None),
        ({"delta.autoOptimize.optimizeWrite": "true"}, {REPARTITION: "false"}, 3),
        ({}, {REPARTITION: "false", ENABLED: "true"}, 3),
    ],
)
def test_a_merge_into_partitions_makes_few_files(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    properties: dict[str, str],
    conf: dict[str, str],
    most: int | None,
) -> None:
    monkeypatch.setattr(here, "HERE_BYTES", -1)
    path = str(tmp_path / "t")
    properties = {**properties, "delta.enableChangeDataFeed": "true"}
    create_table(path, "id BIGINT, p BIGINT", partition_by=["p"], properties=properties)
    ids = range(300)
    write_arrow(path, pa.table({"id": ids, "p": [i % 3 for i in ids]}), mode="append")
    source = spark.range(0, 600, 1, 4).selectExpr("id", "id % 3 AS p").alias("s")
    with temporary_confs(spark, conf):
        merge = delta.DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    log = DeltaLog.for_table(path)
    metrics = next(iter(log.history(1))).metrics or {}
    assert metrics["numTargetRowsUpdated"] == metrics["numTargetRowsInserted"] == "300"
    files = log.update().num_files, int(metrics["numTargetChangeFilesAdded"])
    assert files == (most, most) if most else min(files) > 6
    assert log.snapshot.to_arrow().sort_by("id")["id"].to_pylist() == list(range(600))


@pytest.mark.parametrize("optimized", [False, True])
def test_optimized_writes_are_for_updates_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimized: bool
) -> None:
    monkeypatch.setattr(here, "HERE_BYTES", -1)
    monkeypatch.setattr(delete_update, "_FEW_ROWS", -1)
    path = str(tmp_path / "t")
    create_table(path, "id BIGINT, p BIGINT", partition_by=["p"])
    for first in range(0, 400, 100):
        ids = range(first, first + 100)
        write_arrow(path, pa.table({"id": ids, "p": [i % 2 for i in ids]}), mode="append")
    # A task for each file.
    conf = {"spark.sql.files.openCostInBytes": "512m", ENABLED: str(optimized).lower()}
    with temporary_confs(spark, conf):
        delta.DeltaTable.forPath(spark, path).update(set={"id": "id + 1"})
    snapshot = DeltaLog.for_table(path).update()
    assert snapshot.num_files == (2 if optimized else 8)
    assert sorted(snapshot.to_arrow()["id"].to_pylist()) == list(range(1, 401))


def test_a_save_compacts_where_the_session_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    auto = "spark.databricks.delta.autoCompact."
    with temporary_confs(spark, {f"{auto}enabled": "true", f"{auto}minNumFiles": "4"}):
        rows = spark.range(0, 4000, 1, 4)
        delta.write(rows).save(path)
    snapshot = DeltaLog.for_table(path).update()
    assert (snapshot.version, snapshot.num_files) == (1, 1)
    assert delta.read(spark).load(path).count() == 4000
