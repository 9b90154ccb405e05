"""What Delta's own documentation shows, by meaning and in other words, through `enable`.

One test for each of its pages: quick start, batches, streams, row changes, change data feed,
utility commands, constraints, concurrency. The rest of their examples is in
`test_delta_documentation_more.py`, and the list of all in `support.documented`. `{t}` in a
statement is a table in the test's folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as sf

from lakelog.core import Operation
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    DeltaAnalysisError,
    SchemaMismatchError,
)
from lakelog.spark import DeltaTable
from support.documented import Lake, opened
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def lake(classic_spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    with opened(classic_spark, tmp_path) as lake:
        yield lake


@pytest.mark.one_day_in(2)
def test_quick_start(lake: Lake) -> None:
    spark = lake.spark
    spark.range(0, 5).write.format("delta").save(lake.path())
    assert lake.ids() == [0, 1, 2, 3, 4]
    spark.range(5, 10).write.format("delta").mode("overwrite").save(lake.path())

    table = lake.table()
    table.update(condition=sf.expr("id % 2 == 0"), set={"id": sf.expr("id + 100")})
    table.delete(condition=sf.expr("id % 2 == 0"))
    new = spark.range(0, 20)
    (
        table.alias("old")
        .merge(new.alias("new"), "old.id = new.id")
        .whenMatchedUpdate(set={"id": sf.col("new.id")})
        .whenNotMatchedInsert(values={"id": sf.col("new.id")})
        .execute()
    )
    assert table.toDF().count() == 20
    assert lake.ids(versionAsOf=0) == [0, 1, 2, 3, 4]

    lake("CREATE TABLE {copy} USING delta AS SELECT col1 AS id FROM VALUES 0, 1, 2, 3, 4")
    lake("INSERT OVERWRITE {copy} SELECT col1 AS id FROM VALUES 5, 6, 7, 8, 9")
    lake("UPDATE {copy} SET id = id + 100 WHERE id % 2 == 0")
    lake("DELETE FROM {copy} WHERE id % 2 == 0")
    assert lake.ids("copy") == [5, 7, 9]
    assert lake("SELECT * FROM {copy} VERSION AS OF 0").count() == 5

    rows = lake.stream().selectExpr("id AS value")
    writer = rows.writeStream.format("delta").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", lake.path("cp"))
    to_end(lambda: writer.start(lake.path("out")))
    assert lake.read("out").count() == 20


@pytest.mark.one_day_in(2, 1)
def test_batches(lake: Lake) -> None:
    spark = lake.spark
    lake("CREATE OR REPLACE TABLE people (id INT, name STRING, day DATE) USING delta")
    lake("CREATE TABLE IF NOT EXISTS people (id INT) USING delta")
    lake(
        "CREATE TABLE {t} (id INT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
        "USING delta PARTITIONED BY (day) COMMENT 'events' TBLPROPERTIES ('owner' = 'me')"
    )
    (
        DeltaTable.createOrReplace(spark)
        .tableName("documented.built")
        .addColumn("id", "INT", comment="key")
        .addColumn("twice", "INT", generatedAlwaysAs="id * 2")
        .property("description", "made by a builder")
        .partitionedBy("id")
        .execute()
    )
    spark.sql("INSERT INTO built (id) VALUES (4)")
    assert [tuple(row) for row in spark.table("built").collect()] == [(4, 8)]
    rows = spark.sql("SELECT 1 AS id, 'Ann' AS name, DATE'2026-01-01' AS day")
    rows.write.format("delta").mode("append").saveAsTable("people")
    rows.write.insertInto("people")
    rows.writeTo("people").append()
    assert spark.table("people").count() == spark.read.table("people").count() == 3

    frame = spark.sql("SELECT 1 AS id, TIMESTAMP'2026-01-01 10:00:00' AS at")
    frame.write.format("delta").mode("append").option("userMetadata", "first").save(lake.path())
    lake("INSERT INTO {t} (id, at) VALUES (2, '2026-01-02 10:00:00')")
    replacing = spark.sql("SELECT 9 AS id, TIMESTAMP'2026-01-02 11:00:00' AS at")
    writer = replacing.write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "day = '2026-01-02'").save(lake.path())
    assert lake.ids() == [1, 9]
    dynamic = spark.sql("SELECT 7 AS id, TIMESTAMP'2026-01-01 11:00:00' AS at")
    writer = dynamic.write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(lake.path())
    assert lake.ids() == [7, 9]
    assert lake.ids(versionAsOf=1) == [1]
    at = lake.table().history().where("version = 1").first()
    assert at is not None
    assert at.userMetadata == "first"
    assert lake.ids(timestampAsOf=str(at.timestamp)) == [1]
    assert lake(f"SELECT * FROM delta.`{lake.path()}@v1`").count() == 1

    wider = rows.withColumn("more", sf.lit(1))
    with pytest.raises(SchemaMismatchError):
        wider.write.format("delta").mode("append").saveAsTable("people")
    wider.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("people")
    other = spark.range(2)
    other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(
        "people"
    )
    assert spark.table("people").columns == ["id"]
    for _ in range(2):
        batch = spark.range(1).write.format("delta").mode("append")
        batch.option("txnAppId", "daily").option("txnVersion", 1).saveAsTable("people")
    assert spark.table("people").count() == 3
    lake("ALTER TABLE people ADD COLUMNS (city STRING FIRST)")
    lake("ALTER TABLE people ALTER COLUMN city AFTER id")
    lake("ALTER TABLE people SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake("ALTER TABLE people RENAME COLUMN city TO town")
    lake("ALTER TABLE people DROP COLUMN town")
    lake("ALTER TABLE people SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    lake("ALTER TABLE people ALTER COLUMN id SET DEFAULT 5")
    assert lake("DESCRIBE TABLE people").collect()[0].col_name == "id"
    spark.sql("DROP TABLE people")


@pytest.mark.one_day_in(4, 3)
def test_streams(lake: Lake) -> None:
    spark = lake.spark
    spark.range(4).selectExpr("id", "id % 2 AS p").write.format("delta").save(lake.path())

    run = lake.run
    run(lake.stream(maxFilesPerTrigger=1), "copy")
    run(lake.stream().groupBy("p").count(), "counts", "complete")
    assert (lake.ids("copy"), lake.ids("counts", "count")) == ([0, 1, 2, 3], [2, 2])
    lake("DELETE FROM {t} WHERE id = 3")
    lake("INSERT INTO {t} VALUES (10, 0)")
    run(lake.stream(skipChangeCommits=True), "copy")
    run(lake.stream(startingVersion=2), "since")
    assert (lake.ids("copy"), lake.ids("since")) == ([0, 1, 2, 3, 10], [10])
    query = lake.stream(startingVersion="2").writeStream.option(
        "checkpointLocation", lake.path("n")
    )
    query = query.trigger(availableNow=True)
    to_end(lambda: query.toTable("events"))
    assert spark.readStream.table("events").isStreaming
    assert spark.table("events").count() == 1


@pytest.mark.one_day_in(2, 1)
def test_row_changes(lake: Lake) -> None:
    lake("CREATE TABLE {t} (id INT, name STRING, gender STRING) USING delta")
    lake("INSERT INTO {t} VALUES (1, 'a', 'F'), (2, 'b', 'M'), (3, 'c', 'F')")
    lake("UPDATE {t} SET gender = 'Female' WHERE gender = 'F'")
    lake.table().update(sf.col("gender") == "M", {"gender": sf.lit("Male")})
    lake("DELETE FROM {t} WHERE id < 2")
    lake.table().delete(sf.col("id") == 3)
    assert lake.ids(column="gender") == ["Male"]
    lake("CREATE TABLE {source} (id INT, name STRING, gender STRING, extra INT) USING delta")
    lake("INSERT INTO {source} VALUES (2, 'B', 'Male', 1), (4, 'd', 'Female', 2)")
    lake(
        "MERGE INTO {t} AS people USING {source} AS news ON people.id = news.id "
        "WHEN MATCHED AND news.extra > 5 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET people.name = news.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (news.id, news.name) "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert lake.ids(column="name") == ["B", "d"]
    lake(
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING {source} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert lake.ids(column="extra") == [1, 2]

    def upsert(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("updates")
        merge = (
            lake.table().alias("t").merge(batch.dropDuplicates(["id"]).alias("s"), "t.id = s.id")
        )
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    query = lake.stream("source").writeStream.foreachBatch(upsert).outputMode("update")
    query = query.option("checkpointLocation", lake.path("cp")).trigger(availableNow=True)
    to_end(query.start)
    assert lake.ids(column="name") == ["B", "d"]


@pytest.mark.one_day_in(2)
def test_the_change_data_feed(lake: Lake) -> None:
    lake("CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    lake("INSERT INTO {t} VALUES (1), (2)")
    lake("DELETE FROM {t} WHERE id = 1")
    changes = lake.read(readChangeFeed="true", startingVersion=0, endingVersion=2)
    kinds = [(row.id, row._change_type) for row in changes.collect()]
    assert sorted(kinds) == [(1, "delete"), (1, "insert"), (2, "insert")]
    assert lake(f"SELECT * FROM table_changes_by_path('{lake.path()}', 2)").count() == 1
    stream = lake.stream(readChangeFeed="true", startingVersion=0)
    writer = stream.writeStream.format("delta").option("checkpointLocation", lake.path("cp"))
    writer = writer.trigger(availableNow=True)
    to_end(lambda: writer.start(lake.path("out")))
    assert lake.read("out").count() == 3
    lake("CREATE TABLE {copy} (id INT) USING delta")
    lake("ALTER TABLE {copy} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    with pytest.raises(DeltaAnalysisError, match="DELTA_MISSING_CHANGE_DATA"):
        lake.read("copy", readChangeFeed="true", startingVersion=0)


@pytest.mark.one_day_in(2, 1)
def test_utility_commands(lake: Lake) -> None:
    spark = lake.spark
    spark.range(3).write.format("delta").save(lake.path())
    lake("INSERT INTO {t} VALUES (7)")
    assert [row.operation for row in lake("DESCRIBE HISTORY {t} LIMIT 1").collect()] == ["WRITE"]
    assert lake.table().history(1).count() == 1
    assert lake("VACUUM {t} DRY RUN").count() == 0
    lake.table().vacuum()
    lake.table().vacuum(1000)
    with pytest.raises(DeltaAnalysisError):
        lake("VACUUM {t} RETAIN 0 HOURS")
    detail = lake("DESCRIBE DETAIL {t}").first()
    assert detail is not None
    assert (detail.format, detail.numFiles) == (
        "delta",
        lake.table().detail().collect()[0].numFiles,
    )
    lake("GENERATE symlink_format_manifest FOR TABLE {t}")
    lake.table().generate("symlink_format_manifest")
    spark.range(2).write.parquet(lake.path("plain"))
    lake(f"CONVERT TO DELTA parquet.`{lake.path('plain')}`")
    assert DeltaTable.isDeltaTable(spark, lake.path("plain"))
    lake("RESTORE TABLE {t} TO VERSION AS OF 0")
    lake.table().restoreToVersion(1)
    assert lake.ids() == [0, 1, 2, 7]
    lake("CREATE TABLE {copy} SHALLOW CLONE {t} VERSION AS OF 0")
    assert lake.ids("copy") == [0, 1, 2]
    lake("OPTIMIZE {t} ZORDER BY (id)")
    lake("OPTIMIZE {t}")
    lake.table().optimize().executeCompaction()
    assert lake.ids() == [0, 1, 2, 7]


@pytest.mark.one_day_in(2)
def test_constraints(lake: Lake) -> None:
    lake("CREATE TABLE {t} (id INT NOT NULL, name STRING) USING delta")
    lake("ALTER TABLE {t} ADD CONSTRAINT named CHECK (name <> '')")
    for values in ("(NULL, 'a')", "(1, '')"):
        with pytest.raises(ConstraintViolationError):
            lake(f"INSERT INTO {{t}} VALUES {values}")
    lake("ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL")
    lake("ALTER TABLE {t} DROP CONSTRAINT named")
    lake("INSERT INTO {t} VALUES (NULL, '')")
    assert lake.read().count() == 1


@pytest.mark.one_day_in(2, 1)
def test_concurrency(lake: Lake) -> None:
    """Two jobs that read what the other writes conflict; those on other partitions do not."""
    lake("CREATE TABLE {t} (id INT, day INT) USING delta PARTITIONED BY (day)")
    lake("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    log = lake.table().log
    one, two = log.start_transaction(), log.start_transaction()
    firsts, all_ = one.filter_files("day = 1"), two.filter_files()
    lake("INSERT INTO {t} VALUES (3, 2)")
    one.commit([each.remove(0) for each in firsts], Operation("DELETE"))
    with pytest.raises(ConcurrentAppendException, match="DELTA_CONCURRENT_APPEND"):
        two.commit([each.remove(0) for each in all_], Operation("DELETE"))
    assert lake.ids() == [2, 3]
