"""Whether the memory of a query that runs for days grows: two streams, thousands of batches.

    python benchmarks/stream_memory.py --batches 10000 [--without-spark | --on-driver]

One query writes a table, a row a batch; another reads it and writes a second one. Every twentieth
of the way the resident memory of the driver, of Spark's Python processes and of the JVM is
printed, the JVM's heap after a collection, and the driver's open files and threads. Both tables
are compacted meanwhile, or their own state would grow. With `--on-driver` the second query has the
option `readOnDriver`.

Without Spark the same is done by one process: it commits the batches, and asks the reader of a
stream for offsets, tasks and rows, as Spark's planner and its workers do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_COMPACTED_EVERY = 500


def _resident(pid: int) -> int:
    """Megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) >> 10
    return 0


def _family() -> dict[str, int]:
    """Megabytes of the driver, the JVM and all other Python processes below it."""
    children: dict[int, list[tuple[int, str]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(")")
        except OSError:
            continue
        name = head.partition("(")[2]
        children.setdefault(int(tail.split()[1]), []).append((int(stat.parent.name), name))
    found = {"driver": _resident(os.getpid()), "JVM": 0, "workers": 0}
    waiting = [os.getpid()]
    while waiting:
        for pid, name in children.get(waiting.pop(), []):
            waiting.append(pid)
            try:
                found["JVM" if name == "java" else "workers"] += _resident(pid)
            except OSError:
                continue
    return found


def _heap(spark: Any) -> int:
    """Megabytes in use after a collection."""
    spark._jvm.System.gc()
    runtime = spark._jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory()) >> 20


def _handles() -> str:
    """Open files and threads of this process."""
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return f"{files} open files, {sum(1 for _ in Path('/proc/self/task').iterdir())} threads"


def main() -> None:
    """Run the queries and print what they hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--without-spark", action="store_true", help="in one process, of Python")
    parser.add_argument("--on-driver", action="store_true", help="read without tasks of Python")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="stream-memory-"))
    try:
        if options.without_spark:
            _without_spark(root, options.batches)
        else:
            _with_spark(root, options.batches, options.on_driver)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _without_spark(root: Path, batches: int) -> None:
    import pyarrow as pa

    from lakelog.core import optimize, write_arrow
    from lakelog.spark.format.data_source import LakelogSource

    one, two = str(root / "one"), str(root / "two")

    def write(table: str, ids: list[int], batch: int) -> None:
        rows = pa.table({"value": pa.array(ids, pa.int64())})
        write_arrow(table, rows, mode="append", app_id="query", app_version=batch)

    write(one, [0], 0)
    source = LakelogSource({"path": one, "startingVersion": "0"})
    reader: Any = source.streamReader(source.schema())
    at, read = reader.initialOffset(), 0
    for batch in range(1, batches + 1):
        write(one, [batch], batch)
        end = reader.latestOffset(at, reader.getDefaultReadLimit())
        found = [
            row
            for task in reader.partitions(at, end)
            for rows in reader.read(task)
            for row in rows["value"].to_pylist()
        ]
        write(two, found, batch)
        reader.commit(end)
        at, read = end, read + len(found)
        if batch % _COMPACTED_EVERY == 0:
            for table in (one, two):
                optimize(table)
        if batch % max(1, batches // 20) == 0:
            print(f"batch {batch}: {_resident(os.getpid())} MB, {_handles()}", flush=True)
    if read != batches + 1:
        raise SystemExit(f"{read} rows were read of {batches + 1}")


def _with_spark(root: Path, batches: int, on_driver: bool) -> None:
    from pyspark.sql import SparkSession

    import lakelog.spark as delta
    from lakelog.core import DeltaLog, optimize

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        first = delta.write_stream(rate).option("checkpointLocation", str(root / "c1"))
        first_query = first.start(str(root / "one"))
        while not (DeltaLog.for_table(root / "one").table_exists()):
            time.sleep(0.5)
        stream = delta.read_stream(spark).option("readOnDriver", on_driver)
        second = delta.write_stream(stream.load(root / "one"))
        query = second.option("checkpointLocation", str(root / "c2")).start(str(root / "two"))
        step, at, compacted = max(1, batches // 20), 0, 0
        while at < batches:
            time.sleep(1)
            for each in (first_query, query):
                if each.exception() is not None:
                    raise SystemExit(str(each.exception()))
            done = query.lastProgress.batchId if query.lastProgress else 0
            if done - compacted >= _COMPACTED_EVERY:
                compacted = done
                for name in ("one", "two"):
                    optimize(root / name)
            if done >= at + step:
                at = done
                held = _family()
                heap = _heap(spark)
                print(f"batch {done}: {held} MB, heap {heap} MB, {_handles()}", flush=True)
    finally:
        for each in spark.streams.active:
            each.stop()
        spark.stop()


if __name__ == "__main__":
    main()
