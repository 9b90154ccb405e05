"""Bad input to streams, SQL and names: a condition, what to do, and nothing half done.

Removed files, and two queries with one checkpoint, are in the tests of streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import (
    AnalysisException,
    StreamingQueryException,
    UnsupportedOperationException,
)

import lakelog.spark as delta
from lakelog.core import DeltaLog, optimize, read_arrow, vacuum, write_arrow
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError
from lakelog.spark.names.plain import plain_sql
from support.to_end import TOO_SLOW, TRIES, to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    delta.enable(spark)
    yield spark
    delta.disable(spark)


class Copies:
    """Copies tables of a folder into its table `copy`, each time as a query of its own."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def append(self, table: str, *ids: int, **more: list[Any]) -> None:
        rows = pa.table({"id": pa.array(ids, pa.int64()), **more})
        write_arrow(str(self.folder / table), rows, mode="append", schema_mode="merge")

    def started(
        self, table: str, checkpoint: str = "a", trigger: dict[str, Any] | None = None, **given: Any
    ) -> Any:
        frame = (
            self.spark.readStream.format("delta").options(**given).load(str(self.folder / table))
        )
        writer = frame.writeStream.format("delta").option("mergeSchema", "true")
        writer = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{checkpoint}"))
        writer = writer.trigger(**(trigger or {"availableNow": True}))
        return writer.start(str(self.folder / "copy"))

    def run(self, table: str, checkpoint: str = "a", **options: Any) -> None:
        to_end(lambda: self.started(table, checkpoint, **options))

    def refused(self, table: str, checkpoint: str = "a", **options: Any) -> str:
        """What a query says that must fail and leave the copy as it was."""
        log = DeltaLog.for_table(self.folder / "copy")
        before = log.update().version if log.table_exists() else None
        with pytest.raises(StreamingQueryException) as caught:
            self.run(table, checkpoint, **options)
        assert (log.update().version if log.table_exists() else None) == before
        return str(caught.value)

    def copied(self) -> list[int]:
        return sorted(read_arrow(str(self.folder / "copy"))["id"].to_pylist())


@pytest.fixture
def copies(enabled: SparkSession, tmp_path: Path) -> Copies:
    return Copies(enabled, tmp_path)


def test_a_stream_from_a_vacuumed_version(copies: Copies) -> None:
    source = str(copies.folder / "source")
    for number in range(3):
        copies.append("source", number)
    optimize(source)
    # What went in the same tick of the files' clock is kept for the next VACUUM.
    removed = (vacuum(source, 0, conf=UNCHECKED).num_files for _ in range(1000))
    assert next(filter(None, removed)) == 3
    message = copies.refused("source", startingVersion=0)
    assert "version 0" in message
    assert "another checkpointLocation and a startingVersion after that version" in message
    copies.append("source", 3)
    copies.run("source", "b", startingVersion=3)
    assert copies.copied() == [3]

    DeltaLog.for_table(source).checkpoint()
    (copies.folder / "source/_delta_log/00000000000000000000.json").unlink()
    assert "DELTA_VERSION_NOT_FOUND" in copies.refused("source", "c", startingVersion=0)


def _running(copies: Copies) -> Any:
    """A query that has read all there is; see `to_end` for the tries."""
    for left in reversed(range(TRIES)):
        query = copies.started("source", trigger={"processingTime": "0 seconds"})
        try:
            query.processAllAvailable()
        except StreamingQueryException as exc:
            if not left or TOO_SLOW not in str(exc):
                raise
        else:
            return query
    raise AssertionError("unreachable")


def test_the_columns_change_while_a_query_runs(copies: Copies) -> None:
    copies.append("source", 1)
    query = _running(copies)
    copies.append("source", 2)
    query.processAllAvailable()
    copies.append("source", 3, more=["new"])
    with pytest.raises(StreamingQueryException, match=r"DELTA_SCHEMA_CHANGED[\w]*\]"):
        query.awaitTermination()
    assert copies.copied() == [1, 2]
    copies.run("source")
    assert copies.copied() == [1, 2, 3]
    assert read_arrow(str(copies.folder / "copy"), ["more"], where="id = 3")["more"][0].as_py() == (
        "new"
    )


def test_a_checkpoint_of_another_table(copies: Copies) -> None:
    copies.append("one", 1)
    copies.append("other", 2)
    copies.run("one")
    message = copies.refused("other")
    assert "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE" in message
    assert "checkpoint" in message
    copies.append("one", 3)
    copies.run("one")
    assert copies.copied() == [1, 3]


@pytest.fixture
def named(enabled: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A database `bad` with the Delta table `t`, the Parquet table `q`, and a view `w` of it."""
    enabled.sql(f"CREATE DATABASE bad LOCATION '{tmp_path / 'db'}'")
    enabled.catalog.setCurrentDatabase("bad")
    enabled.range(4).selectExpr("id", "id AS v").write.format("delta").saveAsTable("t")
    enabled.range(2).selectExpr("id", "id AS v").write.format("parquet").saveAsTable("q")
    enabled.sql("CREATE VIEW w AS SELECT * FROM q")
    yield enabled
    enabled.catalog.setCurrentDatabase("default")
    enabled.sql("DROP DATABASE bad CASCADE")


def version(spark: SparkSession) -> int:
    log: DeltaLog = delta.DeltaTable.forName(spark, "bad.t").log
    return log.update().version


def test_statements_that_only_start_like_ours(named: SparkSession) -> None:
    for text in (
        "DELETE t WHERE id = 1",
        "UPDATE STATISTICS t",
        "MERGE BRANCH t INTO q",
        "INSERT ALL INTO t VALUES (1, 2)",
        "ALTER INDEX t REBUILD",
        "TRUNCATE PARTITIONS t",
        "CREATE INDEX i ON t (id)",
        "DESCRIBE HISTORICALLY t",
        "SHOW FEATURES t",
        "RESTORED TABLE t",
    ):
        with pytest.raises(AnalysisException) as theirs:
            plain_sql(named, text)
        with pytest.raises(AnalysisException) as ours:
            named.sql(text)
        # Plans have numbers that are never the same.
        assert str(ours.value).partition("\n")[0] == str(theirs.value).partition("\n")[0]
    for text in (
        "OPTIMIZE t NOW",
        "VACUUM t KEEP 3 DAYS",
        "RESTORE t FROM BACKUP b",
        "UPDATE t v = 1",
    ):
        with pytest.raises(DeltaAnalysisError, match=r"PARSE_SYNTAX_ERROR[\s\S]*line 1, column"):
            named.sql(text)
    assert version(named) == 0


def test_names_of_tables_that_are_not_delta(named: SparkSession) -> None:
    for name in ("q", "w", "bad.q"):
        for text in (
            "OPTIMIZE {}",
            "VACUUM {}",
            "DESCRIBE HISTORY {}",
            "DESCRIBE DETAIL {}",
            "RESTORE {} TO VERSION AS OF 0",
            "REORG TABLE {} APPLY (PURGE)",
            "GENERATE symlink_format_manifest FOR TABLE {}",
        ):
            with pytest.raises(DeltaAnalysisError, match="DELTA_TABLE_ONLY_OPERATION"):
                named.sql(text.format(name))
        for text in (
            "UPDATE {} SET v = 1",
            "DELETE FROM {} WHERE id = 1",
            "MERGE INTO {} x USING t ON x.id = t.id WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises((AnalysisException, UnsupportedOperationException)):
                named.sql(text.format(name))
        with pytest.raises(DeltaAnalysisError, match="DELTA_"):
            delta.DeltaTable.forName(named, name)
    wanted = r"DELTA_MISSING_DELTA_TABLE.*Did you mean bad\.t\?"
    with pytest.raises(TableNotFoundError, match=wanted):
        delta.DeltaTable.forName(named, "tt")
    assert sorted(map(tuple, named.table("q").collect())) == [(0, 0), (1, 1)]
    assert version(named) == 0


def test_parameters_without_a_value(named: SparkSession) -> None:
    texts = (
        "UPDATE t SET v = {}",
        "DELETE FROM t WHERE id = {}",
        "MERGE INTO t USING q ON t.id = q.id AND t.id < {} WHEN MATCHED THEN DELETE",
        "INSERT INTO t VALUES (9, {})",
        "INSERT INTO t REPLACE WHERE id = {} SELECT 9, 9",
        "CREATE OR REPLACE TABLE t USING delta AS SELECT {} AS id",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (v > {})",
        "OPTIMIZE t WHERE id = {}",
        "SELECT * FROM t WHERE id = {}",
    )
    for text in texts:
        for mark, args in ((":x", {"y": 1}), ("?", [])):
            with pytest.raises(
                (DeltaAnalysisError, AnalysisException), match="UNBOUND_SQL_PARAMETER"
            ):
                named.sql(text.format(mark), args)
        with pytest.raises((DeltaAnalysisError, AnalysisException)):
            named.sql(text.format(":x"))
    assert version(named) == 0
    assert named.table("t").count() == 4


def test_a_name_in_two_catalogs(named: SparkSession) -> None:
    """Derby's is one of Spark's own; what a name means there is Spark's to say."""
    key = "spark.sql.catalog.other"
    conf = {
        key: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{key}.url": "jdbc:derby:memory:two_catalogs;create=true",
        f"{key}.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    }
    for name, value in conf.items():
        named.conf.set(name, value)
    try:
        named.sql("CREATE NAMESPACE other.bad")
        named.sql("CREATE TABLE other.bad.t (id BIGINT, v BIGINT)")
        named.sql("INSERT INTO other.bad.t VALUES (70, 70)")
        one, two = "SELECT max(id) FROM bad.t", "SELECT max(id) FROM other.bad.t"
        assert [named.sql(text).first()[0] for text in (one, two)] == [3, 70]  # type: ignore[index]
        joined = "SELECT count(*) FROM bad.t a JOIN other.bad.t b ON a.id < b.id"
        assert named.sql(joined).first()[0] == 4  # type: ignore[index]
        with pytest.raises(DeltaAnalysisError, match=r"another catalog.*spark_catalog\.database"):
            delta.DeltaTable.forName(named, "other.bad.t")
        with pytest.raises(DeltaAnalysisError, match="DELTA_TABLE_ONLY_OPERATION"):
            named.sql("OPTIMIZE other.bad.t")
        named.catalog.setCurrentCatalog("other")
        try:
            named.sql("INSERT INTO bad.t VALUES (71, 71)")
            assert named.table("bad.t").count() == 2
            assert named.table("spark_catalog.bad.t").count() == 4
            named.sql("UPDATE spark_catalog.bad.t SET v = 9 WHERE id = 0")
        finally:
            named.catalog.setCurrentCatalog("spark_catalog")
            named.catalog.setCurrentDatabase("bad")
        assert named.table("bad.t").where("v = 9").count() == 1
        assert version(named) == 1
        named.sql("CREATE DATABASE spark_catalog.other")
        named.sql("CREATE TABLE spark_catalog.other.t (id BIGINT) USING delta")
        named.sql("INSERT INTO spark_catalog.other.t VALUES (5)")
        assert named.table("spark_catalog.other.t").count() == 1
        with pytest.raises(AnalysisException, match=r"TABLE_OR_VIEW_NOT_FOUND|FAILED_JDBC"):
            named.table("other.t").count()  # the catalog comes first, as in Spark
    finally:
        named.sql("DROP DATABASE IF EXISTS spark_catalog.other CASCADE")
        named.sql("DROP TABLE IF EXISTS other.bad.t")
        for name in conf:
            named.conf.unset(name)
