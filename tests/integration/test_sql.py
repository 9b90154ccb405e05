"""`lakelog.spark.sql`: Delta's statements, and tables in queries: many of them in few tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException

import lakelog.spark as delta
from lakelog.core import read_arrow, write_arrow
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    ConcurrentAppendException,
    DeltaAnalysisError,
    SchemaMismatchError,
    TableNotFoundError,
)
from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.sql_statements.text.statement import Statement


class Script:
    """Runs statements in which `/T` is a folder of the test."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = str(folder)

    def __call__(self, text: str, args: Any = None, **kwargs: Any) -> DataFrame:
        return delta.sql(self.spark, text.replace("/T", self.folder), args, **kwargs)

    def rows(self, text: str, args: Any = None, **kwargs: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self(text, args, **kwargs).collect()]

    def held(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        found = read_arrow(f"{self.folder}/{table}").select(list(columns))
        return sorted(tuple(row.values()) for row in found.to_pylist())

    def log(self, table: str) -> DeltaLog:
        return DeltaLog.for_table(f"{self.folder}/{table}")

    def operation(self, table: str) -> str | None:
        return self.log(table).history(1)[0].operation


@pytest.fixture
def script(spark: SparkSession, tmp_path: Path) -> Script:
    return Script(spark, tmp_path)


@pytest.fixture
def table(script: Script) -> Script:
    """Ids 0 to 4 with twice of them, in two partitions; version 1 lacks id 4."""
    rows = script.spark.range(5).selectExpr("id", "id * 2 AS v", "CAST(id % 2 AS INT) AS p")
    delta.write(rows).partitionBy("p").save(f"{script.folder}/t")
    script("DELETE FROM delta.`/T/t` WHERE id = 4")
    return script


@pytest.mark.connect
def test_queries_read_tables_wherever_they_name_them(table: Script) -> None:
    count = "SELECT count(*) FROM delta.`/T/t`"
    assert table.rows(count) == [(4,)]
    assert table.rows(f"{count} VERSION AS OF 0 AS t WHERE t.id > :least", {"least": 2}) == [(2,)]
    assert table.rows(f"{count} VERSION AS OF ? WHERE id > ?", [0, 2]) == [(2,)]
    assert table.rows("SELECT count(*) FROM lakelog.`/T/t@v0`") == [(5,)]
    assert table.rows(
        """
        WITH t AS (SELECT id FROM delta.`/T/t` WHERE id > 1), /* FROM delta.`/nothing` */
          u AS (SELECT t.id, '{FROM delta.`/no`}' AS x FROM t)
        SELECT u.x, a.id, delta.`/T/t`.v, (SELECT max(id) FROM delta.`/T/t` VERSION AS OF 0)
        FROM u JOIN delta.`/T/t` VERSION AS OF 0 a ON u.id = a.id, delta.`/T/t`
        WHERE delta.`/T/t`.id = a.id AND a.id IN (SELECT id FROM delta.`/T/t`) ORDER BY a.id
        """.replace("/no`", "no`")
    ) == [("{FROM delta.`no`}", 2, 4, 4), ("{FROM delta.`no`}", 3, 6, 4)]
    assert len(table("SELECT v FROM delta.`/T/t` t WHERE t.id > :x", {"x": 2}).inputFiles()) == 1
    # A condition that only the query can say is its alone, and is not put to the rows twice.
    within = (
        "SELECT id FROM delta.`/T/t@v0` WHERE id IN (SELECT id FROM delta.`/T/t` VERSION AS OF 0)"
    )
    assert len(table.rows(within)) == len(table.rows("SELECT id FROM delta.`/T/t@v0`"))
    chance = table("EXPLAIN SELECT * FROM delta.`/T/t` WHERE rand(7) < 0.5 AND id > 0")
    assert str(chance.collect()[0][0]).count("rand(7)") == 1
    more = table.spark.range(2, 9)
    assert table.rows(
        "SELECT count(*) FROM delta.`/T/t` JOIN {more} m USING (id) WHERE v > {v}", more=more, v=4
    ) == [(1,)]
    assert "Relation" in table.rows("EXPLAIN EXTENDED SELECT * FROM delta.`/T/t`")[0][0]
    late = "SELECT * FROM delta.`/T/t` TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY"
    with pytest.raises(DeltaAnalysisError, match="after"):
        table(late)
    with pytest.raises(DeltaAnalysisError, match="DELTA_TIMESTAMP_INVALID"):
        table("SELECT * FROM delta.`/T/t` TIMESTAMP AS OF 'soon'")
    with pytest.raises(TableNotFoundError):
        table("SELECT * FROM delta.`/T/nothing`")


def test_errors_of_spark_show_the_place_in_the_text_as_written(table: Script) -> None:
    bad = f"SELECT * FROM delta.`{table.folder}/t` WHERE )"
    with pytest.raises(ParseException) as ours:
        table(bad)
    with pytest.raises(ParseException) as theirs:
        table.spark.sql(bad)
    assert str(ours.value) == str(theirs.value)
    path = f"{table.folder}/t"
    for text, place in {
        f"SELECT id,\n  nope AS x\nFROM delta.`{path}` WHERE id = 1": "line 2 pos 2",
        f"SELECT 1 FROM delta.`{path}` a JOIN delta.`{path}` b USING (id) WHERE b.nope = 1": None,
        f"UPDATE delta.`{path}` SET id = nope + 1": None,
        f"DELETE FROM delta.`{path}`\nWHERE nope = 1": "line 2 pos 6",
        f"INSERT INTO delta.`{path}`\nSELECT nope FROM delta.`{path}`": "line 2 pos 7",
    }.items():
        with pytest.raises(AnalysisException) as caught:
            table(text)
        word = text.index("b.nope") if "b.nope" in text else text.index("nope")
        assert (place or f"line 1 pos {word}") in str(caught.value)
        assert caught.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
        assert caught.value.getSqlState() == "42703"
        assert "__lakelog" not in str(caught.value).splitlines()[0]
    for kept in ("CREATE OR REPLACE TEMP VIEW v AS", "CACHE TABLE v AS"):
        with pytest.raises(SqlSyntaxError, match=r"call lakelog\.spark\.enable\(spark\) first"):
            table(f"{kept} SELECT * FROM delta.`/T/t`")
    with pytest.raises(SqlSyntaxError, match="this form of the statement keeps its query"):
        table("CREATE MATERIALIZED VIEW v AS SELECT * FROM delta.`/T/t`")


@pytest.mark.connect
def test_rows_are_deleted_updated_and_merged(table: Script) -> None:
    assert table.rows("DELETE FROM delta.`/T/t` t WHERE t.id = :i", {"i": 0}) == [(1,)]
    assert table.rows("DELETE FROM delta.`/T/t` WHERE id = 100") == [(0,)]
    update = "UPDATE delta.`/T/t` AS t SET t.v = v + ?, p = 1 WHERE t.id + rint(0) = ?"
    assert table.rows(update, [100, 2]) == [(1,)]
    assert table.rows("UPDATE delta.`/T/t` SET v = {v} WHERE id = 3", v=77) == [(1,)]
    assert table.held("t", "id", "v", "p") == [(1, 2, 1), (2, 104, 1), (3, 77, 1)]
    merged = table.rows(
        """
        WITH s AS (SELECT 2L AS id, 5L AS v, 0 AS p UNION ALL SELECT 9L, 9L, 1)
        MERGE INTO delta.`/T/t` t USING s ON t.id = s.id
        WHEN MATCHED AND CASE WHEN t.v > 100 THEN s.v = 5 END THEN UPDATE SET t.v = s.v + :more
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE
        """,
        {"more": 1},
    )
    assert merged == [(3, 1, 1, 1)]
    assert table.held("t", "id", "v", "p") == [(2, 6, 1), (3, 77, 1), (9, 9, 1)]
    table(
        "MERGE WITH SCHEMA EVOLUTION INTO delta.`/T/t` USING {new} AS s ON t.id = s.id "
        "WHEN NOT MATCHED BY TARGET THEN INSERT *".replace("t.id", "`/T/t`.id"),
        new=table.spark.range(10, 11).selectExpr("id", "'x' AS extra"),
    )
    assert table.log("t").snapshot.schema.names == ["id", "v", "p", "extra"]
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_SUBQUERY"):
        table("DELETE FROM delta.`/T/t` WHERE id IN (SELECT 1)")
    most = "(SELECT max(`/T/t`.id) + 1 FROM delta.`/T/t`)"
    table(f"UPDATE delta.`/T/t` SET v = {most}, p = 7 WHERE id = 3")
    table(
        f"MERGE INTO delta.`/T/t` t USING (SELECT 9L AS id UNION ALL SELECT 12L) s ON t.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET v = {most} WHEN NOT MATCHED THEN INSERT (id, v) "
        f"VALUES (s.id, {most})"
    )
    assert table.held("t", "id", "v")[1:] == [(3, 11), (9, 11), (10, None), (12, 11)]
    assert not table.spark.sql("SHOW VIEWS LIKE 'lakelog_*'").collect()
    table("TRUNCATE TABLE delta.`/T/t`")
    assert table.operation("t") == "TRUNCATE"
    assert table.held("t", "id") == []


def test_rows_are_inserted_by_place_by_name_and_over_others(table: Script) -> None:
    table("DELETE FROM delta.`/T/t` WHERE id > 1")
    table("INSERT INTO delta.`/T/t` VALUES (10, 1, 0), (:id, DEFAULT, 1)", {"id": 11})
    table("INSERT INTO TABLE delta.`/T/t` (p, id) SELECT '1', 12")
    table("INSERT INTO delta.`/T/t` BY NAME SELECT 1 AS p, 13 AS id")
    table("INSERT INTO delta.`/T/t` PARTITION (p = 0) SELECT 14, 4")
    assert table.held("t", "id", "p") == [
        *[(0, 0), (1, 1), (10, 0), (11, 1), (12, 1), (13, 1), (14, 0)]
    ]
    table("INSERT OVERWRITE delta.`/T/t` PARTITION (p = 1) SELECT 20, 4")
    table(
        "WITH s AS (SELECT 21)\nINSERT INTO delta.`/T/t` REPLACE WHERE p = 0 SELECT *, 5, 0 FROM s"
    )
    assert table.held("t", "id", "v", "p") == [(20, 4, 1), (21, 5, 0)]
    table("INSERT OVERWRITE delta.`/T/t` SELECT id + 10, v, p FROM delta.`/T/t`")
    table("INSERT OVERWRITE delta.`/T/t` TABLE delta.`/T/t`")
    assert table.held("t", "id") == [(30,), (31,)]
    for bad, said in {
        "SELECT 1, 2": "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "SELECT 1, 2, 3, 4": "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "(x) SELECT 1": "no column x",
        "SELECT array(1), 2, 3": "DELTA_FAILED_TO_MERGE_FIELDS",
    }.items():
        with pytest.raises(SchemaMismatchError, match=said):
            table(f"INSERT INTO delta.`/T/t` {bad}")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        table("INSERT INTO delta.`/T/t` SELECT 'x', 2, 3")
    with pytest.raises(DeltaAnalysisError, match="DELTA_REPLACE_WHERE_MISMATCH"):
        table("INSERT INTO delta.`/T/t` REPLACE WHERE p = 0 SELECT 1, 1, 1")
    with pytest.raises(TableNotFoundError):
        table("INSERT INTO delta.`/T/nothing` VALUES (1)")
    assert table.held("t", "id") == [(30,), (31,)]
    table("CREATE TABLE delta.`/T/s` (s STRING) USING delta")
    table("INSERT INTO delta.`/T/s` VALUES (:a), (:b)", {"a": "it's", "b": 'a\\b"\n'})
    assert table.held("s", "s") == [('a\\b"\n',), ("it's",)]
    table("CREATE TABLE delta.`/T/n` (a STRUCT<x: INT, y: STRING>, b ARRAY<BIGINT>) USING delta")
    table("INSERT INTO delta.`/T/n` SELECT struct(1L, 'b'), array(1)")
    table("INSERT INTO delta.`/T/n` SELECT named_struct('y', 'c', 'x', 2) AS a, array(2L) AS b")
    assert table.held("n", "b", "a") == [([1], {"x": 1, "y": "b"}), ([2], {"x": 2, "y": "c"})]
    for value, said in {
        "named_struct('z', 'b')": "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "named_struct('y', 'b', 'x', 1L)": "INCOMPATIBLE_DATA_FOR_TABLE.UNEXPECTED_COLUMN_NAME",
        "struct(array(1), 'b')": "DELTA_FAILED_TO_MERGE_FIELDS",
    }.items():
        with pytest.raises(SchemaMismatchError, match=said):
            table(f"INSERT INTO delta.`/T/n` SELECT {value}, array(1)")


def test_what_others_wrote_meanwhile_is_not_replaced_by_older_rows(
    table: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = QueryRunner.query

    def interrupted(self: QueryRunner, text: Statement) -> DataFrame:
        frame = query(self, text)
        rows = {"id": [9], "v": [9], "p": pa.array([1], pa.int32())}
        write_arrow(f"{table.folder}/t", pa.table(rows), mode="append")
        return frame

    monkeypatch.setattr(QueryRunner, "query", interrupted)
    for sql in (
        "INSERT OVERWRITE delta.`/T/t` SELECT * FROM delta.`/T/t`",
        "INSERT INTO delta.`/T/t` REPLACE WHERE p = 1 SELECT * FROM delta.`/T/t` WHERE p = 1",
        "CREATE OR REPLACE TABLE delta.`/T/t` USING delta AS SELECT id FROM delta.`/T/t`",
    ):
        with pytest.raises(ConcurrentAppendException, match="others wrote meanwhile"):
            table(sql)
    assert [row[0] for row in table.held("t", "id")] == [0, 1, 2, 3, 9, 9, 9]


def test_tables_are_made_altered_and_shown(script: Script) -> None:
    script(
        """
        CREATE TABLE delta.`/T/t` (
          id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 5), n INT NOT NULL
          COMMENT 'it''s', s STRUCT<x: INT, y: MAP<STRING, DECIMAL(3, 2)>>, c VARCHAR(3),
          twice INT GENERATED ALWAYS AS (n * 2), d INT DEFAULT 1 + 2
        ) USING delta PARTITIONED BY (n) COMMENT 'the table' TBLPROPERTIES
          ('delta.columnMapping.mode' = 'name', delta.feature.allowColumnDefaults = 'supported',
           a.b = 1)
        """
    )
    script("INSERT INTO delta.`/T/t` (n) VALUES (1), (2)")
    assert script.held("t", "n", "twice", "d") == [(1, 2, 3), (2, 4, 3)]
    script("ALTER TABLE delta.`/T/t` ADD COLUMNS (e INT COMMENT 'x', f STRING) ")
    script("ALTER TABLE delta.`/T/t` ADD COLUMN s.z INT FIRST")
    script("ALTER TABLE delta.`/T/t` RENAME COLUMN s.x TO w")
    script("ALTER TABLE delta.`/T/t` DROP COLUMNS IF EXISTS (f, nothing)")
    script("ALTER TABLE delta.`/T/t` ALTER COLUMN e COMMENT 'y'")
    script("ALTER TABLE delta.`/T/t` ALTER COLUMN d SET DEFAULT 7")
    script("ALTER TABLE delta.`/T/t` ALTER COLUMN s.w AFTER z")
    script("INSERT INTO delta.`/T/t` (n) VALUES (2)")
    script("ALTER TABLE delta.`/T/t` ALTER COLUMN d DROP DEFAULT")
    script("ALTER TABLE delta.`/T/t` CHANGE COLUMN d d INT FIRST")
    script("ALTER TABLE delta.`/T/t` ALTER COLUMN d AFTER twice")
    script("INSERT INTO delta.`/T/t` (n) VALUES (2)")
    assert script.rows("SELECT d, count(*) FROM delta.`/T/t` GROUP BY d ORDER BY d") == [
        (None, 1),
        (3, 2),
        (7, 1),
    ]
    script("ALTER TABLE delta.`/T/t` ADD CONSTRAINT positive CHECK (n > 0 AND twice IN (2, 4))")
    script("ALTER TABLE delta.`/T/t` SET TBLPROPERTIES ('delta.enableTypeWidening' = true)")
    script("ALTER TABLE delta.`/T/t` CHANGE COLUMN e e BIGINT COMMENT 'z'")
    script("ALTER TABLE delta.`/T/t` UNSET TBLPROPERTIES (a.b)")
    script("COMMENT ON TABLE delta.`/T/t` IS 'it''s'")
    assert script("DESCRIBE DETAIL delta.`/T/t`").collect()[0].description == "it's"
    script("COMMENT ON TABLE delta.`/T/t` IS 'the table'")
    assert script.rows("SHOW COLUMNS IN delta.`/T/t`") == [
        (x,) for x in ["id", "n", "s", "c", "twice", "d", "e"]
    ]
    shown = dict(script.rows("SHOW TBLPROPERTIES delta.`/T/t`"))
    assert "a.b" not in shown
    assert shown["delta.constraints.positive"] == "n > 0 AND twice IN (2, 4)"
    assert script.rows("SHOW TBLPROPERTIES delta.`/T/t` ('a.b')")[0][1].endswith("property: a.b")
    described = script.rows("DESCRIBE TABLE EXTENDED delta.`/T/t`")
    assert described[1] == ("n", "int", "it's")
    assert described[2][1] == "struct<z:int,w:int,y:map<string,decimal(3,2)>>"
    assert ("# Partition Information", "", "") in described
    (created,) = script.rows("SHOW CREATE TABLE delta.`/T/t`")[0]
    script(created.replace(f"{script.folder}/t", f"{script.folder}/again"))
    first, again = script.log("t").snapshot, script.log("again").snapshot
    assert [(f.name, str(f.data_type), f.nullable) for f in again.schema] == [
        (f.name, str(f.data_type), f.nullable) for f in first.schema
    ]
    assert again.partition_columns == ["n"]
    assert again.metadata.description == "the table"
    script("CREATE TABLE delta.`/T/like` LIKE delta.`/T/t` TBLPROPERTIES (x = 'y')")
    assert script.log("like").snapshot.schema.names == first.schema.names
    script("ALTER TABLE delta.`/T/like` DROP CONSTRAINT IF EXISTS positive")
    for statement, said in {
        "ADD COLUMN g INT DEFAULT 3": "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER",
        "ALTER COLUMN e SET LOCATION 'x'": "PARSE_SYNTAX_ERROR",
        "ALTER COLUMN e COMMENT 'x', f": "PARSE_SYNTAX_ERROR",
        "ALTER COLUMN e SET DEFAULT": "PARSE_SYNTAX_ERROR.*the default",
        "DROP PARTITION (n = 1)": "INVALID_PARTITION_OPERATION",
    }.items():
        with pytest.raises(SqlSyntaxError, match=said):
            script(f"ALTER TABLE delta.`/T/t` {statement}")


def test_a_table_is_made_of_a_query_in_one_commit(table: Script) -> None:
    create = "USING delta PARTITIONED BY (p) COMMENT 'x' TBLPROPERTIES ('delta.appendOnly' = true)"
    table(
        f"CREATE TABLE delta.`/T/c` {create} AS SELECT * FROM delta.`/T/t` WHERE id < :x", {"x": 2}
    )
    snapshot = table.log("c").snapshot
    assert (snapshot.version, snapshot.num_files) == (0, 2)
    assert snapshot.partition_columns == ["p"]
    assert snapshot.metadata.configuration == {"delta.appendOnly": "true"}
    assert snapshot.metadata.description == "x"
    assert table.operation("c") == "CREATE TABLE AS SELECT"
    with pytest.raises(FileExistsError):
        table("CREATE TABLE delta.`/T/c` USING delta AS SELECT 1 AS a")
    table("CREATE TABLE IF NOT EXISTS delta.`/T/c` USING delta AS SELECT 1 AS a")
    with pytest.raises(DeltaAnalysisError, match="appendOnly"):
        table("CREATE OR REPLACE TABLE delta.`/T/c` USING delta AS SELECT 1 AS a")
    table("ALTER TABLE delta.`/T/c` UNSET TBLPROPERTIES ('delta.appendOnly')")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        table("CREATE OR REPLACE TABLE delta.`/T/c` AS SELECT 1 / (id - id) AS a FROM range(3)")
    assert table.log("c").update().version == 1
    table("CREATE OR REPLACE TABLE delta.`/T/c` CLUSTER BY (a) AS SELECT 1 AS a, 'x' AS b")
    replaced = table.log("c").update()
    assert (replaced.version, replaced.schema.names) == (2, ["a", "b"])
    assert (replaced.metadata.id, replaced.partition_columns) == (snapshot.metadata.id, [])
    assert table.rows("DESCRIBE DETAIL delta.`/T/c`")[0][8] == ["a"]
    assert table.operation("c") == "CREATE OR REPLACE TABLE AS SELECT"
    table("REPLACE TABLE delta.`/T/c` (z INT) USING delta")
    assert table.held("c", "z") == []
    with pytest.raises(TableNotFoundError, match="replace"):
        table("REPLACE TABLE delta.`/T/nothing` USING delta AS SELECT 1 AS a")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        table("CREATE TABLE delta.`/T/half` USING delta AS SELECT 1 / (id - id) AS a FROM range(3)")
    assert not table.log("half").table_exists()


def test_upkeep_and_history(table: Script) -> None:
    table("INSERT INTO delta.`/T/t` VALUES (10, 1, 0)")
    done = table("OPTIMIZE delta.`/T/t` WHERE p = 0 ZORDER BY (id)")
    assert done.columns == ["path", "metrics"]
    assert done.first()["metrics"]["numFilesAdded"] == 1  # type: ignore[index]
    table("ALTER TABLE delta.`/T/t` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    table("DELETE FROM delta.`/T/t` WHERE id = 10")
    purged = table.rows("REORG TABLE delta.`/T/t` APPLY (PURGE)")
    assert purged[0][1]["numFilesAdded"] == 1
    history = table("DESCRIBE HISTORY delta.`/T/t` LIMIT 3")
    assert [row.operation for row in history.collect()] == ["REORG", "DELETE", "SET TBLPROPERTIES"]
    assert table.rows("VACUUM delta.`/T/t` DRY RUN") == []
    with pytest.raises(DeltaAnalysisError, match="RETENTION_PERIOD_TOO_SHORT"):
        table("VACUUM '/T/t' RETAIN 0 HOURS")
    assert table.rows("VACUUM '/T/t' LITE RETAIN 168 HOURS") == [(f"{table.folder}/t",)]
    table("GENERATE symlink_format_manifest FOR TABLE delta.`/T/t`")
    restored = table("RESTORE TABLE delta.`/T/t` TO VERSION AS OF :v", {"v": 0})
    assert restored.columns[0] == "table_size_after_restore"
    assert table.rows("SELECT count(*) FROM delta.`/T/t`") == [(5,)]
    copied = table("CREATE TABLE delta.`/T/clone` SHALLOW CLONE delta.`/T/t` VERSION AS OF 1")
    assert copied.first()["source_num_of_files"] == 2  # type: ignore[index]
    assert table.held("clone", "id") == [(0,), (1,), (2,), (3,)]
    table.spark.range(3).write.parquet(f"{table.folder}/p")
    table("CONVERT TO DELTA parquet.`/T/p`")
    table("CONVERT TO DELTA delta.`/T/p`")
    table("ALTER TABLE delta.`/T/p` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    table("UPDATE delta.`/T/p` SET id = 7 WHERE id = 2")
    changes = "SELECT id, _change_type FROM table_changes('delta.`/T/p`', 2, :end) ORDER BY 2"
    assert table.rows(changes, {"end": 2}) == [(7, "update_postimage"), (2, "update_preimage")]
    by_path = "SELECT count(*) FROM table_changes_by_path('/T/p', 1 + 1) c"
    assert table.rows(by_path) == [(2,)]


@pytest.fixture
def named(script: Script) -> Iterator[Script]:
    delta.enable(script.spark)
    script.spark.sql(f"CREATE DATABASE front LOCATION '{script.folder}/front'")
    yield script
    script.spark.sql("DROP DATABASE front CASCADE")
    delta.disable(script.spark)


@pytest.mark.connect
def test_names_of_the_catalog_and_enable(named: Script) -> None:
    sql = named.spark.sql
    sql("CREATE TABLE front.t (id BIGINT, v INT) USING delta").collect()
    sql("INSERT INTO front.t VALUES (1, 1), (2, 2)")
    sql(f"CREATE TABLE front.e USING delta LOCATION '{named.folder}/e' AS SELECT 1L AS id, 5 AS v")
    assert sql("DELETE FROM front.t WHERE t.id = 1").first()[0] == 1  # type: ignore[index]
    merged = sql(
        "MERGE INTO front.t USING front.e ON t.id = e.id WHEN NOT MATCHED THEN INSERT * "
    ).first()
    assert merged is not None
    assert merged.num_inserted_rows == 1
    sql("ALTER TABLE front.t ADD COLUMN w STRING")
    sql("COMMENT ON COLUMN front.t.w IS 'said'")
    assert [tuple(row) for row in sql("DESCRIBE TABLE front.t w").collect()] == [
        *[("col_name", "w"), ("data_type", "string"), ("comment", "said")]
    ]
    assert sql("SHOW COLUMNS FROM t FROM front").count() == 3
    sql("USE front")
    sql("FROM e INSERT INTO t SELECT 50L, v, 'x'")
    assert sql("DELETE FROM t WHERE id = 50").first()[0] == 1  # type: ignore[index]
    found = sql("SELECT front.t.id, t.v, w FROM front.t WHERE front.t.id IN (SELECT id FROM e)")
    assert [tuple(row) for row in found.collect()] == [(1, 5, None)]
    named.spark.range(1).createOrReplaceTempView("t")
    assert sql("SELECT * FROM t").columns == ["id"]
    assert sql("SELECT * FROM front.t").columns == ["id", "v", "w"]
    named.spark.catalog.dropTempView("t")
    assert sql("SELECT * FROM t VERSION AS OF 1").count() == 2
    with pytest.raises(FileExistsError):
        sql("CREATE TABLE e (id BIGINT) USING delta")
    sql("CREATE TABLE IF NOT EXISTS e USING delta AS SELECT 1 AS x")
    sql("CREATE OR REPLACE TABLE e USING delta AS SELECT 1 AS x")
    assert sql("SELECT * FROM e").columns == ["x"]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql("CREATE TABLE half USING delta AS SELECT 1 / (id - id) AS a FROM range(3)")
    assert not named.spark.catalog.tableExists("half")
    sql("DROP TABLE e")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM e").collect()
    sql(f"CREATE TABLE e USING delta LOCATION '{named.folder}/e'")
    assert sql("SELECT * FROM e").columns == ["x"]
    sql("CREATE TABLE plain USING parquet AS SELECT * FROM t")
    assert sql("SELECT count(*) FROM plain").first()[0] == 2  # type: ignore[index]
    with pytest.raises(SqlSyntaxError, match="DELTA_TABLE_ONLY_OPERATION"):
        sql("OPTIMIZE plain")
    sql("DROP TABLE plain")
    sql("USE default")
