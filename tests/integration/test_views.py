"""Views over Delta tables and cached tables, in an enabled session: read anew at each use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import lakelog.spark as delta
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.plain import plain_sql
from lakelog.spark.names.provider import reads_delta
from lakelog.spark.session.session import is_connect
from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


class Session:
    """An enabled session whose database has a table `t` with the ids 1 and 2."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / "db" / "t")

    def rows(self, text: str, args: Any = None, **kwargs: Any) -> list[tuple[Any, ...]]:
        found = self.spark.sql(text.replace("/T", self.path), args, **kwargs)
        return sorted(tuple(row) for row in found.collect())

    def run(self, *texts: str) -> None:
        for each in texts:
            self.rows(each)


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[Session]:
    # Other tests leave temporary views, and a registered source can't be taken back.
    spark = spark if is_connect(spark) else spark.newSession()
    delta.enable(spark)
    spark.sql(f"CREATE DATABASE views_db LOCATION '{tmp_path / 'db'}'")
    spark.sql(f"CREATE DATABASE views_db2 LOCATION '{tmp_path / 'db2'}'")
    spark.catalog.setCurrentDatabase("views_db")
    found = Session(spark, tmp_path)
    try:
        found.run("CREATE TABLE t (id BIGINT, v INT) USING delta", "INSERT INTO t VALUES (1, 10)")
        found.run("INSERT INTO t VALUES (2, 20)")
        yield found
    finally:
        spark.catalog.clearCache()
        spark.catalog.setCurrentDatabase("default")
        for each in spark.sql("SHOW VIEWS").collect():
            spark.catalog.dropTempView(each.viewName)
        spark.catalog.dropGlobalTempView("views_g")
        spark.sql("DROP DATABASE views_db CASCADE")
        spark.sql("DROP DATABASE views_db2 CASCADE")
        delta.disable(spark)


@pytest.mark.connect
def test_a_temporary_view_shows_the_newest_rows_of_its_tables(session: Session) -> None:
    spark = session.spark
    made = "CREATE TEMP VIEW v AS SELECT * FROM t WHERE v > :least"
    session.rows(made, {"least": 10})
    session.run(
        "CREATE OR REPLACE TEMPORARY VIEW w (a COMMENT 'the id', b) COMMENT 'x' AS "
        "WITH q AS (SELECT * FROM v) SELECT q.id, t.v FROM q JOIN views_db.t ON q.id = t.id",
        "CREATE GLOBAL TEMP VIEW views_g AS SELECT count(*) AS n FROM delta.`/T`",
        "CREATE TEMP VIEW old USING delta OPTIONS (path '/T', versionAsOf 1)",
        "CREATE TEMP VIEW older AS SELECT * FROM t VERSION AS OF 1 WHERE views_db.t.id > 0",
        "ALTER TABLE t ADD COLUMNS (extra INT)",
        "INSERT INTO t VALUES (3, 30, 7)",
    )
    assert session.rows("SELECT * FROM v") == [(2, 20), (3, 30)]
    assert session.rows("SELECT w.a FROM w WHERE b > 20") == [(3,)]
    assert session.rows("SELECT * FROM global_temp.views_g") == [(3,)]
    assert session.rows("SELECT * FROM old") == session.rows("SELECT * FROM older") == [(1, 10)]
    assert (spark.table("w").columns, spark.table("w").count()) == (["a", "b"], 2)
    assert spark.table("w").schema["a"].metadata == {"comment": "the id"}
    assert spark.read.table("v").count() == 2
    assert ("a", "bigint", "the id") in session.rows("DESCRIBE w")
    spark.catalog.setCurrentDatabase("views_db2")
    assert session.rows("SELECT count(*) FROM w") == [(2,)]
    spark.catalog.setCurrentDatabase("views_db")
    session.run("ALTER VIEW w RENAME TO u", "ALTER VIEW v AS SELECT * FROM t WHERE id = 3")
    assert session.rows("SELECT * FROM u") == [(3, 30)]
    assert spark.catalog.dropTempView("old")
    session.run("DROP VIEW older", "INSERT INTO t SELECT * FROM v")
    assert session.rows("SELECT count(*) FROM t") == [(4,)]
    assert {row.viewName for row in spark.sql("SHOW VIEWS").collect()} == {"u", "v"}
    spark.range(9).createOrReplaceTempView("v")
    assert session.rows("SELECT count(*) FROM v") == [(9,)]
    session.run("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM t", "DROP TABLE t")
    for gone in ("v", "w", "old"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.rows(f"SELECT * FROM {gone}")


@pytest.mark.connect
def test_views_that_can_not_be_made_are_refused_with_a_reason(session: Session) -> None:
    session.run("CREATE TEMP VIEW v AS SELECT * FROM t", "CREATE TEMP VIEW w AS TABLE v")
    one = session.spark.range(1)
    for text, kind, said in (
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM w", DeltaAnalysisError, "RECURSIVE_VIEW"),
        ("CREATE TEMP VIEW v AS SELECT 1 FROM t", AnalysisException, "ALREADY_EXISTS"),
        ("CREATE TEMP VIEW u (a) AS TABLE t", SqlSyntaxError, r"ARITY_MISMATCH\.TOO_MANY"),
        ("CREATE TEMP VIEW u (a, b, c) AS TABLE t", SqlSyntaxError, r"ARITY_MISMATCH\.NOT_ENOUGH"),
        ("CREATE TEMP VIEW d.u AS TABLE t", SqlSyntaxError, "INVALID_TEMP_OBJ_QUALIFIER"),
        ("CREATE TEMP VIEW u USING delta", SqlSyntaxError, "OPTIONS"),
        ("CREATE TEMP VIEW u USING delta OPTIONS (path '/T', x 1)", SqlSyntaxError, "not x"),
        ("CREATE VIEW u AS SELECT * FROM delta.`/T`", SqlSyntaxError, "CREATE TABLE name USING"),
        ("CREATE VIEW u AS SELECT * FROM t TIMESTAMP AS OF now()", SqlSyntaxError, "plain value"),
        ("CREATE VIEW u AS SELECT * FROM v", AnalysisException, "INVALID_TEMP_OBJ_REFERENCE"),
        ("CREATE TEMP VIEW IF NOT EXISTS u AS TABLE t", Exception, "IF NOT EXISTS|this form"),
        ("CACHE TABLE t OPTIONS ('storageLevel' 'NOWHERE')", DeltaAnalysisError, "STORAGE_LEVEL"),
    ):
        # Over Connect files share a session, in which another may have registered the source:
        # then it is Spark that makes such views.
        if "USING delta" in text and reads_delta(session.spark):
            continue
        with pytest.raises(kind, match=said):
            session.rows(text)
    with pytest.raises(DeltaAnalysisError, match="can't keep a DataFrame"):
        session.rows("CREATE TEMP VIEW u AS SELECT * FROM t JOIN {one} USING (id)", one=one)
    session.run(
        "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE t DROP COLUMN v",
    )
    with pytest.raises(DeltaAnalysisError, match=r"INCOMPATIBLE_VIEW_SCHEMA_CHANGE.* no column v"):
        session.rows("SELECT * FROM w")


@pytest.mark.connect
def test_a_persistent_view_is_read_again_by_every_session(session: Session) -> None:
    spark = session.spark
    session.rows(
        "CREATE VIEW p (i COMMENT 'c', w) COMMENT 'mine' TBLPROPERTIES ('a' = 'b') AS "
        "SELECT id, v FROM t WHERE v > :least -- that is all",
        {"least": 10},
    )
    session.run(
        "CREATE VIEW IF NOT EXISTS p AS SELECT id FROM t",
        "CREATE VIEW views_db2.q AS SELECT i, t.v FROM p JOIN views_db.t AS t ON p.i = t.id",
        "CREATE VIEW old AS SELECT * FROM t VERSION AS OF 1 AS x WHERE x.id = 1",
        "CREATE VIEW whole AS TABLE t",
        "ALTER TABLE t ADD COLUMNS (extra INT)",
        "INSERT INTO t VALUES (3, 30, 7)",
    )
    spark.catalog.setCurrentDatabase("views_db2")
    wanted = {
        "views_db.p": [(2, 20), (3, 30)],
        "q": [(2, 20), (3, 30)],
        "views_db.old": [(1, 10)],
        "views_db.whole": [(1, 10), (2, 20), (3, 30)],
    }
    for name, rows in wanted.items():
        assert session.rows(f"SELECT * FROM {name}") == rows, name
    assert sorted(map(tuple, spark.table("q").collect())) == wanted["q"]
    assert spark.table("views_db.p").schema["i"].metadata["comment"] == "c"
    delta.register(spark)
    for name, rows in wanted.items():  # by Spark, which evaluates the text of the views
        assert sorted(map(tuple, plain_sql(spark, f"SELECT * FROM {name}").collect())) == rows
    session.run("ALTER VIEW q AS SELECT extra FROM views_db.t WHERE extra > 0")
    assert session.rows("SELECT * FROM q") == [(7,)]
    assert "`path`" in session.rows("SHOW CREATE TABLE q")[0][0]
    session.run("DROP VIEW q")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.rows("SELECT * FROM q")


def test_what_the_log_says_of_a_view_is_about_the_table_and_version_that_it_names(
    session: Session,
) -> None:
    session.run(
        "CREATE TABLE views_db2.t (id BIGINT) USING delta",
        "INSERT INTO views_db2.t VALUES (7)",
        "CREATE VIEW first AS SELECT count(*) AS n, max(id) AS m FROM t VERSION AS OF 1",
        "USE views_db2",
        "CREATE VIEW most AS SELECT max(id) AS m FROM t",
        "USE views_db",
    )
    assert session.rows("SELECT count(*) FROM t WITH (versionAsOf = '1')") == [(1,)]
    assert session.rows("SELECT * FROM first") == [(1, 1)]
    assert session.rows("SELECT * FROM views_db2.most") == [(7,)]
    session.run("CACHE TABLE views_db2.most")
    assert session.rows("SELECT * FROM views_db2.most") == [(7,)]
    session.run("INSERT INTO views_db2.t VALUES (8)")
    assert session.rows("SELECT * FROM views_db2.most") == [(8,)]


@pytest.mark.connect
def test_an_older_version_of_a_view_is_refused_however_it_is_asked_for(session: Session) -> None:
    session.run("CREATE TEMP VIEW v AS SELECT * FROM t", "CREATE VIEW p AS SELECT * FROM t")
    for name in ("v", "p"):
        for text in (f"{name} VERSION AS OF 1", f"{name} WITH (versionAsOf = '1')"):
            with pytest.raises(AnalysisException, match="TIME_TRAVEL"):
                session.rows(f"SELECT * FROM {text}")
        with pytest.raises(AnalysisException, match="TIME_TRAVEL"):
            session.spark.read.option("versionAsOf", "1").table(name).collect()
    with pytest.raises(AnalysisException, match="TIME_TRAVEL"):
        session.rows("SELECT * FROM t VERSION AS OF 1 WITH (versionAsOf = '2')")


@pytest.mark.connect
def test_what_is_cached_is_used_and_never_stale(session: Session) -> None:
    spark = session.spark

    def plan(text: str) -> str:
        return str(session.rows(f"EXPLAIN {text}"))

    session.run("CREATE TEMP VIEW v AS SELECT id FROM t", "CACHE TABLE t", "CACHE TABLE t")
    assert spark.catalog.isCached("t")
    assert not spark.catalog.isCached("v")
    for text in ("SELECT id FROM t WHERE id > 1", "SELECT count(*) FROM v", "TABLE delta.`/T`"):
        assert "InMemoryRelation" in plan(text), text
    session.run("INSERT INTO t VALUES (3, 30)")
    assert session.rows("SELECT id FROM v") == [(1,), (2,), (3,)]
    assert "InMemoryRelation" in plan("SELECT * FROM t")
    session.run("UNCACHE TABLE t")
    assert not spark.catalog.isCached("t")
    assert "InMemoryRelation" not in plan("SELECT * FROM t")
    session.run(
        "CACHE LAZY TABLE n OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT count(*) AS n FROM t"
    )
    assert session.rows("SELECT * FROM n") == [(3,)]
    assert "StorageLevel(disk, 1 replicas)" in plan("SELECT * FROM n")
    session.run("DELETE FROM t WHERE id = 3")
    assert session.rows("SELECT * FROM n") == [(2,)]
    session.run("DROP VIEW n")
    spark.catalog.cacheTable("v")
    assert spark.catalog.isCached("v")
    spark.catalog.uncacheTable("v")
    assert not spark.catalog.isCached("v")
    session.run("CACHE TABLE v", "CLEAR CACHE")
    assert not spark.catalog.isCached("v")
    session.run("CACHE TABLE v")
    spark.catalog.clearCache()
    assert not spark.catalog.isCached("v")
