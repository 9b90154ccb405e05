"""What delta-spark does in a script of its own on tables of Unity Catalog; see `DeltaSparkPeer`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# A neighbour of the program that runs this.
from delta_spark_transaction import (  # type: ignore[import-not-found]  # no package, there
    JvmTransaction,
)


def append_at_once(spark: Any, table: str, writers: str, first: str, commits: str) -> list[int]:
    """Threads of one session insert rows, one a commit. Gives the ids of those that returned.

    Args:
        spark: the session.
        table: by its name; it has the column `id`.
        writers: how many threads.
        first: the first id of the first thread; the next one begins a thousand later.
        commits: of each thread.
    """

    def append(start: int) -> list[int]:
        numbers = list(range(start, start + int(commits)))
        for number in numbers:
            spark.sql(f"INSERT INTO {table} (id) VALUES ({number})")
        return numbers

    with ThreadPoolExecutor(int(writers)) as pool:
        starts = [int(first) + 1000 * each for each in range(int(writers))]
        return [number for found in pool.map(append, starts) for number in found]


class _ByName(JvmTransaction):  # type: ignore[misc]  # as above
    """A transaction on what the catalog knows by a name; its beginning asks the catalog."""

    def __init__(self, spark: Any, table: Any) -> None:
        self._spark = spark._jsparkSession
        self._jvm = spark._jvm
        self._delta = spark._jvm.org.apache.spark.sql.delta
        none = spark._jvm.scala.Option.empty()
        self._txn = table.deltaLog().startTransaction(table.catalogTable(), none)


def commit_times(spark: Any, table: str, commits: str, first: str) -> list[float]:
    """Commits of one action in a row, a blind append of a file that is not there: seconds of each.

    Args:
        spark: the session.
        table: by its name.
        commits: how many.
        first: a number that no earlier call had, for the files' names.
    """
    catalog, schema, name = table.split(".")
    names = spark._jvm.org.apache.spark.sql.connector.catalog.Identifier
    namespace = spark._sc._gateway.new_array(spark._jvm.java.lang.String, 1)
    namespace[0] = schema
    manager = spark._jsparkSession.sessionState().catalogManager()
    known = manager.catalog(catalog).loadTable(names.of(namespace, name))
    took = []
    for number in range(int(commits)):
        add = {
            "path": f"part-{first}-{number}.parquet",
            "partitionValues": {},
            "size": 1000,
            "modificationTime": 1,
            "dataChange": True,
            "stats": '{"numRecords":1}',
        }
        start = time.perf_counter()
        _ByName(spark, known).commits("WRITE", [{"add": add}])
        took.append(time.perf_counter() - start)
    return took


def append_times(spark: Any, table: str, commits: str) -> list[float]:
    """Statements in a row that insert one row each: seconds of each."""
    took = []
    for number in range(int(commits)):
        start = time.perf_counter()
        spark.sql(f"INSERT INTO {table} VALUES ({number})")
        took.append(time.perf_counter() - start)
    return took
