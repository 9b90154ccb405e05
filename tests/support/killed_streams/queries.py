"""The queries of one life, in a process of their own: JVM, driver and Python workers.

    python tests/support/killed_streams/queries.py '{"source": …, "to_end": false, …}'

It prints `ready` once the first of them runs. With `to_end` they run one after the other, each as
far as the source is. Where one of them fails, as after the death of a worker, the status is 3.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FAILED = 3


def _copy(frame: DataFrame) -> DataFrame:
    """Every row, changed."""
    return frame.selectExpr("id", "k", "n * 2 AS n", "concat(p, '/é') AS p")


def _distinct(frame: DataFrame) -> DataFrame:
    """With state: each `id` once, though the source has it twice."""
    return frame.dropDuplicates(["id"]).select("id", "k")


def _totals(frame: DataFrame) -> DataFrame:
    """With state, and all of it in each batch."""
    return frame.groupBy("k").sum("n").withColumnRenamed("sum(n)", "n")


def _upserting(path: str, conf: dict[str, str]) -> Any:
    """A MERGE for each batch that must not count twice: it adds to what is there."""
    from lakelog.spark import DeltaTable, once_per_batch

    def upsert(batch: DataFrame, _batch_id: int) -> None:
        table = DeltaTable.forPath(batch.sparkSession, path).alias("t")
        rows = batch.groupBy("k").sum("n").withColumnRenamed("sum(n)", "n")
        merge = table.merge(rows.alias("s"), "t.k = s.k")
        merge = merge.whenMatchedUpdate(set={"n": "t.n + s.n"})
        merge.whenNotMatchedInsertAll().execute()

    return once_per_batch(path, upsert)


SHAPES = {"copy": _copy, "distinct": _distinct, "totals": _totals, "upserts": None}


def _session(conf: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("lakelog-killed-streams")
    for key, value in {
        "spark.driver.memory": "1g",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **conf,
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _start(spark: SparkSession, shape: str, spec: dict[str, Any]) -> Any:
    import lakelog.spark as delta

    most = 1000 if spec["to_end"] else 2
    reader = delta.read_stream(spark).option("maxFilesPerTrigger", most)
    # Where PySpark can't, the option does nothing.
    reader = reader.option("readOnDriver", shape in ("distinct", "upserts"))
    frame = reader.load(spec["source"])
    to_end: dict[str, Any] = (
        {"availableNow": True} if spec["to_end"] else {"processingTime": "0 seconds"}
    )
    checkpoint = f"{spec['checkpoints']}/{shape}"
    sink = f"{spec['sinks']}/{shape}"
    transform = SHAPES[shape]
    if transform is None:
        writer = frame.writeStream.foreachBatch(_upserting(sink, spec["conf"]))
        return writer.option("checkpointLocation", checkpoint).trigger(**to_end).start()
    stream = delta.write_stream(transform(frame)).trigger(**to_end)
    stream = stream.outputMode("complete" if shape == "totals" else "append")
    return stream.option("checkpointLocation", checkpoint).start(sink)


def main() -> int:
    spec = json.loads(sys.argv[1])
    spark = _session(spec["conf"])
    try:
        for number, shape in enumerate(spec["shapes"]):
            query = _start(spark, shape, spec)
            if not number:
                print("ready", flush=True)
            if spec["to_end"]:
                query.awaitTermination()
        if not spec["to_end"]:
            spark.streams.awaitAnyTermination()
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(_FAILED)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.exit(main())
