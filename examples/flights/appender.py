"""A process beside delta-spark's: appends its deliveries, each in one commit.

Under the name `delta-spark` it runs where nothing of lakelog is installed: delta-spark's own reader
and writer, in a JVM whose conf names `io.lakelog.BridgeLogStore`.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from child import Child
from pipeline import start_session
from settings import DELTA_SPARK, LAKELOG_ALONE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from settings import Settings

    Append = Callable[[Path, str], Any]

_THREADS = 2


def main() -> None:
    child = Child()
    settings = child.settings
    begin = {DELTA_SPARK: _DeltaSpark, LAKELOG_ALONE: _Arrow}.get(child.name, _Spark)
    writer = begin(settings, child.name)

    def deliver(number: int) -> None:
        delivery = settings.source / "deliveries" / f"{number}.parquet"
        if child.name != DELTA_SPARK:
            child.turns.acquire()
        # An append reads nothing that another could change: both rebase it until it is in.
        writer.append(delivery, f"{child.name}: delivery {number}")
        child.say("committed", delivery=number)

    child.wait_for_go()
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(deliver, settings.deliveries[child.name]):
            pass
    child.say("written")
    child.stopped.wait()
    child.say("result", counts=writer.counts())
    child.say("done")


class _DeltaSpark:
    def __init__(self, settings: Settings, name: str) -> None:
        self._spark = start_session(replace(settings, conf=settings.delta_spark_conf), name)
        self._table = settings.table

    def append(self, delivery: Path, text: str) -> None:
        rows = self._spark.read.parquet(str(delivery))
        writer = rows.write.format("delta").mode("append").option("userMetadata", text)
        writer.save(self._table)

    def counts(self) -> dict[int, tuple[int, int]]:
        return _counts(self._spark.read.format("delta").load(self._table))


class _Spark:
    def __init__(self, settings: Settings, name: str) -> None:
        self._spark = start_session(settings, name)
        self._table = settings.table

    def append(self, delivery: Path, text: str) -> None:
        import lakelog.spark as delta

        rows = self._spark.read.parquet(str(delivery))
        delta.write(rows).mode("append").option("userMetadata", text).save(self._table)

    def counts(self) -> dict[int, tuple[int, int]]:
        import lakelog.spark as delta

        return _counts(delta.read(self._spark).load(self._table))


class _Arrow:
    def __init__(self, settings: Settings, _name: str) -> None:
        self._settings = settings

    def append(self, delivery: Path, text: str) -> None:
        import pyarrow.parquet as pq

        from lakelog.core import write_arrow

        conf, rows = self._settings.conf, pq.read_table(delivery)
        write_arrow(self._settings.table, rows, mode="append", conf=conf, user_metadata=text)

    def counts(self) -> dict[int, tuple[int, int]]:
        from lakelog.core import read_arrow

        conf, columns = self._settings.conf, ["month", "distance"]
        rows = read_arrow(self._settings.table, columns=columns, conf=conf)
        found = rows.group_by("month").aggregate([("month", "count"), ("distance", "sum")])
        return {
            each["month"]: (each["month_count"], each["distance_sum"]) for each in found.to_pylist()
        }


def _counts(frame: Any) -> dict[int, tuple[int, int]]:
    from pyspark.sql import functions as f

    rows = frame.groupBy("month").agg(f.count("*").alias("n"), f.sum("distance").alias("miles"))
    return {int(row.month): (int(row.n), int(row.miles)) for row in rows.collect()}


if __name__ == "__main__":
    sys.exit(main())
