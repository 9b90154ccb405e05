"""A DataFrame of ours under a name is nothing that Spark itself may write to, whatever it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import lakelog.spark as delta
from lakelog.core import DeltaLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.connect

WAY = "spark.lakelog.read.path"
FORMS: dict[str, Callable[[SparkSession, DataFrame], object]] = {
    "INSERT INTO": lambda spark, _: spark.sql("INSERT INTO frames_v VALUES (5, 7)"),
    "INSERT OVERWRITE": lambda spark, _: spark.sql("INSERT OVERWRITE frames_v VALUES (5, 7)"),
    "OVERWRITE of itself": lambda spark, _: spark.sql(
        "INSERT OVERWRITE TABLE frames_v SELECT a + 1, b FROM frames_v"
    ),
    "of a global view": lambda spark, _: spark.sql(
        "INSERT OVERWRITE global_temp.frames_g VALUES (5, 7)"
    ),
    "insertInto": lambda _, rows: rows.write.insertInto("frames_v"),
    "insertInto, overwrite": lambda _, rows: rows.write.insertInto("frames_v", overwrite=True),
    "writeTo": lambda _, rows: rows.writeTo("frames_v").append(),
}


@pytest.fixture
def plain(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that `enable` does not front."""
    delta.disable(spark)
    yield spark
    spark.catalog.dropTempView("frames_v")
    spark.catalog.dropGlobalTempView("frames_g")
    spark.conf.unset(WAY)


def made(spark: SparkSession, path: Path, *columns: str, **properties: str) -> str:
    """A table whose first version has no rows, and the second one file of some."""
    builder = delta.DeltaTable.create(spark).location(str(path))
    builder = builder.addColumn("a", "int").addColumn("b", "int").partitionedBy(*columns)
    for key, value in properties.items():
        builder = builder.property(f"delta.{key}", value)
    builder.execute()
    rows = spark.sql("SELECT CAST(id AS INT) AS a, 1 AS b FROM range(0, 4, 1, 1)")
    delta.write(rows).mode("append").save(str(path))
    return str(path)


def frames_of(spark: SparkSession, root: Path) -> Iterator[tuple[str, str, DataFrame]]:
    """What is read, the table, and the rows: one of each kind of plan."""

    def read() -> delta.DeltaReader:
        return delta.read(spark)

    one = made(spark, root / "one")
    yield "one file", one, read().load(one)
    yield "an older version", one, read().option("versionAsOf", 1).load(one)
    yield "some columns", one, read().option("columns", "b,a").load(one)
    yield "by a condition", one, read().where("a > 0").load(one)
    yield "toDF", one, delta.DeltaTable.forPath(spark, one).toDF()
    yield "by another name", one, read().load(one).alias("x")
    yield "no files", one, read().option("versionAsOf", 0).load(one)
    spark.conf.set(WAY, "arrow")
    yield "by pyarrow", one, read().load(one)
    spark.conf.set(WAY, "auto")
    parts = made(spark, root / "parts", "b")
    yield "one file in a folder", parts, read().load(parts)
    for mode in ("name", "id"):
        mapped = made(spark, root / mode, **{"columnMapping.mode": mode})
        yield f"mapped by {mode}", mapped, read().load(mapped)
    many = made(spark, root / "many", enableDeletionVectors="true", enableChangeDataFeed="true")
    delta.DeltaTable.forPath(spark, many).delete("a = 2")
    yield "deleted rows", many, read().load(many)
    changed = read().option("readChangeFeed", "true").option("startingVersion", 1)
    yield "changes", many, changed.load(many).select("a", "b")
    delta.write(read().load(one)).mode("append").save(many)
    yield "more files", many, read().load(many)


def files(root: Path) -> dict[Path, tuple[bool, int]]:
    return {
        each: (each.is_dir(), 0 if each.is_dir() else each.stat().st_size)
        for each in root.rglob("*")
    }


def test_spark_refuses_to_write_to_any_frame_of_ours_and_nothing_is_lost(
    plain: SparkSession, tmp_path: Path
) -> None:
    rows = plain.sql("SELECT 5 AS a, 7 AS b")
    taken = []
    for what, path, frame in frames_of(plain, tmp_path):
        frame.createOrReplaceTempView("frames_v")
        frame.createOrReplaceGlobalTempView("frames_g")
        before = files(tmp_path)
        for form, write in FORMS.items():
            try:
                write(plain, rows)
            except PySparkException:
                continue
            taken.append((what, form))
        assert files(tmp_path) == before, what
        assert DeltaLog.for_table(path).snapshot.to_arrow().num_rows == frame_rows(what), what
    assert taken == []


def frame_rows(what: str) -> int:
    return {"deleted rows": 3, "changes": 3, "more files": 7}.get(what, 4)
