"""A driver that takes its commands by standard input, one JSON object a line, and answers each.

    python -m support.cluster_job '{"spark.master": "spark://…", …}'

    {"do": "merge", "path": "/lake/t", "stop": {"folder": "/tmp/s", "in": "write_task"}}

What a command changes is in `support.cluster_rows`. With `stop` the first attempt of each task of a
Python function whose name has `in` stops once it has done its first rows: it leaves a file
`FOLDER/stopped-PARTITION-PID`, and goes on when a file `FOLDER/go` is there. With `partition` only
the task of that number does; with `fail` it fails instead of stopping.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import lakelog.spark as delta
from support.always_jobs import always_by_jobs
from support.cluster_rows import FEW, ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

_PATIENCE = 200.0
_stop: dict[str, Any] | None = None


def _stopping(function: Any, stop: dict[str, Any]) -> Any:
    # Pickled by value: it needs nothing of ours where it runs.
    patience = _PATIENCE

    def here() -> None:
        context = TaskContext.get()
        if context is None or context.attemptNumber():
            return
        if stop.get("partition", context.partitionId()) != context.partitionId():
            return
        if stop.get("fail"):
            raise RuntimeError("this attempt fails on its way")
        import os

        folder = Path(stop["folder"])
        (folder / f"stopped-{context.partitionId()}-{os.getpid()}").touch()
        end = time.monotonic() + patience
        while not (folder / "go").exists():
            if time.monotonic() > end:
                raise TimeoutError(f"there is no {folder}/go")
            time.sleep(0.05)

    def seen(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            yield batch
            if not number:
                here()

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield from function(seen(batches))

    return run


def _let_tasks_stop(kind: Any) -> None:
    real = kind.mapInArrow

    def mapped(self: DataFrame, function: Any, *args: Any, **named: Any) -> DataFrame:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        if _stop is not None and _stop["in"] in name:
            function = _stopping(function, _stop)
        frame: DataFrame = real(self, function, *args, **named)
        return frame

    kind.mapInArrow = mapped


def _rows(spark: SparkSession, first: int, end: int, step: int = 1) -> DataFrame:
    return _given(spark.range(first, end, step, 2).selectExpr("id", "id % 2 AS p", "0L AS n"))


def _given(frame: DataFrame) -> DataFrame:
    """The rows, through Python if something is to happen to them there."""
    if _stop is None or _stop["in"] != "given_rows":
        return frame

    def given_rows(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    return frame.mapInArrow(given_rows, frame.schema)


def _create(spark: SparkSession, path: str) -> None:
    delta.write(_rows(spark, 0, ROWS)).partitionBy("p").save(path)


def _append(spark: SparkSession, path: str) -> None:
    rows = _rows(spark, ROWS, ROWS + FEW)
    job = delta.write(rows).mode("append").option("txnAppId", "append")
    job.option("txnVersion", 1).save(path)


def _replace(spark: SparkSession, path: str) -> None:
    rows = _rows(spark, 1001, 1001 + 2 * FEW, 2)
    delta.write(rows).mode("overwrite").option("replaceWhere", "p = 1").save(path)


def _delete(spark: SparkSession, path: str) -> None:
    delta.DeltaTable.forPath(spark, path).delete("id % 4 = 1")


def _update(spark: SparkSession, path: str) -> None:
    delta.DeltaTable.forPath(spark, path).update("id % 4 = 2", {"n": "n + 1"})


def _merge(spark: SparkSession, path: str) -> None:
    source = _rows(spark, ROWS - FEW, ROWS + FEW).alias("s")
    merge = delta.DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    (
        merge.whenMatchedUpdate(set={"n": "t.n + 1"})
        .whenNotMatchedInsert(values={"id": "s.id", "p": "s.p", "n": "7L"})
        .whenNotMatchedBySourceUpdate(sf.expr("t.id < 3"), set={"n": "t.n + 5"})
        .execute()
    )


def _optimize(spark: SparkSession, path: str) -> None:
    delta.DeltaTable.forPath(spark, path).optimize().executeCompaction()


def _zorder(spark: SparkSession, path: str) -> None:
    delta.DeltaTable.forPath(spark, path).optimize().executeZOrderBy("id")


def _stream(spark: SparkSession, path: str, source: str, checkpoint: str) -> None:
    rows = _given(delta.read_stream(spark).option("maxFilesPerTrigger", 2).load(source))
    writer = delta.write_stream(rows).trigger(availableNow=True)
    query = writer.option("checkpointLocation", checkpoint).start(path)
    query.awaitTermination()


def _count(spark: SparkSession, path: str) -> list[int]:
    found = delta.read(spark).load(path).agg(sf.count("*"), sf.sum("id"), sf.sum("n")).first()
    return [] if found is None else [int(each or 0) for each in found]


def _sql(spark: SparkSession, path: str, text: str) -> list[list[str]]:
    rows = spark.sql(text.replace("{t}", f"delta.`{path}`")).collect()
    return [[str(value) for value in row] for row in rows]


def _executors(spark: SparkSession, path: str) -> int:
    """How many there are, besides the driver."""
    jvm: Any = spark.sparkContext._jsc
    return int(jvm.sc().getExecutorMemoryStatus().size()) - 1


COMMANDS: dict[str, Callable[..., Any]] = {
    "create": _create,
    "append": _append,
    "replace": _replace,
    "delete": _delete,
    "update": _update,
    "merge": _merge,
    "optimize": _optimize,
    "zorder": _zorder,
    "stream": _stream,
    "count": _count,
    "sql": _sql,
    "executors": _executors,
}


def main() -> None:
    """Answer each line until standard input ends."""
    global _stop
    out = sys.stdout
    sys.stdout = sys.stderr
    builder = SparkSession.builder.appName("lakelog-cluster-job")
    for key, value in json.loads(sys.argv[1]).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    always_by_jobs()
    _let_tasks_stop(type(spark.range(1)))
    delta.enable(spark)
    for line in sys.stdin:
        asked = json.loads(line)
        name, _stop = asked.pop("do"), asked.pop("stop", None)
        try:
            answer = {"gave": COMMANDS[name](spark, **asked)}
        except Exception as exc:
            traceback.print_exc()
            notes = "\n".join(getattr(exc, "__notes__", ()))
            answer = {"error": f"{type(exc).__name__}: {exc}\n{notes}"}
        print(json.dumps(answer), file=out, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
