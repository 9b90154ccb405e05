"""Each way into and out of a table once: what shows first that a release of Spark is another.

`make check-matrix` runs it with each release of Python, PySpark and pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import lakelog.spark as delta
from lakelog.core import read_arrow, write_arrow
from lakelog.core.errors import ConstraintViolationError
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(spark)
    yield spark
    delta.disable(spark)


def _ids(spark: SparkSession, path: str) -> list[Any]:
    return sorted(row.id for row in delta.read(spark).load(path).collect())


def test_rows_go_in_and_out_by_every_way(enabled: SparkSession, tmp_path: Path) -> None:
    spark, path = enabled, str(tmp_path / "t")
    frame = spark.range(100).selectExpr("id", "id % 3 AS p", "cast(id AS decimal(9,2)) AS d")

    frame.write.format("delta").partitionBy("p").save(path)
    assert delta.read(spark).where("p = 1 AND id < 50").load(path).count() == 17
    # By pyarrow on the executors, and by Spark's own workers for the log.
    for key, value in (("read.path", "arrow"), ("replay", "spark")):
        spark.conf.set(f"spark.lakelog.{key}", value)
        try:
            assert spark.read.format("delta").load(path).where("p = 2").count() == 33
        finally:
            spark.conf.unset(f"spark.lakelog.{key}")

    spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= 50")
    spark.sql(f"UPDATE delta.`{path}` SET d = -1 WHERE id = 7")
    table = delta.DeltaTable.forPath(spark, path)
    more = spark.createDataFrame([(7, 1, 0.5), (200, 2, 1.5)], "id long, p long, d double")
    more = more.withColumn("d", more.d.cast("decimal(9,2)"))
    (
        table.alias("t")
        .merge(more.alias("s"), "t.id = s.id AND t.p = s.p")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    assert _ids(spark, path) == [*range(50), 200]
    assert float(read_arrow(path, where="id = 7")["d"][0].as_py()) == 0.5
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).count() == 100

    table.optimize().executeZOrderBy("id")
    assert _ids(spark, path) == [*range(50), 200]
    as_it_is = spark.read.format("delta").load(path).schema
    again = spark.createDataFrame(read_arrow(path).to_pandas(), as_it_is)
    again.write.format("delta").mode("overwrite").save(path)
    assert _ids(spark, path) == [*range(50), 200]
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (id < 1000)")
    high = spark.range(5000, 5001).selectExpr("id", "0L AS p", "cast(0 AS decimal(9,2)) AS d")
    with pytest.raises(ConstraintViolationError):
        high.write.format("delta").mode("append").save(path)
    assert [row.operation for row in table.history(1).collect()] == ["ADD CONSTRAINT"]


def test_streams_go_in_and_out(enabled: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    for number in range(2):
        write_arrow(source, {"id": [number]}, mode="append")

    def run() -> None:
        stream = enabled.readStream.format("delta").load(source)
        writer = stream.writeStream.format("delta").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        to_end(lambda: writer.start(target))

    run()
    write_arrow(source, {"id": [2]}, mode="append")
    run()
    assert _ids(enabled, target) == [0, 1, 2]
    assert read_arrow(target).num_rows == 3
