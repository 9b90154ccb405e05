"""One Spark engine in a process of its own: reads jobs as JSON lines, answers with seconds.

    python engine.py lakelog [--tuned]
    python engine.py delta --jars a.jar,b.jar [--tuned]
    python engine.py plain [--tuned]     # Spark's own Parquet files, and no table

A job is `{"op": …, "table": …, "source": …}`; the answer is `{"seconds": …, "result": …}`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def _session(args: argparse.Namespace) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName(f"bench-{args.engine}")
        .config("spark.driver.memory", "5g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
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
    elif args.tuned:
        builder = builder.config("spark.python.unix.domain.socket.enabled", "true")
    for each in args.conf:
        builder = builder.config(*each.split("=", 1))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class _Engine:
    """The same jobs, said in each engine's own words."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.spark = _session(args)
        self.delta = args.engine == "delta"
        self.plain = args.engine == "plain"
        if args.engine == "lakelog":
            import lakelog.spark

            self.lakelog = lakelog.spark

    def _save(self, df: Any, table: str, mode: str, partition_by: list[str]) -> None:
        if self.plain:
            writer = df.write.format("parquet")
        else:
            writer = df.write.format("delta") if self.delta else self.lakelog.write(df)
        writer = writer.mode(mode)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.save(table)

    def _load(self, table: str) -> Any:
        if self.plain:
            return self.spark.read.parquet(table)
        if self.delta:
            return self.spark.read.format("delta").load(table)
        return self.lakelog.read(self.spark).load(table)

    def write(self, job: dict[str, Any]) -> None:
        self._save(self.spark.read.parquet(job["source"]), job["table"], "append", [])

    def append(self, job: dict[str, Any]) -> None:
        self.write(job)

    def write_partitioned(self, job: dict[str, Any]) -> None:
        self._save(self.spark.read.parquet(job["source"]), job["table"], "append", ["s1"])

    def one_row(self, job: dict[str, Any]) -> None:
        df = self.spark.createDataFrame([(1, "a", 1.5)], "a long, b string, c double")
        self._save(df, job["table"], "append", [])

    def scan_two(self, job: dict[str, Any]) -> list[Any]:
        from pyspark.sql import functions as F  # noqa: N812  # the name all of PySpark uses

        row = self._load(job["table"]).agg(F.sum("l2"), F.sum("d1")).first()
        return [row[0], round(row[1], 3)]

    def query(self, job: dict[str, Any]) -> list[list[str]]:
        """Load the tables that a query names, and run it."""
        for name, table in job["tables"].items():
            self._load(table).createOrReplaceTempView(name)
        return [[str(each) for each in row] for row in self.spark.sql(job["sql"]).collect()]

    def plan(self, job: dict[str, Any]) -> int:
        """Open the table anew, and choose files by a filter; how many are left."""
        if self.delta:
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
            return len(self._load(job["table"]).where(job["where"]).inputFiles())
        from lakelog.core import DeltaLog

        log = DeltaLog.for_table(job["table"])
        return int(log.start_transaction().reads.filter_file_table(job["where"]).num_rows)

    def plan_read(self, job: dict[str, Any]) -> int:
        """Plan a query in the words of a script; how many tasks it would have.

        By `spark.read` and a filter, or in SQL where the job says so; with the table's log as it
        was kept, or opened anew. Nothing is run.
        """
        if not self.delta:
            self.lakelog.enable(self.spark)
        if job["anew"] and self.delta:
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        elif job["anew"]:
            from lakelog.spark.replay.logs import forget_logs

            forget_logs(self.spark)
        table, where = job["table"], job["where"]
        if job["sql"]:
            frame = self.spark.sql(f"SELECT * FROM delta.`{table}` WHERE {where}")
        else:
            frame = self.spark.read.format("delta").load(table)
            frame = frame.where(where) if where else frame
        return int(frame.rdd.getNumPartitions())

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

    def rate(self, job: dict[str, Any]) -> list[int]:
        """The same for so many batches of one row that Spark makes up itself, into nowhere."""
        frame = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        writer = frame.writeStream.format("noop")
        query = writer.option("checkpointLocation", job["checkpoint"]).start()
        while len(query.recentProgress) < job["batches"]:
            time.sleep(0.5)
        query.stop()
        return [each.durationMs["triggerExecution"] for each in query.recentProgress]

    def lay_out(self, job: dict[str, Any]) -> None:
        """Write rows into so many files, in their order."""
        frame = self.spark.read.parquet(job["source"]).repartitionByRange(job["files"], "l1")
        writer = frame.write.format("delta") if self.delta else self.lakelog.write(frame)
        if job["vectors"]:
            writer = writer.option("delta.enableDeletionVectors", "true")
        writer.save(job["table"])

    def _change(self, job: dict[str, Any], sql: str, ours: Callable[[Any], Any]) -> None:
        """A command: as SQL in delta-spark, as a method here."""
        if self.delta:
            self.spark.sql(sql.format(t=f"delta.`{job['table']}`"))
        else:
            ours(self.lakelog.DeltaTable.forPath(self.spark, job["table"]))

    def delete(self, job: dict[str, Any]) -> None:
        where = job["where"]
        self._change(job, f"DELETE FROM {{t}} WHERE {where}", lambda t: t.delete(where))

    def update(self, job: dict[str, Any]) -> None:
        where, values = job["where"], {"d1": "d1 + 1", "s2": "upper(s2)"}
        sets = ", ".join(f"{name} = {value}" for name, value in values.items())
        sql = f"UPDATE {{t}} SET {sets} WHERE {where}"
        self._change(job, sql, lambda t: t.update(where, values))

    def merge(self, job: dict[str, Any]) -> None:
        """Update the rows of some keys, and insert a tenth as many new ones."""
        keys = job["keys"]
        ids = self.spark.range(keys["count"])
        old = ids.selectExpr(f"id * {keys['step']} + {keys['first']} AS l1")
        new = ids.where("id % 10 = 0").selectExpr("-1 - id AS l1")
        source = old.union(new).selectExpr("l1", "l1 * 2 AS l2", "'merged' AS s2")
        source.createOrReplaceTempView("changes")
        changed, inserted = ({n: f"s.{n}" for n in names} for names in (("l2", "s2"), ("l1", "l2")))
        self._change(
            job,
            "MERGE INTO {t} t USING changes s ON t.l1 = s.l1 "
            "WHEN MATCHED THEN UPDATE SET l2 = s.l2, s2 = s.s2 "
            "WHEN NOT MATCHED THEN INSERT (l1, l2) VALUES (s.l1, s.l2)",
            lambda t: (
                t.alias("t")
                .merge(source.alias("s"), "t.l1 = s.l1")
                .whenMatchedUpdate(set=changed)
                .whenNotMatchedInsert(values=inserted)
                .execute()
            ),
        )

    def optimize(self, job: dict[str, Any]) -> None:
        self._change(job, "OPTIMIZE {t}", lambda t: t.optimize().executeCompaction())

    def vacuum(self, job: dict[str, Any]) -> None:
        self._change(job, "VACUUM {t}", lambda t: t.vacuum())

    def sums(self, job: dict[str, Any]) -> list[Any]:
        """What the rows of a table come to, so that engines can be compared."""
        row = self._load(job["table"]).selectExpr("count(1)", "sum(l1)", "sum(l2)", "sum(d1)")
        count, first, second, third = row.first()
        # A sum of millions of doubles depends on their order, in its last digits.
        return [count, first, second, float(f"{third:.11g}")]

    def open(self, job: dict[str, Any]) -> None:
        """Load the table's snapshot, and let delta-spark keep it."""
        self._load(job["table"]).where("false").collect()

    def count(self, job: dict[str, Any]) -> int:
        return int(self._load(job["table"]).count())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["lakelog", "delta", "plain"])
    parser.add_argument("--jars", default="")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--conf", action="append", default=[], help="key=value of the session")
    args = parser.parse_args()
    ours = args.engine == "lakelog" and args.tuned
    workers = Path(sys.executable).with_name("lakelog-python") if ours else sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", str(workers))
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
