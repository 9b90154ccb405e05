"""Commands that need no Spark job, in sessions of both kinds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.alter import add_constraint, set_properties
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError
from lakelog.spark import DeltaTable, read, write
from lakelog.spark.dml import delete_update
from lakelog.spark.dml import without_spark as here
from lakelog.spark.dml.merge import merge_command as merge

VECTORS = {"delta.enableDeletionVectors": "true"}
CHECK_OFF = "spark.databricks.delta.retentionDurationCheck.enabled"


def snapshot(path):
    return DeltaLog.for_table(path).snapshot


def rows(path):
    return {row["id"]: row["name"] for row in snapshot(path).to_arrow().to_pylist()}


def people(path, properties=None):
    """1 to 4 in two files."""
    for ids in ((1, 2), (3, 4)):
        data = {"id": pa.array(ids, pa.int64()), "name": [f"p{i}" for i in ids]}
        given = properties if ids[0] == 1 else None
        write_arrow(path, pa.table(data), mode="append", properties=given)
    return path


@pytest.fixture
def path(tmp_path):
    return people(str(tmp_path / "t ä"))


@pytest.fixture
def done_here(monkeypatch):
    """Which MERGEs this process did by itself."""
    found = []

    def merged(*args):
        answer = here.merged_here(*args)
        found.append(answer is not None)
        return answer

    monkeypatch.setattr(merge, "merged_here", merged)
    return found


@pytest.mark.connect
def test_vacuum_optimize_restore_and_clone(spark, path, tmp_path):
    table = DeltaTable.forPath(spark, path)
    (row,) = table.optimize().executeCompaction().collect()
    assert (row.metrics.numFilesRemoved, row.metrics.numFilesAdded) == (2, 1)
    (row,) = table.restoreToVersion(1).collect()
    assert (row.num_restored_files, row.num_removed_files) == (2, 1)
    assert table.toDF().count() == 4
    copy = table.clone(str(tmp_path / "copy"), isShallow=True)
    assert sorted(r.id for r in copy.toDF().collect()) == [1, 2, 3, 4]
    copy.delete("id = 1")
    first = table.cloneAtVersion(0, str(tmp_path / "first"), isShallow=True)
    assert sorted(r.id for r in first.toDF().collect()) == [1, 2]
    assert rows(path) == {i: f"p{i}" for i in range(1, 5)}

    with pytest.raises(DeltaAnalysisError, match=CHECK_OFF.replace(".", r"\.")):
        table.vacuum(0)
    spark.conf.set(CHECK_OFF, "false")
    try:
        # The compacted file alone: what a shallow clone shows belongs to the newest version.
        assert table.vacuum(0, dryRun=True).count() == 1
        assert table.vacuum(0).count() == 0
    finally:
        spark.conf.unset(CHECK_OFF)
    assert len(list(Path(path).glob("*.parquet"))) == 2
    assert copy.toDF().count() == 3
    assert table.toDF().count() == 4
    assert [r.operation for r in table.history(1).collect()] == ["VACUUM END"]


@pytest.mark.connect(properties=(VECTORS,))
@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copies", "vectors"])
def test_small_merges_are_done_in_this_process(spark, tmp_path, properties, done_here):
    path = people(str(tmp_path / "u"), properties)
    table = DeltaTable.forPath(spark, path)
    few = spark.createDataFrame([(1, "one"), (9, "nine")], "id BIGINT, name STRING")
    found = (
        table.alias("t")
        .merge(few.alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"name": "concat(t.name, s.name)"})
        .whenNotMatchedInsertAll()
        .execute()
    )
    assert found.collect()[0].asDict() == {
        "num_affected_rows": 2,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
        "num_inserted_rows": 1,
    }
    assert rows(path)[1] == "p1one"
    assert done_here == [True]

    # A plan that is not cheap is evaluated once, and then fetched; without any alias.
    many = spark.range(2, 4).groupBy("id").agg(sf.lit("grouped").alias("text"))
    table.merge(many.withColumnRenamed("id", "key"), "id = key").whenMatchedUpdate(
        set={"name": "text"}
    ).execute()
    assert done_here == [True, True]
    assert rows(path) == {1: "p1one", 2: "grouped", 3: "grouped", 4: "p4", 9: "nine"}
    entry = DeltaLog.for_table(path).history(1)[0]
    assert entry.metrics["numSourceRows"] == "2"
    assert entry.metrics["numTargetRowsMatchedUpdated"] == "2"


@pytest.mark.connect
def test_what_only_spark_understands_is_left_to_spark(spark, path, done_here):
    table = DeltaTable.forPath(spark, path).alias("t")
    source = spark.createDataFrame([(1, "one"), (2, "two")], "id BIGINT, name STRING").alias("s")
    clause = {"name": "transform(array(s.name), x -> upper(x))[0]"}
    table.merge(source, "t.id = s.id").whenMatchedUpdate(set=clause).execute()
    assert rows(path)[1] == "ONE"
    table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"name": sf.col("s.name")}).execute()
    assert rows(path)[1] == "one"
    # Rules that only Spark evaluates.
    only_spark = "exists(array(id), x -> x > 0)"
    DeltaTable.forPath(spark, path).addConstraint("only_spark", only_spark)
    table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"name": "'ruled'"}).execute()
    assert rows(path)[1] == "ruled"
    assert done_here == [False, True, False]  # the Column has a text
    DeltaTable.forPath(spark, path).update("id = 4", {"name": "'set'"})
    assert rows(path)[4] == "set"
    with pytest.raises(ConstraintViolationError, match="only_spark"):
        DeltaTable.forPath(spark, path).update("id = 4", {"id": "-id"})
    before = snapshot(path).version
    for condition, error in (
        ("t.id = s.nope", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        ("t.id = x.id", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        ("id = s.id", "AMBIGUOUS"),
        ("t.id <= s.id", "DELTA_MULTIPLE_SOURCE_ROW"),
    ):
        merging = table.merge(source, condition).whenMatchedUpdate(set={"name": "s.name"})
        with pytest.raises((DeltaAnalysisError, AnalysisException), match=error):
            merging.execute()
    assert snapshot(path).version == before


@pytest.mark.connect
def test_rules_of_the_session_that_lakelog_does_not_know_are_sparks(spark, path, done_here):
    source = spark.createDataFrame([(1, "one")], "id BIGINT, name STRING").alias("s")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        table = DeltaTable.forPath(spark, path).alias("t")
        clause = {"name": "CAST(1 / (t.id - 1) AS STRING)"}
        table.merge(source, "t.id = s.id").whenMatchedUpdate(set=clause).execute()
        assert rows(path)[1] is None
        table.update("id = 2", {"name": "CAST(1 / (id - 2) AS STRING)"})
        assert rows(path)[2] is None
        table.delete("1 / (id - 3) IS NULL")
        assert sorted(rows(path)) == [1, 2, 4]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert not done_here


def test_large_ones_are_jobs(spark, path, done_here, monkeypatch):
    monkeypatch.setattr(here, "HERE_BYTES", -1)
    source = spark.createDataFrame([(1, "one"), (3, "x")], "id BIGINT, name STRING").alias("s")
    table = DeltaTable.forPath(spark, path).alias("t")
    table.merge(source, "t.id = s.id").whenMatchedDelete().execute()
    assert not any(done_here)
    assert sorted(rows(path)) == [2, 4]
    monkeypatch.setattr(
        delete_update, "change_few_rows", lambda *_args, **_more: pytest.fail("done here")
    )
    table.delete("id = 2")
    assert sorted(rows(path)) == [4]


def test_an_alias_like_a_struct_of_the_source_is_told_apart_by_spark(spark, path, done_here):
    source = spark.sql("SELECT named_struct('id', 1L) AS s, 'one' AS name").alias("s")
    table = DeltaTable.forPath(spark, path).alias("t")
    table.merge(source, "t.id = s.s.id").whenMatchedUpdate(set={"name": "s.name"}).execute()
    assert not done_here
    assert rows(path)[1] == "one"
    set_properties(path, {"delta.appendOnly": "true"})
    add_constraint(path, "short", "length(name) < 4")
    there = set(Path(path).glob("*.parquet"))
    with pytest.raises(ConstraintViolationError, match="short"):
        table.merge(
            spark.sql("SELECT 7L AS id, 'long' AS name").alias("n"), "t.id = n.id"
        ).whenNotMatchedInsertAll().execute()
    assert set(Path(path).glob("*.parquet")) == there


@pytest.mark.parametrize("loses", ["true", "false"])
def test_decimals_have_the_digits_that_the_session_gives_them(spark, tmp_path, loses):
    key = "spark.sql.decimalOperations.allowPrecisionLoss"
    path = str(tmp_path / "t")
    spark.conf.set(key, loses)
    try:
        rows = spark.sql("SELECT CAST(1 AS DECIMAL(38, 18)) AS a, CAST(0 AS DECIMAL(38, 28)) AS b")
        write(rows).save(path)
        one = "CAST(1 AS DECIMAL(38, 18))"
        wanted = spark.sql(f"SELECT CAST({one} / {one} / 3 AS DECIMAL(38, 28)) AS b")
        DeltaTable.forPath(spark, path).update(set={"b": "a / a / 3"})
        assert read(spark).load(path).select("b").collect() == wanted.collect()
    finally:
        spark.conf.unset(key)
