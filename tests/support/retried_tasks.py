"""Commands whose tasks run more than once: `python -m support.retried_tasks MODE FOLDER`.

Mode `fails`: each task does all of its work, and its first attempt fails then. Mode `twice`: each
task of Python does all of its work twice, and only the second answer counts, as where a
speculative attempt has finished too, and lost. Spark itself starts no speculative attempt on one
host. Both are done to every Python function that lakelog has Spark run: scans, writes, copies. The
JVM's tasks, which aggregate, shuffle and checkpoint, are retried because a Python function in the
condition, or in the source, fails within them.

Prints, as JSON, for each command what became of its table.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, table_changes, vacuum
from lakelog.spark import DeltaTable, write
from lakelog.spark.dml.merge import changed_positions as places
from support.always_jobs import always_by_jobs
from support.spark_confs import CONF
from support.spark_python import WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ.setdefault("PYSPARK_PYTHON", WORKERS)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
MODE, FOLDER = sys.argv[1:]
ROWS = 400


def _more_than_once(function: Any, mode: str) -> Any:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        if mode == "twice":
            given = list(batches)
            for _ in function(iter(given)):
                pass
            yield from function(iter(given))
            return
        yield from function(batches)
        if context is not None and context.attemptNumber() == 0:
            raise RuntimeError("this attempt fails at its end")

    return run


def _flaky(mode: str) -> Any:
    """True for each number, at the second attempt."""

    def true(number: int) -> bool:
        context = TaskContext.get()
        if mode == "fails" and context is not None and context.attemptNumber() == 0:
            raise RuntimeError("this attempt fails on the way")
        return True

    return sf.udf(true, "boolean")


def _plain(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr("id", "id % 2 AS p", "0L AS n")


def _rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    frame = _plain(spark, first, count)
    # Fails in the middle of Spark's own writer, and while a source is evaluated.
    return frame.mapInArrow(lambda batches: batches, frame.schema)


def _data_files(path: str) -> set[str]:
    root = Path(path)
    return {
        str(each.relative_to(root))
        for each in root.rglob("*.parquet")
        if "_delta_log" not in each.parts
    }


def _named(path: str) -> list[str]:
    """The data and change files of all versions, as often as they were added."""
    found = []
    for each in sorted((Path(path) / "_delta_log").glob("*.json")):
        for line in each.read_text().splitlines():
            action = json.loads(line)
            found += [unquote(action[k]["path"]) for k in ("add", "cdc") if k in action]
    return found


def _outcome(path: str) -> dict[str, Any]:
    log = DeltaLog.for_table(path)
    before = log.update()
    rows = before.to_arrow().select(["id", "n"]).sort_by("id").to_pylist()
    entry = next(iter(log.history(1)))
    changes = table_changes(path, before.version).read_all().to_pylist()
    named = _named(path)
    there = _data_files(path)
    conf = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    vacuum(path, 0, conf=conf)
    after = DeltaLog.for_table(path).update()
    return {
        "rows": [[row["id"], row["n"]] for row in rows],
        "metrics": {k: v for k, v in (entry.metrics or {}).items() if k.startswith("num")},
        "changes": sorted([each["_change_type"], each["id"], each["n"]] for each in changes),
        "named": named,
        "orphans": sorted(there - set(named)),
        "missing": sorted({unquote(p) for p in before.file_table["path"].to_pylist()} - there),
        "left": sorted(_data_files(path)),
        "current": sorted(unquote(p) for p in after.file_table["path"].to_pylist()),
        "same": after.to_arrow().sort_by("id").equals(before.to_arrow().sort_by("id"))
        if after.version == before.version
        else after.to_arrow().num_rows == before.to_arrow().num_rows,
    }


def main() -> None:
    """Run the commands, each on a table of its own."""
    builder = SparkSession.builder.master("local[2,3]").appName("lakelog-retried-tasks")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    true = _flaky(MODE)
    always_by_jobs()
    kind: Any = type(spark.range(1))
    real = kind.mapInArrow

    def mapped(self: DataFrame, function: Any, *args: Any, **named: Any) -> DataFrame:
        frame: DataFrame = real(self, _more_than_once(function, MODE), *args, **named)
        return frame

    kind.mapInArrow = mapped
    found = {}

    def table(name: str, partition_by: tuple[str, ...] = ("p",)) -> str:
        path = f"{FOLDER}/{name}"
        rows = _rows(spark, 0, ROWS)
        writer = write(rows).partitionBy(*partition_by) if partition_by else write(rows)
        writer.option("delta.enableChangeDataFeed", "true").save(path)
        return path

    for way, partition_by, rows in (("arrow", ("p",), _plain), ("native", (), _rows)):
        path = table(f"save {way}", partition_by)
        spark.conf.set("spark.lakelog.write.path", way)
        write(rows(spark, ROWS, 10)).mode("append").save(path)
        spark.conf.unset("spark.lakelog.write.path")
        found[f"save, {way}"] = _outcome(path)

    path = table("delete")
    DeltaTable.forPath(spark, path).delete((sf.col("id") % 4 == 1) & true("id"))
    found["delete"] = _outcome(path)

    path = table("update")
    DeltaTable.forPath(spark, path).update(
        (sf.col("id") % 4 == 1) & true("id"), {"n": sf.col("n") + 1}
    )
    found["update"] = _outcome(path)

    for way, few in (("rows", places.FEW_PLACES), ("bitmaps", -1)):
        places.FEW_PLACES = few
        path = table(f"merge {way}")
        source = _rows(spark, ROWS - 20, 30).withColumn("op", sf.expr("id % 4")).alias("s")
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        (
            merge.whenMatchedUpdate("s.op < 2", set={"n": "t.n + 1"})
            .whenMatchedDelete("s.op = 2")
            .whenNotMatchedInsert(values={"id": "s.id", "p": "s.p", "n": "7L"})
            .whenNotMatchedBySourceUpdate(sf.expr("t.id < 3"), set={"n": "t.n + 5"})
            .execute()
        )
        found[f"merge, {way}"] = _outcome(path)
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
