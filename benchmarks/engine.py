"""One Spark engine in a process of its own: reads jobs as JSON lines, answers with seconds.

    python engine.py lakelog
    python engine.py delta --jars a.jar,b.jar [--tuned]

A job is `{"op": …, "table": …, "source": …}`; the answer is `{"seconds": …, "result": …}`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any


def _session(args: argparse.Namespace) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName(f"bench-{args.engine}")
        .config("spark.driver.memory", "5g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.streaming.numRecentProgressUpdates", "2000")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    if args.engine == "delta":
        builder = (
            builder.config("spark.jars", args.jars)
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config(
                "spark.sql.catalog.spark_catalog",
                "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            )
        )
        if args.tuned:
            builder = builder.config("spark.databricks.delta.snapshotPartitions", "2")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class _Engine:
    """The same jobs, said in each engine's own words."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.spark = _session(args)
        self.delta = args.engine == "delta"
        if not self.delta:
            import lakelog.spark

            self.lakelog = lakelog.spark

    def _save(self, df: Any, table: str, mode: str, partition_by: list[str]) -> None:
        writer = df.write.format("delta") if self.delta else self.lakelog.write(df)
        writer = writer.mode(mode)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.save(table)

    def _load(self, table: str) -> Any:
        if self.delta:
            return self.spark.read.format("delta").load(table)
        return self.lakelog.read(self.spark).load(table)

    def write(self, job: dict[str, Any]) -> None:
        self._save(self.spark.read.parquet(job["source"]), job["table"], "append", [])

    def write_partitioned(self, job: dict[str, Any]) -> None:
        self._save(self.spark.read.parquet(job["source"]), job["table"], "append", ["s1"])

    def one_row(self, job: dict[str, Any]) -> None:
        df = self.spark.createDataFrame([(1, "a", 1.5)], "a long, b string, c double")
        self._save(df, job["table"], "append", [])

    def scan_two(self, job: dict[str, Any]) -> list[Any]:
        from pyspark.sql import functions as F  # noqa: N812  # the name all of PySpark uses

        row = self._load(job["table"]).agg(F.sum("l2"), F.sum("d1")).first()
        return [row[0], round(row[1], 3)]

    def plan(self, job: dict[str, Any]) -> int:
        """Open the table anew, and choose files by a filter; how many are left."""
        if self.delta:
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
            return len(self._load(job["table"]).where(job["where"]).inputFiles())
        from lakelog.core import DeltaLog

        log = DeltaLog.for_table(job["table"])
        return int(log.start_transaction().filter_file_table(job["where"]).num_rows)

    def stream(self, job: dict[str, Any]) -> list[int]:
        """Run a query to the end of what there is; how long each batch took, in milliseconds.

        From `table`, or the Parquet files in `source`; into `sink`, or nowhere.
        """
        if "table" in job:
            streams = self.spark.readStream
            reader = streams.format("delta") if self.delta else self.lakelog.read_stream(self.spark)
            frame = reader.options(**job["options"]).load(job["table"])
        else:
            reader = self.spark.readStream.schema("id long, n double, p string")
            frame = reader.options(**job["options"]).parquet(job["source"])
        if job["sink"] is None:
            writer = frame.writeStream.format("noop")
        elif self.delta:
            writer = frame.writeStream.format("delta")
        else:
            writer = self.lakelog.write_stream(frame)
        writer = writer.option("checkpointLocation", job["checkpoint"]).trigger(availableNow=True)
        query = writer.start(job["sink"]) if job["sink"] else writer.start()
        query.awaitTermination()
        found = [each for each in query.recentProgress if each.numInputRows]
        return [each.durationMs["triggerExecution"] for each in found]

    def count(self, job: dict[str, Any]) -> int:
        return int(self._load(job["table"]).count())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["lakelog", "delta"])
    parser.add_argument("--jars", default="")
    parser.add_argument("--tuned", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Spark's own noise goes to stderr; the answers keep the real stdout for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    engine = _Engine(args)
    print(json.dumps({"ready": engine.spark.version}), file=answers)
    for line in sys.stdin:
        job = json.loads(line)
        start = time.perf_counter()
        try:
            result = getattr(engine, job["op"])(job)
            answer = {"seconds": time.perf_counter() - start, "result": result}
        except Exception as exc:
            answer = {"error": f"{type(exc).__name__}: {exc}"[:2000]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
