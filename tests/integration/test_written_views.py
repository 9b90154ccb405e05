"""Changes of rows by way of temporary views, in an enabled session: as delta-spark, or in words.

What is expected was seen of delta-spark, but for views of an older version: INSERT goes through
them there, and is refused here as the other statements are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

import lakelog.spark as delta
from lakelog.core import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.plain import plain_sql
from lakelog.spark.session.session import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect


class Session:
    """An enabled session, and a table of the rows (1, 10), (2, 20), (3, 30)."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, str(path)
        self.run("INSERT INTO /T VALUES (1, 10), (2, 20), (3, 30)")

    def run(self, text: str) -> None:
        self.spark.sql(text.replace("/T", f"delta.`{self.path}`")).collect()

    def rows(self, name: str = "written_v") -> list[tuple[Any, ...]]:
        """Those of the table, which a view shows too."""
        found = sorted(tuple(row) for row in delta.read(self.spark).load(self.path).collect())
        assert sorted(tuple(row) for row in self.spark.table(name).collect()) == found
        return found

    def refused(self, text: str, match: str) -> None:
        version = DeltaLog.for_table(self.path).snapshot.version
        with pytest.raises(DeltaAnalysisError, match=match):
            self.run(text)
        assert DeltaLog.for_table(self.path).snapshot.version == version


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[Session]:
    spark = spark if is_connect(spark) else spark.newSession()
    delta.enable(spark)
    try:
        path = tmp_path / "t"
        spark.sql(f"CREATE TABLE delta.`{path}` (a INT, b INT) USING delta")
        yield Session(spark, path)
    finally:
        for name in ("written_v", "written_w"):
            spark.catalog.dropTempView(name)
        spark.catalog.dropGlobalTempView("written_g")
        delta.disable(spark)


def test_what_is_done_to_a_view_of_a_dataframe_is_done_to_its_table(session: Session) -> None:
    spark = session.spark
    spark.read.format("delta").load(session.path).createOrReplaceTempView("written_v")
    session.run("INSERT INTO written_v VALUES (5, 7)")
    assert session.rows() == [(1, 10), (2, 20), (3, 30), (5, 7)]
    session.run("INSERT OVERWRITE written_v SELECT a + 10, b FROM written_v WHERE a <> 5")
    assert session.rows() == [(11, 10), (12, 20), (13, 30)]
    session.run("UPDATE written_v SET b = written_v.a WHERE written_v.a = 11")
    session.run("DELETE FROM written_v AS z WHERE z.a = 12")
    assert session.rows() == [(11, 11), (13, 30)]
    session.run(
        "MERGE INTO written_v USING (SELECT 13 AS a, 1 AS b UNION ALL SELECT 9, 9) AS s "
        "ON s.a = written_v.a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert session.rows() == [(9, 9), (11, 11), (13, 1)]
    new = spark.sql("SELECT CAST(6 AS INT) AS x, CAST(8 AS INT) AS y")
    new.write.insertInto("written_v")
    assert session.rows()[0] == (6, 8)
    new.write.insertInto("written_v", overwrite=True)
    assert session.rows() == [(6, 8)]
    merged = new.toDF("a", "b").alias("n").mergeInto("written_v", sf.expr("n.a = written_v.a"))
    merged.whenMatched().delete().merge()
    assert session.rows() == []
    assert "DELETE" in str(spark.sql("EXPLAIN DELETE FROM written_v WHERE a = 1").first())


def test_other_names_of_the_same_rows_mean_the_table_too(session: Session) -> None:
    spark = session.spark
    frames = [
        delta.read(spark).load(session.path).alias("x"),
        delta.DeltaTable.forPath(spark, session.path).toDF(),
        spark.table(f"delta.`{session.path}`").cache(),
    ]
    for number, frame in enumerate(frames):
        frame.createOrReplaceGlobalTempView("written_g")
        session.run(f"INSERT INTO global_temp.written_g VALUES (7, {number})")
        assert (7, number) in session.rows("global_temp.written_g")
        frame.unpersist()


def test_queries_may_name_what_spark_knows_of_each_rows_file(session: Session) -> None:
    spark, table = session.spark, f"delta.`{session.path}`"
    names = {each.path for each in DeltaLog.for_table(session.path).snapshot.files()}
    found = spark.sql(f"SELECT *, _metadata.file_name AS f FROM {table} WHERE a = 2")
    ((a, b, name),) = found.collect()
    assert (a, b) == (2, 20)
    assert name in names
    found = spark.sql(
        f"SELECT x.*, y._metadata.file_name = x._metadata.file_name AS same FROM {table} x "
        f"JOIN (SELECT *, _metadata FROM {table}) y ON x.a = y.a "
        "WHERE x.a = 1 AND x._metadata.row_index = 0"
    )
    assert [tuple(row) for row in found.collect()] == [(1, 10, True)]
    found = spark.sql(f"SELECT count(DISTINCT _metadata.file_path) FROM {table}")
    assert [tuple(row) for row in found.collect()] == [(len(names),)]
    assert spark.sql(f"SELECT * FROM {table}").columns == ["a", "b"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM /T AS x",
        "SELECT a, b FROM /T",
        "SELECT * FROM (SELECT * FROM /T AS t1) AS t2",
        "SELECT * FROM written_w",
    ],
)
def test_views_of_all_rows_are_followed_but_for_insert(session: Session, query: str) -> None:
    session.run("CREATE TEMP VIEW written_w AS SELECT * FROM /T")
    session.run(f"CREATE TEMP VIEW written_v AS {query}")
    session.refused("INSERT INTO written_v VALUES (5, 7)", "EXPECT_TABLE_NOT_VIEW")
    session.run("UPDATE written_v SET b = 0 WHERE written_v.a = 1")
    session.run("DELETE FROM written_v WHERE a = 2")
    assert session.rows() == [(1, 0), (3, 30)]


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("SELECT * FROM /T WHERE a > 1", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT b AS a, a AS b FROM /T", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT a FROM /T", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT b, a FROM /T", "DELTA_UNSUPPORTED_SOURCE"),
        ("SELECT * FROM /T VERSION AS OF 0", "HISTORICAL_VERSION"),
    ],
)
def test_views_of_other_rows_are_refused(session: Session, query: str, match: str) -> None:
    session.run(f"CREATE TEMP VIEW written_v AS {query}")
    session.refused("DELETE FROM written_v", match)
    session.refused("UPDATE written_v SET a = 1", match)
    session.refused("EXPLAIN UPDATE written_v SET a = 1", match)
    merge = "USING (SELECT 1 AS k) s ON s.k = a WHEN MATCHED THEN DELETE"
    session.refused(f"MERGE INTO written_v {merge}", match)


def test_a_view_that_is_no_whole_table_is_written_by_no_one(session: Session) -> None:
    spark = session.spark
    whole = spark.read.format("delta").load(session.path)
    merge = "USING (SELECT 1 AS k) s ON s.k = a WHEN MATCHED THEN DELETE"
    for frame in (whole.where("a > 1"), whole.selectExpr("b AS a", "a AS b")):
        frame.createOrReplaceTempView("written_v")
        with pytest.raises(PySparkException, match="UNSUPPORTED_INSERT"):
            session.run("INSERT OVERWRITE written_v VALUES (5, 7)")
        for text in ("DELETE FROM", "UPDATE written_v SET a = 1", f"MERGE INTO written_v {merge}"):
            session.refused(text.replace("FROM", "FROM written_v"), "DELTA_UNSUPPORTED_SOURCE")
    for older in (
        spark.read.option("versionAsOf", 0).format("delta").load(session.path),
        spark.read.format("delta").load(f"{session.path}@v0"),
    ):
        older.createOrReplaceTempView("written_v")
        session.refused("INSERT INTO written_v VALUES (5, 7)", "HISTORICAL_VERSION")
    # The view is another one by now, which only Spark has seen.
    whole.createOrReplaceTempView("written_v")
    plain_sql(spark, "CREATE OR REPLACE TEMP VIEW written_v AS SELECT 1 AS a, 2 AS b")
    with pytest.raises(PySparkException):
        session.run("INSERT OVERWRITE written_v VALUES (5, 7)")
    assert DeltaLog.for_table(session.path).snapshot.version == 1
