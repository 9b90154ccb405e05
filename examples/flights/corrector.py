"""The fifth process: replaces a month that was delivered with errors by the right rows.

It starts as soon as it sees the month, while the month's writer is still at it, and that is
where commits get in each other's way: an append that lands while the replacement is being written
makes `ConcurrentAppendException`, and the job runs again. A delivery that comes after the
replacement shows in the history, and is replaced by the next round.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from child import Child
from pipeline import start_session, wide
from settings import PARTS

import lakelog.spark as delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    child = Child()
    settings, month = child.settings, child.settings.faulty_month
    spark = start_session(settings, child.name)
    child.wait_for_go()
    flights = wide(spark, settings, settings.source / "flights" / f"{month}.parquet")
    deliveries = tuple(f": month {month}, {part}" for part in PARTS.values())
    child.say("waiting", month=month)
    while True:
        seen = _deliveries(spark, settings.table, deliveries)
        if not seen:
            time.sleep(0.1)
            continue
        child.say("writing", month=month)
        job = (
            delta.write(flights)
            .mode("overwrite")
            .replaceWhere(f"month = {month}")
            .option("userMetadata", f"{child.name}: month {month} as it should be")
        )
        version = child.again_until_committed(partial(job.save, settings.table))
        child.say("committed", version=version, month=month)
        while len(seen) < len(PARTS):
            time.sleep(0.1)
            seen = _deliveries(spark, settings.table, deliveries)
        if version is None or max(seen) < version:
            break
        child.say("waiting", month=month)
    child.say("done")
    spark.stop()


def _deliveries(spark: SparkSession, table: str, names: tuple[str, ...]) -> list[int]:
    """The versions that brought the month's deliveries."""
    if not delta.DeltaTable.isDeltaTable(spark, table):
        return []
    history = delta.DeltaTable.forPath(spark, table).log.history()
    return [e.version for e in history if (e.user_metadata or "").endswith(names)]


if __name__ == "__main__":
    main()
