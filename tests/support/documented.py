"""A session and a folder in which the examples of Delta's documentation run, in our own words.

`EXAMPLES` is the list of what its pages show, by meaning, and of the test that holds each.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import lakelog.spark as delta
from lakelog.spark import DeltaTable
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """A session that reads Delta's documentation, and a folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def path(self, name: str = "t") -> str:
        """Where a table is."""
        return str(self.folder / name)

    def __call__(self, sql: str) -> DataFrame:
        """Run a statement; `{t}`, `{source}` and `{copy}` are tables."""
        for name in ("t", "source", "copy"):
            sql = sql.replace(f"{{{name}}}", f"delta.`{self.path(name)}`")
        return self.spark.sql(sql)

    def table(self, name: str = "t") -> DeltaTable:
        """A table, as Python code opens it."""
        return DeltaTable.forPath(self.spark, self.path(name))

    def read(self, name: str = "t", **options: Any) -> DataFrame:
        """A table's rows."""
        return self.spark.read.format("delta").options(**options).load(self.path(name))

    def ids(self, name: str = "t", column: str = "id", **options: Any) -> list[Any]:
        """One column, in order."""
        return sorted(row[0] for row in self.read(name, **options).select(column).collect())

    def stream(self, name: str = "t", **options: Any) -> DataFrame:
        """A table's rows to come."""
        return self.spark.readStream.format("delta").options(**options).load(self.path(name))

    def run(self, frame: DataFrame, name: str, mode: str = "append", **options: Any) -> None:
        """A stream into a table, as far as it is now."""
        writer = frame.writeStream.format("delta").outputMode(mode).options(**options)
        writer = writer.option("checkpointLocation", self.path(f"{name}-cp"))
        to_end(lambda: writer.trigger(availableNow=True).start(self.path(name)))


@contextlib.contextmanager
def opened(spark: SparkSession, folder: Path) -> Iterator[Lake]:
    """An enabled session with a database of its own as the current one."""
    delta.enable(spark)
    spark.sql(f"CREATE DATABASE documented LOCATION '{folder / 'db'}'")
    spark.catalog.setCurrentDatabase("documented")
    yield Lake(spark, folder)
    spark.catalog.setCurrentDatabase("default")
    spark.sql("DROP DATABASE documented CASCADE")
    delta.disable(spark)


_FIRST = "integration/test_delta_documentation.py::"
_MORE = "integration/test_delta_documentation_more.py::"
EXAMPLES: dict[str, dict[str, str]] = {
    "Quick start": {
        "make a table, read it, overwrite it, change it by condition, MERGE, travel in time":
            _FIRST + "test_quick_start",
        "a stream into a table, and out of it": _FIRST + "test_quick_start",
    },
    "Table batch reads and writes": {
        "CREATE TABLE by SQL, by DataFrameWriter, by the builder": _FIRST + "test_batches",
        "partitions, generated columns, comments, properties": _FIRST + "test_batches",
        "identity columns: always, by default, with a start and a step":
            _MORE + "test_identity_columns",
        "default values": _FIRST + "test_batches",
        "append, insertInto, saveAsTable, writeTo": _FIRST + "test_batches",
        "replaceWhere on partitions, dynamic overwrite": _FIRST + "test_batches",
        "replaceWhere on data columns, by option and by SQL":
            _MORE + "test_replace_where_on_data_columns",
        "idempotent writes by txnAppId and txnVersion": _FIRST + "test_batches",
        "userMetadata, as an option": _FIRST + "test_batches",
        "userMetadata, as a conf; defaults of properties, as confs": _MORE + "test_settings",
        "versionAsOf, timestampAsOf, @v1": _FIRST + "test_batches",
        "rows of yesterday put back; the newest version, by its number":
            _MORE + "test_rows_of_an_older_version_are_put_back",
        "columns added, ordered, renamed, dropped; mergeSchema, overwriteSchema":
            _FIRST + "test_batches",
        "columns and types replaced by REPLACE COLUMNS": _MORE + "test_changed_columns",
        "temporary views over tables": _MORE + "test_changed_columns",
    },
    "Table streaming reads and writes": {
        "maxFilesPerTrigger; append, complete; skipChangeCommits; startingVersion; toTable":
            _FIRST + "test_streams",
        "maxBytesPerTrigger, startingTimestamp, ignoreDeletes, ignoreChanges":
            _MORE + "test_limits_and_starts_of_streams",
        "schemaTrackingLocation": _MORE + "test_tracked_columns",
        "txnAppId and txnVersion in foreachBatch, to two tables":
            _MORE + "test_idempotent_writes_of_a_batch",
        "MERGE in foreachBatch": _FIRST + "test_row_changes",
    },
    "Table deletes, updates, and merges": {
        "DELETE, UPDATE, MERGE with all clauses, schema evolution": _FIRST + "test_row_changes",
        "deduplication, slowly changing data, changes with deletions":
            _MORE + "test_merges_by_use",
    },
    "Change data feed": {
        "enabling; a range of versions; a stream; table_changes":
            _FIRST + "test_the_change_data_feed",
        "a range of times, by reader and by SQL; the conf for new tables":
            _MORE + "test_a_feed_by_time",
    },
    "Table utility commands": {
        "VACUUM, HISTORY, DETAIL, GENERATE, CONVERT, RESTORE, SHALLOW CLONE, OPTIMIZE":
            _FIRST + "test_utility_commands",
        "VACUUM LITE; CONVERT with partitions; RESTORE to a time": _MORE + "test_upkeep",
        "deep clones, and clones of clones, by SQL and by Python": _MORE + "test_clones",
        "REORG … APPLY (PURGE), after deletion vectors or dropped columns": _MORE + "test_purge",
    },
    "Constraints": {"NOT NULL, CHECK": _FIRST + "test_constraints"},
    "Concurrency control": {
        "conflicts, and partitions that part them": _FIRST + "test_concurrency",
    },
    "Optimizations": {
        "OPTIMIZE of a partition; clustering; optimized writes; auto compaction; skipping columns":
            _MORE + "test_layouts",
    },
    "Features and protocol": {
        "deletion vectors, type widening, row tracking, DROP FEATURE, upgrade":
            _MORE + "test_features",
    },
}  # fmt: skip
"""Page -> what it shows -> the test that does it."""
