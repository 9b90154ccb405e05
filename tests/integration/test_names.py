"""Tables by their names, in the catalog in memory: `enable`'s methods and lakelog's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

import lakelog.spark as delta
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from lakelog.spark.names import lookup
from lakelog.spark.names.lookup import find
from lakelog.spark.names.plain import plain_sql
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def named(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """An enabled session with a database of its own as the current one."""
    delta.enable(spark)
    spark.sql(f"CREATE DATABASE names_db LOCATION '{tmp_path / 'db'}'")
    spark.catalog.setCurrentDatabase("names_db")
    yield spark
    spark.catalog.setCurrentDatabase("default")
    spark.sql("DROP DATABASE names_db CASCADE")
    delta.disable(spark)


def rows(spark: SparkSession, count: int = 4) -> DataFrame:
    return spark.range(count).selectExpr("id", "id % 2 AS p")


def operations(spark: SparkSession, name: str) -> list[str]:
    history = delta.DeltaTable.forName(spark, name).history()
    return [row.operation for row in history.orderBy("version").collect()]


def content(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


def table_name(spark: SparkSession) -> str:
    detail = delta.DeltaTable.forName(spark, "t").detail().collect()[0]
    name: str = detail.name
    return name


@pytest.mark.connect
def test_save_as_table_and_what_reads_it(named: SparkSession, tmp_path: Path) -> None:
    frame = rows(named)
    frame.write.format("delta").partitionBy("p").saveAsTable("t")
    entry = find(named, "names_db.T")
    assert entry is not None
    assert (entry.managed, entry.location) == (True, str(tmp_path / "db" / "t"))
    frame.write.format("delta").mode("append").saveAsTable("names_db.t")
    frame.write.format("delta").mode("ignore").saveAsTable("t")
    assert named.table("spark_catalog.names_db.t").count() == 8
    assert named.read.option("versionAsOf", 0).table("t").count() == 4
    assert delta.read(named).where("p = 1").table("t").count() == 4
    with pytest.raises(TableExistsError, match="DELTA_TABLE_ALREADY_EXISTS"):
        frame.write.format("delta").saveAsTable("t")
    with pytest.raises(DeltaAnalysisError, match="DELTA_TABLE_LOCATION_MISMATCH"):
        frame.write.format("delta").mode("append").option("path", str(tmp_path)).saveAsTable("t")
    frame.write.format("delta").mode("overwrite").saveAsTable("t")
    assert content(named, "t") == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert operations(named, "t") == ["CREATE TABLE AS SELECT", "WRITE", "WRITE"]
    # Without a format it stays what it is, whatever the default is.
    frame.write.mode("overwrite").saveAsTable("t")
    frame.writeTo("t").createOrReplace()
    assert operations(named, "t")[3:] == ["WRITE", "CREATE OR REPLACE TABLE AS SELECT"]
    assert table_name(named) == "spark_catalog.names_db.t"
    named.sql("DROP TABLE t")
    assert not (tmp_path / "db" / "t").exists()
    with pytest.raises(TableNotFoundError, match="DELTA_MISSING_DELTA_TABLE"):
        delta.DeltaTable.forName(named, "t")


def test_an_external_table_keeps_its_folder(named: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "a b%20ü'x")
    delta.write(rows(named)).option("path", path).saveAsTable("e")
    delta.write(rows(named)).mode("append").option("path", path).saveAsTable("e")
    entry = find(named, "e")
    assert entry is not None
    assert (entry.managed, entry.location) == (False, path)
    assert named.table("e").count() == 8
    assert named.catalog.createTable("f", path=path, source="delta").count() == 8
    named.sql("DROP TABLE e")
    assert named.table("f").count() == 8


def test_another_session_uses_and_drops_what_it_did_not_make(
    named: SparkSession, classic_spark: SparkSession, tmp_path: Path
) -> None:
    rows(named).write.format("delta").saveAsTable("t")
    other = classic_spark.newSession()
    delta.enable(other)
    delta.register(other)
    assert other.read.format("lakelog").load(str(tmp_path / "db" / "t")).count() == 4
    assert other.catalog.tableExists("names_db.t")
    assert other.table("names_db.t").count() == 4
    other.sql("DROP TABLE names_db.t")
    assert find(named, "t") is None
    assert not (tmp_path / "db" / "t").exists()


def test_a_session_that_was_not_enabled_itself_drops_a_table(
    named: SparkSession, classic_spark: SparkSession, tmp_path: Path
) -> None:
    rows(named).write.format("delta").saveAsTable("t")
    # `enable` holds for it, too, but only the session that was given knows the format.
    classic_spark.newSession().sql("DROP TABLE IF EXISTS names_db.t")
    assert find(named, "t") is None
    assert not (tmp_path / "db" / "t").exists()


@pytest.mark.connect
def test_insert_into_goes_by_position(named: SparkSession) -> None:
    rows(named).write.format("delta").saveAsTable("t")
    more = named.sql("SELECT CAST(7 AS INT) AS p, 8L AS id")
    more.write.insertInto("t")
    assert (7, 8) in content(named, "t")
    more.write.mode("overwrite").insertInto("t")
    assert content(named, "t") == [(7, 8)]
    more.write.insertInto("t", overwrite=False)
    assert content(named, "t") == [(7, 8), (7, 8)]
    with pytest.raises(SchemaMismatchError, match="ARITY"):
        named.range(1).write.insertInto("t")


@pytest.mark.connect
def test_every_verb_of_write_to(named: SparkSession, tmp_path: Path) -> None:
    frame, path = rows(named), str(tmp_path / "w")
    new = frame.writeTo("w").using("delta").option("path", path).partitionedBy(sf.col("p"))
    new.tableProperty("delta.appendOnly", "false").tableProperty("a", "b").create()
    table = delta.DeltaTable.forName(named, "w")
    detail = table.detail().collect()[0]
    assert (detail.partitionColumns, detail.properties["a"]) == (["p"], "b")
    with pytest.raises(TableExistsError):
        frame.writeTo("w").using("delta").create()
    frame.where("id = 0").writeTo("w").append()
    frame.where("id = 1").writeTo("w").overwrite(sf.col("p") == 1)
    assert content(named, "w") == [(0, 0), (0, 0), (1, 1), (2, 0)]
    frame.where("id = 2").writeTo("w").overwrite(sf.col("id") == 2)
    assert content(named, "w") == [(0, 0), (0, 0), (1, 1), (2, 0)]
    before = table.log.update().version
    with pytest.raises(ConstraintViolationError, match="DELTA_REPLACE_WHERE_MISMATCH"):
        frame.writeTo("w").overwrite(sf.col("p") == 1)
    assert table.log.update().version == before
    frame.where("id = 3").writeTo("w").overwritePartitions()
    assert content(named, "w") == [(0, 0), (0, 0), (2, 0), (3, 1)]
    frame.selectExpr("id AS x").writeTo("w").using("delta").replace()
    assert named.table("w").columns == ["x"]
    assert "a" not in table.detail().collect()[0].properties
    frame.writeTo("w").using("delta").clusterBy("id").createOrReplace()
    assert table.detail().collect()[0].clusteringColumns == ["id"]
    assert operations(named, "w") == [
        "CREATE TABLE AS SELECT",
        *["WRITE"] * 4,
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
    ]
    with pytest.raises(TableNotFoundError, match="DELTA_CANNOT_REPLACE_MISSING_TABLE"):
        frame.writeTo("none").using("delta").replace()
    # No table, so that it is none of ours: Spark says so.
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        frame.writeTo("none").append()
    with pytest.raises(TableNotFoundError, match="DELTA_TABLE_NOT_FOUND"):
        delta.write_to(frame, "none").append()
    # A classic writer refuses it itself, Connect's leaves it to the server.
    refused = (AnalysisException, DeltaAnalysisError)
    with pytest.raises(refused, match=r"(?i)partition[ _]transform"):
        frame.writeTo("y").using("delta").partitionedBy(sf.expr("id + 1")).create()
    with pytest.raises(DeltaAnalysisError, match="PARTITION_TRANSFORM"):
        delta.write_to(frame, "y").partitionedBy(sf.expr("id + 1")).create()
    assert find(named, "y") is None


@pytest.mark.connect
def test_merge_into(named: SparkSession) -> None:
    rows(named).write.format("delta").saveAsTable("t")
    source = named.range(3, 6).selectExpr("id", "9L AS p").alias("s")
    merge = source.mergeInto("t", sf.expr("t.id = s.id"))
    merge.whenMatched(sf.expr("t.p = 1")).update({"p": sf.expr("s.p + 1")})
    merge.whenNotMatched().insertAll().whenNotMatchedBySource(sf.expr("t.id = 0")).delete()
    merge.merge()
    assert content(named, "t") == [(1, 1), (2, 0), (3, 10), (4, 9), (5, 9)]


def test_builders_make_names(named: SparkSession, tmp_path: Path) -> None:
    made = delta.DeltaTable.create(named).tableName("b").addColumn("id", "INT").comment("hi")
    assert made.execute().toDF().columns == ["id"]
    again = delta.DeltaTable.createIfNotExists(named).tableName("b").addColumn("x", "INT")
    assert again.execute().toDF().columns == ["id"]
    with pytest.raises(TableExistsError):
        delta.DeltaTable.create(named).tableName("b").addColumn("x", "INT").execute()
    replaced = delta.DeltaTable.createOrReplace(named).tableName("b").addColumn("x", "INT")
    assert replaced.execute().toDF().columns == ["x"]
    with pytest.raises(TableNotFoundError, match="DELTA_CANNOT_REPLACE_MISSING_TABLE"):
        delta.DeltaTable.replace(named).tableName("none").addColumn("x", "INT").execute()
    path = str(tmp_path / "there")
    delta.write(rows(named)).save(path)
    there = delta.DeltaTable.create(named).location(path)
    assert there.tableName("there").execute().toDF().count() == 4
    other = delta.DeltaTable.create(named).location(path).addColumn("other", "INT")
    with pytest.raises(DeltaAnalysisError, match="DELTA_CREATE_TABLE_SCHEME_MISMATCH"):
        other.tableName("there2").execute()
    assert find(named, "there2") is None


@pytest.mark.connect
def test_a_name_is_as_it_was_after_a_failure(named: SparkSession, tmp_path: Path) -> None:
    bad = named.range(1).selectExpr("id", "raise_error('boom') AS x")
    with pytest.raises(Exception, match="boom"):
        bad.selectExpr("id", "CAST(x AS STRING) x").write.format("delta").saveAsTable("t")
    assert find(named, "t") is None
    assert not (tmp_path / "db" / "t").exists()
    full = tmp_path / "db" / "full"
    full.mkdir(parents=True)
    (full / "x").write_text("x")
    with pytest.raises(DeltaAnalysisError, match="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"):
        rows(named).write.format("delta").saveAsTable("full")
    rows(named).write.format("parquet").saveAsTable("other")
    with pytest.raises(DeltaAnalysisError, match="table of the format parquet"):
        rows(named).write.format("delta").mode("overwrite").saveAsTable("other")
    assert named.table("other").count() == 4
    # As a process that was killed between the two steps leaves it.
    delta.write(rows(named)).saveAsTable("killed")
    entry = find(named, "killed")
    assert entry is not None
    assert entry.location is not None
    for each in sorted((tmp_path / "db" / "killed").rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    with pytest.raises(TableNotFoundError, match="DROP TABLE killed"):
        named.table("killed")
    rows(named).write.format("delta").saveAsTable("killed")
    assert named.table("killed").count() == 4


@pytest.mark.connect
def test_other_formats_and_views_are_spark_s_own(named: SparkSession) -> None:
    rows(named).write.format("delta").saveAsTable("t")
    rows(named).write.format("parquet").saveAsTable("q")
    rows(named).write.insertInto("q")
    rows(named).writeTo("q2").using("parquet").create()
    assert [named.table(name).count() for name in ("q", "q2")] == [8, 4]
    named.range(1).createOrReplaceTempView("t")
    assert named.table("t").count() == 1
    assert named.table("names_db.t").count() == 4
    with pytest.raises(DeltaAnalysisError, match="temporary view"):
        delta.DeltaTable.forName(named, "t")
    named.catalog.dropTempView("t")
    assert named.table("t").count() == 4
    named.sql("CREATE VIEW names_view AS SELECT * FROM q")
    assert named.table("names_view").count() == 8
    named.catalog.setCurrentDatabase("default")
    with pytest.raises(TableNotFoundError, match=r"mean names_db\.t|DELTA_MISSING_DELTA_TABLE"):
        delta.DeltaTable.forName(named, "t")


@pytest.mark.connect
def test_an_entry_has_no_columns_that_could_grow_old(named: SparkSession, tmp_path: Path) -> None:
    rows(named).write.format("delta").partitionBy("p").saveAsTable("t")
    named.sql(f"CREATE TABLE e (id INT NOT NULL, p INT) USING delta LOCATION '{tmp_path / 'e'}'")
    named.sql("ALTER TABLE t ADD COLUMNS (z INT COMMENT 'new')")
    more = named.range(1).selectExpr("id", "id AS p", "'x' AS y")
    more.write.option("mergeSchema", "true").mode("append").saveAsTable("t")
    assert [plain_sql(named, f"DESCRIBE TABLE {t}").collect() for t in ("t", "e")] == [[], []]
    listed = named.catalog.listColumns("names_db.t")
    assert [(c.name, c.dataType, c.description, c.isPartition) for c in listed] == [
        ("id", "bigint", None, False),
        ("p", "bigint", None, True),
        ("z", "int", "new", False),
        ("y", "string", None, False),
    ]
    assert [c.nullable for c in named.catalog.listColumns("e")] == [False, True]
    rows(named).write.format("parquet").saveAsTable("q")
    assert [c.name for c in named.catalog.listColumns("q")] == ["id", "p"]


def test_computed_names_and_statements(named: SparkSession) -> None:
    rows(named).write.format("delta").saveAsTable("t")
    named.sql("DELETE FROM IDENTIFIER(:d || '.t') WHERE id = :i", {"d": "names_db", "i": 0})
    named.sql("UPDATE IDENTIFIER(?) SET p = ? WHERE id = 1", ["t", 7])
    assert named.sql("SELECT names_db.t.p FROM t WHERE names_db.t.p = 7").count() == 1
    named.sql("UPDATE t SET names_db.t.p = names_db.t.p + 1 WHERE names_db.t.p = 7")
    named.sql(
        "MERGE INTO names_db.t USING spark_catalog.names_db.t AS s ON names_db.t.id = s.id + 100 "
        "WHEN NOT MATCHED BY SOURCE AND names_db.t.p = 8 THEN UPDATE SET names_db.t.p = 7"
    )
    assert named.sql("SELECT p FROM IDENTIFIER('t') WHERE id = 1").first()[0] == 7  # type: ignore[index]
    named.sql("DECLARE OR REPLACE VARIABLE most BIGINT")
    named.sql("EXECUTE IMMEDIATE 'SELECT max(id) FROM t' INTO most")
    named.sql("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = ?' USING most")
    last = delta.sql_script(
        named, "INSERT INTO t VALUES (:i, 9);; -- ;\nSELECT id FROM t ORDER BY id", {"i": 30}
    )
    assert last is not None
    assert [row.id for row in last.collect()] == [1, 2, 30]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        named.sql("SELECT * FROM IDENTIFIER('nothing')")
    named.sql("DROP TEMPORARY VARIABLE most")


def test_a_lasting_view_for_sessions_that_do_not_call_lakelog(
    named: SparkSession, classic_spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "flights")
    rows(named).withColumnRenamed("p", "month").write.format("delta").save(path)
    named.sql(f"CREATE TABLE flights USING delta LOCATION '{path}'")
    other = classic_spark.newSession()
    delta.register(other)
    page = (Path(__file__).parents[2] / "docs" / "names-in-the-catalog.md").read_text("utf-8")
    block = re.findall(r"^```sql\n(.*?)^```$", page, re.M | re.S)[0]
    plain_sql(other, "USE names_db")
    made, read = block.split(";")[:2]
    named.sql(made)
    assert plain_sql(other, read).count() == 2
    named.sql("INSERT INTO flights TABLE flights")
    assert plain_sql(other, read).count() == 4


def test_the_catalog_is_asked_once(named: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(named).write.format("delta").saveAsTable("t")
    named.table("t")
    asked: list[str] = []

    def noted(spark: SparkSession, text: str) -> DataFrame:
        asked.append(text)
        return plain_sql(spark, text)

    monkeypatch.setattr(lookup, "plain_sql", noted)
    for _ in range(3):
        named.table("t").count()
        named.sql("SELECT count(*) FROM t").collect()
    assert asked == []
    named.sql("ALTER TABLE t ADD COLUMNS (z INT)")
    assert named.table("t").columns == ["id", "p", "z"]
    assert len(asked) == 1


def test_streams_by_name(named: SparkSession, tmp_path: Path) -> None:
    rows(named).write.format("delta").saveAsTable("source")
    frame = named.readStream.table("source")
    writer = frame.writeStream.format("delta").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    to_end(lambda: writer.toTable("target"))
    assert named.table("target").count() == 4
    assert operations(named, "target") == ["CREATE TABLE", "STREAMING UPDATE"]


@pytest.mark.connect
def test_a_table_gets_another_name(named: SparkSession, tmp_path: Path) -> None:
    rows(named).write.format("delta").saveAsTable("managed")
    rows(named).write.format("delta").option("path", str(tmp_path / "e")).saveAsTable("external")

    named.sql("ALTER TABLE managed RENAME TO moved")
    named.sql("ALTER TABLE names_db.external RENAME TO names_db.kept")

    assert named.table("moved").count() == named.table("kept").count() == 4
    moved, kept = find(named, "moved"), find(named, "kept")
    assert moved is not None
    assert kept is not None
    assert (moved.managed, moved.location) == (True, str(tmp_path / "db" / "moved"))
    assert (kept.managed, kept.location) == (False, str(tmp_path / "e"))
    named.sql("INSERT INTO moved VALUES (9, 9)")
    assert operations(named, "moved") == ["CREATE TABLE AS SELECT", "WRITE"]
    for name in ("managed", "external"):
        with pytest.raises(TableNotFoundError, match="DELTA_MISSING_DELTA_TABLE"):
            delta.DeltaTable.forName(named, name)
    with pytest.raises(TableExistsError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        named.sql("ALTER TABLE moved RENAME TO kept")
    for new in ("other.moved", "a.b.c"):
        with pytest.raises(DeltaAnalysisError, match=r"stays in its database|another catalog"):
            named.sql(f"ALTER TABLE moved RENAME TO {new}")
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_OPERATION_NOT_ALLOWED.*for a path"):
        named.sql(f"ALTER TABLE delta.`{tmp_path / 'e'}` RENAME TO other")
    assert named.table("moved").count() == 5


@pytest.mark.connect
def test_a_name_gets_another_table(named: SparkSession, tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    rows(named).write.format("delta").save(second)
    rows(named, 2).write.format("delta").option("path", first).saveAsTable("t")

    named.sql(f"ALTER TABLE t SET LOCATION '{second}'")

    assert named.table("t").count() == 4
    named.sql("DELETE FROM t WHERE id = 0")
    assert delta.read(named).load(first).count() == 2
    assert delta.read(named).load(second).count() == 3
    entry = find(named, "t")
    assert entry is not None
    assert entry.location == second
    with pytest.raises(TableNotFoundError, match="there is no Delta table"):
        named.sql(f"ALTER TABLE t SET LOCATION '{tmp_path / 'nothing'}'")
    named.sql(f"ALTER TABLE delta.`{first}` ADD COLUMN more INT")
    with pytest.raises(DeltaAnalysisError, match="DELTA_SET_LOCATION_SCHEMA_MISMATCH"):
        named.sql(f"ALTER TABLE t SET LOCATION '{first}'")
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_OPERATION_NOT_ALLOWED.*for a path"):
        named.sql(f"ALTER TABLE delta.`{first}` SET LOCATION '{second}'")
    assert named.table("t").count() == 3
