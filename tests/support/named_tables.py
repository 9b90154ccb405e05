"""What PySpark does with tables by their names, for delta-spark's session and for lakelog's.

It runs in delta-spark's own environment, too, and so imports nothing of the project's at first.
"""

from __future__ import annotations

import os
from typing import Any


def make(spark: Any, folder: str) -> None:
    """Make a table by each way there is; their names begin like the folder's."""
    name = os.path.basename(folder)
    _rows(spark, "(1, 'a'), (2, 'b')").write.format("delta").saveAsTable(f"{name}_saved")
    outside = _rows(spark, "(1, 'a')").write.format("delta").option("path", f"{folder}/outside")
    outside.saveAsTable(f"default.{name}_outside")
    first = _rows(spark, "(1, 'a'), (2, 'b')").writeTo(f"{name}_made").using("delta")
    first.partitionedBy("p").create()
    _stream(spark, name, folder)


def go_on(spark: Any, folder: str) -> None:
    """Write to what `make` has made, by each way there is."""
    name = os.path.basename(folder)
    saved, made = f"{name}_saved", f"{name}_made"
    more = _rows(spark, "(3, 'c')")
    more.write.format("delta").mode("append").saveAsTable(saved)
    more.selectExpr("id + 1", "p").write.insertInto(saved)
    more.write.format("delta").mode("overwrite").saveAsTable(f"{name}_outside")
    merge = _rows(spark, "(1, 'A'), (9, 'z')").alias("s").mergeInto(saved, _condition(saved))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    more.writeTo(made).append()
    _rows(spark, "(4, 'a')").writeTo(made).overwritePartitions()
    from pyspark.sql.functions import col

    _rows(spark, "(5, 'b')").writeTo(f"default.{made}").overwrite(col("p") == "b")
    replaced = _rows(spark, "(7, 'x')").selectExpr("id AS other").writeTo(f"{name}_outside")
    replaced.using("delta").createOrReplace()
    _stream(spark, name, folder)


def read(spark: Any, folder: str) -> dict[str, Any]:
    """The rows of each, by name."""
    name = os.path.basename(folder)
    answers: dict[str, Any] = {}
    for kind in ("saved", "made", "outside", "streamed"):
        rows = spark.table(f"{name}_{kind}")
        answers[kind] = [sorted((list(row) for row in rows.collect()), key=repr), rows.columns]
    return answers


def by_python(spark: Any, folder: str) -> list[Any]:
    """`DeltaTable.forName`: the operations of a table's history, after one more."""
    from lakelog.spark import DeltaTable

    table = DeltaTable.forName(spark, f"{os.path.basename(folder)}_saved")
    table.delete("id = 9")
    return [row.operation for row in table.history().orderBy("version").collect()]


def _rows(spark: Any, values: str) -> Any:
    return spark.sql(f"SELECT * FROM VALUES {values} AS t(id, p)").coalesce(1)


def _condition(table: str) -> Any:
    from pyspark.sql.functions import col

    return col(f"{table}.id") == col("s.id")


def _stream(spark: Any, name: str, folder: str) -> None:
    """What `saved` has that this query has not read."""
    stream = spark.readStream.option("ignoreChanges", "true").table(f"{name}_saved")
    writer = stream.writeStream.format("delta").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    writer.toTable(f"{name}_streamed").awaitTermination()
