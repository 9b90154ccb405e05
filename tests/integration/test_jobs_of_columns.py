"""A change of few rows takes no more Spark jobs by Columns than by text: none for the change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, write_arrow
from lakelog.spark import DeltaTable
from lakelog.spark.session.session import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
col = sf.col


def merge(table: DeltaTable, source: Any, form: int) -> None:
    on = ("t.id = s.id", col("t.id") == col("s.id"))
    is_old = ("s.n > 1.5D", col("s.n") > 1.5)
    name = ("concat(t.name, '!')", sf.concat("t.name", sf.lit("!")))
    number = ("t.n + 1", col("t.n") + 1)
    inserted = ("s.id", col("s.id"))
    (
        table.alias("t")
        .merge(source.alias("s"), on[form])
        .whenMatchedUpdate(is_old[form], {"name": name[form], "n": number[form]})
        .whenNotMatchedInsert(values={"id": inserted[form], "name": "'new'"})
        .execute()
    )


def delete(table: DeltaTable, _: Any, form: int) -> None:
    table.delete(("id IN (1, 2) AND n < 9", col("id").isin(1, 2) & (col("n") < 9))[form])


def update(table: DeltaTable, _: Any, form: int) -> None:
    condition = ("id % 2 = 0", col("id") % 2 == 0)
    name = ("upper(name)", sf.upper("name"))
    table.update(condition[form], {"name": name[form]})


class Jobs:
    """Counts what Spark runs."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spark, self._plans = spark, 0
        if is_connect(spark):
            client: Any = spark.client
            run = client._execute_and_fetch_as_iterator

            def counted(*args: Any, **more: Any) -> Any:
                self._plans += 1
                return run(*args, **more)

            monkeypatch.setattr(client, "_execute_and_fetch_as_iterator", counted)

    def of(self, work: Callable[[], object]) -> int:
        """How many jobs some work takes; over Connect how many plans the server carries out."""
        if is_connect(self._spark):
            before = self._plans
            work()
            return self._plans - before
        context = self._spark.sparkContext
        before = self._last(context)
        work()
        return self._last(context) - before

    @staticmethod
    def _last(context: Any) -> int:
        """The number that the next job has, which every job takes, of whatever thread."""
        return int(context._jsc.sc().dagScheduler().nextJobId())


def test_the_counter_sees_a_job(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Jobs(spark, monkeypatch).of(lambda: spark.range(5, numPartitions=2).collect()) == 1


@pytest.mark.connect
@pytest.mark.parametrize("change", [merge, delete, update])
def test_columns_take_no_more_jobs_than_text(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[DeltaTable, Any, int], None],
) -> None:
    jobs = Jobs(spark, monkeypatch)
    assert jobs.of(lambda: spark.range(7).groupBy().count().collect()) > 0
    few = ", ".join(f"({i}L, {i / 10}D, 's{i}')" for i in range(20))
    source = spark.sql(f"SELECT * FROM VALUES {few} AS v (id, n, name)")
    counts, rows = [], []
    for form in (0, 1):
        path = str(tmp_path / str(form))
        data = {"id": pa.array(range(10), pa.int64()), "n": [0.5 * i for i in range(10)]}
        write_arrow(path, pa.table({**data, "name": [f"p{i}" for i in range(10)]}))
        table = DeltaTable.forPath(spark, path)
        counts.append(jobs.of(partial(change, table, source, form)))
        found = DeltaLog.for_table(path).snapshot
        rows.append(sorted(found.to_arrow().to_pylist(), key=lambda row: row["id"]))
        assert found.version == 1
    assert rows[0] == rows[1]
    assert counts[0] == counts[1]
    if not is_connect(spark):
        fetching = 1 if change is merge else 0  # the rows of the source
        assert counts == [fetching, fetching]
