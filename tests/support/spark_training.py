"""What Spark does in most tests, so that the archive of its classes has those: see `spark_java`.

It runs in the environment whose PySpark is looked at, and imports nothing of the project's.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def _batch(frame: DataFrame, _number: int) -> None:
    frame.collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _rows(spark: SparkSession, folder: Path) -> None:
    made = spark.range(100).selectExpr(
        "id", "id % 3 AS p", "cast(id AS string) AS s", "struct(id AS a) AS n", "array(id) AS l"
    )
    made.write.partitionBy("p").parquet(str(folder / "rows"))
    rows = spark.read.parquet(str(folder / "rows"))
    rows.where("id > 5 AND s LIKE '%1%'").groupBy("p").count().orderBy("p").collect()
    rows.join(made.select("id", "s"), "id", "left").select("n.a", "l").collect()
    rows.createOrReplaceTempView("rows")
    spark.sql(
        "WITH a AS (SELECT p, max(id) AS m FROM rows GROUP BY p) "
        "SELECT * FROM rows JOIN a USING (p) WHERE id IN (SELECT m FROM a) UNION ALL "
        "SELECT *, 1 FROM rows WHERE p IS NULL"
    ).collect()
    spark.createDataFrame([(1, "a", None)], "id int, s string, d date").collect()
    spark.catalog.listTables()
    if find_spec("pyarrow"):
        rows.toArrow()
        rows.select("id").mapInArrow(_same, "id long").count()


def _streams(spark: SparkSession, folder: Path) -> None:
    source = spark.readStream.schema("id long, s string").parquet(str(folder / "rows"))
    query = (
        source.writeStream.foreachBatch(_batch)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def main() -> None:
    """A session's life in the folder that the argument names."""
    from pyspark.sql import SparkSession

    folder = Path(sys.argv[1])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    _rows(spark, folder)
    _streams(spark, folder)
    spark.stop()


if __name__ == "__main__":
    main()
