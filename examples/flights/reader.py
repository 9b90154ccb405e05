"""The reader: sees whole commits only, and the same rows however often it reads a version.

When the writers are done it becomes the analyst: history, counts, and answers from the table.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from child import Child
from pipeline import start_session
from source import expectation

import lakelog.spark as delta

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Counts = dict[int, tuple[int, int]]
"""Month -> rows and miles."""


class Reader:
    """Reads the newest version again and again, and the version before once more."""

    def __init__(self, child: Child, spark: SparkSession) -> None:
        self._child, self._spark = child, spark
        self._table = child.settings.table
        self._allowed: dict[int, set[int]] = {}
        self._last: tuple[int, Counts] | None = None
        self._seen: set[int] = set()
        self._reads = self._rereads = 0

    def run(self) -> None:
        """Read until the main process says that the writers are done, and once after that."""
        self._allowed = _allowed_counts(self._child)
        while not delta.DeltaTable.isDeltaTable(self._spark, self._table):
            self._child.stopped.wait(0.1)
        table = delta.DeltaTable.forPath(self._spark, self._table)
        while True:
            last_round = self._child.stopped.is_set()
            self._read(table.log.update().version)
            if last_round:
                break
            self._child.stopped.wait(0.1)

    def summary(self) -> dict[str, Any]:
        return {"reads": self._reads, "versions": len(self._seen), "rereads": self._rereads}

    def _read(self, version: int) -> None:
        counts = self._counts(version)
        self._reads += 1
        if self._last is not None:
            before, counts_before = self._last
            if version < before:
                raise AssertionError(f"version {version} was newest after version {before}")
            if version > before:
                again = self._counts(before)
                self._rereads += 1
                if again != counts_before:
                    raise AssertionError(f"version {before} was {counts_before} and is {again} now")
            elif counts != counts_before:
                raise AssertionError(f"version {version} was {counts_before} and is {counts}")
        for month, (rows, _) in counts.items():
            if rows not in self._allowed[month]:
                raise AssertionError(
                    f"version {version} shows {rows} rows of month {month}, which is no whole "
                    f"number of commits: {sorted(self._allowed[month])}"
                )
        self._last = version, counts
        self._seen.add(version)
        total = sum(rows for rows, _ in counts.values())
        self._child.say("saw", version=version, rows=total, months=len(counts), **self.summary())

    def _counts(self, version: int) -> Counts:
        frame = delta.read(self._spark).option("versionAsOf", version).load(self._table)
        return counts_by_month(frame)


def counts_by_month(frame: DataFrame) -> Counts:
    from pyspark.sql import functions as f

    rows = frame.groupBy("month").agg(f.count("*").alias("n"), f.sum("distance").alias("miles"))
    return {int(row.month): (int(row.n), int(row.miles)) for row in rows.collect()}


def _allowed_counts(child: Child) -> dict[int, set[int]]:
    """Month -> the row counts that a whole number of its commits makes."""
    allowed = {}
    for month, want in expectation(child.settings).items():
        allowed[month] = set(accumulate(want["parts"]))
        if month == child.settings.faulty_month:
            # Replaced, and perhaps one delivery came after that.
            allowed[month] |= {want["rows"], want["rows"] + want["parts"][-1]}
    return allowed


def _history(spark: SparkSession, table: str) -> list[dict[str, Any]]:
    rows = delta.DeltaTable.forPath(spark, table).history().orderBy("version").collect()
    return [
        {
            "version": row.version,
            "time": row.timestamp.timestamp(),
            "operation": row.operation,
            "parameters": row.operationParameters,
            "metrics": row.operationMetrics,
            "read_version": row.readVersion,
            "who": row.userMetadata,
        }
        for row in rows
    ]


def _answers(flights: DataFrame) -> dict[str, list[list[Any]]]:
    from pyspark.sql import functions as f

    late = f.round(f.avg("arr_delay"), 1)
    share = f.round(100 * f.avg((f.col("arr_delay") > 30).cast("int")), 1)
    carriers = (
        flights.groupBy("airline")
        .agg(f.count("*").alias("flights"), late.alias("late"), share.alias("share"))
        .orderBy(f.desc("late"))
        .limit(6)
    )
    wind = f.when(f.col("visib") < 2, "fog: under 2 miles of sight")
    wind = wind.when(f.col("precip") > 0, "rain or snow")
    wind = wind.when(f.col("wind_speed") > 20, "dry, wind over 20 mph")
    weather = (
        flights.where("temp IS NOT NULL")
        .groupBy(wind.otherwise("fair").alias("weather"))
        .agg(
            f.count("*").alias("flights"),
            f.round(f.avg("dep_delay"), 1).alias("late"),
            f.round(100 * f.avg(f.col("dep_time").isNull().cast("int")), 1).alias("cancelled"),
        )
        .orderBy(f.desc("late"))
    )
    return {
        "carriers": [list(row) for row in carriers.collect()],
        "weather": [list(row) for row in weather.collect()],
    }


def main() -> None:
    child = Child()
    table = child.settings.table
    spark = start_session(child.settings, child.name)
    child.wait_for_go()
    reader = Reader(child, spark)
    reader.run()
    child.say("analysing")
    flights = delta.DeltaTable.forPath(spark, table).toDF()
    child.say(
        "result",
        counts=counts_by_month(flights),
        columns=len(flights.columns),
        history=_history(spark, table),
        answers=_answers(flights),
        reader=reader.summary(),
    )
    child.say("done")
    spark.stop()


if __name__ == "__main__":
    main()
