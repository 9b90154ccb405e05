"""NOT NULL, as the schema of what is read says it; the plan that Spark runs is as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

import lakelog.spark as delta
from lakelog.core import DeltaLog
from lakelog.spark import DeltaTable, IdentityGenerator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect

_PLACE = StructType(
    [
        StructField("city", StringType(), nullable=False),
        StructField("rooms", ArrayType(IntegerType()), nullable=True),
    ]
)
_GIVEN = StructType(
    [
        StructField("a", IntegerType(), nullable=False, metadata={"comment": "a number"}),
        StructField("place", _PLACE, nullable=False),
        StructField("tags", MapType(StringType(), LongType())),
        StructField("p", StringType(), nullable=False),
    ]
)
WANTED = StructType(
    [
        *_GIVEN.fields,
        StructField("id", LongType(), nullable=False),
        StructField("twice", IntegerType(), nullable=False),
        StructField("free", StringType()),
    ]
)


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(spark)
    yield spark
    delta.disable(spark)
    spark.sql("DROP TABLE IF EXISTS stated")


def _made(spark: SparkSession, path: Path) -> DeltaTable:
    table = (
        DeltaTable.create(spark)
        .tableName("stated")
        .location(str(path))
        .addColumns(_GIVEN)
        .addColumn("id", "BIGINT", nullable=False, generatedAlwaysAs=IdentityGenerator())
        .addColumn("twice", "INT", nullable=False, generatedAlwaysAs="a * 2")
        .addColumn("free", "STRING")
        .partitionedBy("p")
        .execute()
    )
    for a, p in ((1, "x"), (2, "y")):
        spark.sql(
            "INSERT INTO stated (a, place, tags, p) VALUES "
            f"({a}, named_struct('city', 'Kiel', 'rooms', array(1)), map('k', 1L), '{p}')"
        )
    return table


def test_what_is_read_says_what_the_table_says_of_nulls(
    enabled: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark, path = enabled, str(tmp_path / "t")
    table = _made(spark, tmp_path / "t")
    frames = {
        "toDF": table.toDF(),
        "toDF again": table.toDF(),
        "under a name": table.alias("t").toDF(),
        "by path": spark.read.format("delta").load(path),
        "by our reader": delta.read(spark).load(path),
        "spark.table": spark.table("stated"),
        "read.table": spark.read.table("stated"),
        "SELECT *": spark.sql("SELECT * FROM stated"),
        "SELECT * by path": spark.sql(f"SELECT * FROM delta.`{path}`;"),
        "where": delta.read(spark).where("a = 1").load(path),
        "an older version": spark.read.format("delta").option("versionAsOf", 1).load(path),
        "without rows": spark.read.format("delta").option("versionAsOf", 0).load(path),
    }
    for name, frame in frames.items():
        assert frame.schema == WANTED, name
        assert frame.columns == WANTED.names
    assert {name: frame.count() for name, frame in frames.items()} == {
        **dict.fromkeys(frames, 2),
        "where": 1,
        "an older version": 1,
        "without rows": 0,
    }
    assert [
        tuple(row) for row in table.toDF().select("a", "id", "twice").orderBy("a").collect()
    ] == [
        (1, 1, 2),
        (2, 2, 4),
    ]
    some = delta.read(spark).option("columns", "p, a").where("a < 9").load(path)
    assert some.schema == StructType([WANTED["p"], WANTED["a"]])
    table.toDF().printSchema()
    shown = capsys.readouterr().out
    assert "|-- a: integer (nullable = false)" in shown
    assert "|    |-- city: string (nullable = false)" in shown
    # A table that is made of the rows makes no promise that nobody asked for.
    table.toDF().drop("id", "twice").write.format("delta").save(str(tmp_path / "copy"))
    copied = DeltaLog.for_table(str(tmp_path / "copy")).snapshot
    assert all(each.nullable for each in copied.schema)
    spark.sql("ALTER TABLE stated ALTER COLUMN a DROP NOT NULL")
    assert [f.name for f in table.toDF().schema if f.nullable] == ["a", "tags", "free"]
    assert not spark.table("stated").schema["place"].nullable


def test_changes_and_streams_say_it_too(enabled: SparkSession, tmp_path: Path) -> None:
    spark, path = enabled, str(tmp_path / "t")
    table = _made(spark, tmp_path / "t")
    spark.sql("ALTER TABLE stated SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    table.update("a = 1", {"free": "'z'"})
    feed = {"readChangeFeed": "true", "startingVersion": "4"}
    feed_schema = StructType(
        [
            *WANTED.fields,
            StructField("_change_type", StringType()),
            StructField("_commit_version", LongType()),
            StructField("_commit_timestamp", TimestampType()),
        ]
    )
    batch, stream = spark.read.format("delta"), spark.readStream.format("delta")
    assert batch.options(**feed).load(path).schema == feed_schema
    assert batch.option("columns", "a, free").load(path).schema == StructType(
        [WANTED["a"], WANTED["free"]]
    )
    assert delta.read(spark).options(**feed).where("a = 1").load(path).schema == feed_schema
    assert batch.options(**feed).load(path).count() == 2
    assert stream.load(path).schema == WANTED
    assert stream.options(**feed).load(path).schema == feed_schema
    assert delta.read_stream(spark).table("stated").schema == WANTED

    rows = spark.readStream.format("delta").load(path)
    query = rows.writeStream.format("memory").queryName("stated_rows").trigger(availableNow=True)
    assert query.start().awaitTermination(60)
    assert spark.table("stated_rows").count() == 2


def test_a_column_of_such_a_frame_still_names_one_of_the_table(
    classic_spark: SparkSession, tmp_path: Path
) -> None:
    delta.enable(classic_spark)
    try:
        table = _made(classic_spark, tmp_path / "t")
        df = table.toDF()
        table.update(df["a"] == 1, {"free": sf.concat(df["place"]["city"], sf.lit("!"))})
        assert {row.free for row in table.toDF().collect()} == {"Kiel!", None}
    finally:
        classic_spark.sql("DROP TABLE IF EXISTS stated")
        delta.disable(classic_spark)


def test_filters_still_reach_the_files(classic_spark: SparkSession, tmp_path: Path) -> None:
    delta.enable(classic_spark)
    try:
        _made(classic_spark, tmp_path / "t")
        found: Any = classic_spark.table("stated").where("a > 1 AND p = 'y'").select("a")
        plan = str(found._jdf.queryExecution().executedPlan())
        assert "GreaterThan(a,1)" in plan
        assert "ReadSchema: struct<a:int>" in plan
        # Nothing is computed but the partition's value: what the scan gives is what comes out.
        assert "coalesce" not in plan
        assert [row.a for row in found.collect()] == [2]
    finally:
        classic_spark.sql("DROP TABLE IF EXISTS stated")
        delta.disable(classic_spark)
