"""One SQL script, run by delta-spark and by `lakelog.spark.sql`: rows, columns, conditions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog
from support import sql_script
from support.delta_spark_peer import DeltaSparkError
from support.sql_outcomes import outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.peer_alone
SCRIPT = Path(str(sql_script.__file__))
CREATE = "CREATE TABLE {t} (id BIGINT, v INT, p STRING) USING delta PARTITIONED BY (p)"
FILL = "INSERT INTO {t} VALUES (1, 10, 'a'), (2, 20, 'a'), (3, 30, 'b')"
ALL = "SELECT * FROM {t} ORDER BY id"

SCRIPTS: dict[str, list[str]] = {
    "rows": [
        CREATE,
        FILL,
        "DELETE FROM {t} AS x WHERE x.id = 1",
        "DELETE FROM {t} WHERE p = 'c'",
        "UPDATE {t} SET v = v + CASE WHEN id = 2 THEN 1 ELSE 2 END, p = 'c' WHERE v > 20",
        "UPDATE {t} x SET x.v = '7' WHERE id = 2",
        ALL,
        "WITH s AS (SELECT 2 AS id, 5 AS v, 'b' AS p UNION ALL SELECT 9, 9, 'z') "
        "MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED AND s.v > 1 THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE",
        ALL,
        "MERGE INTO {t} t USING (SELECT 9 AS id, 'x' AS extra) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 3)",
        ALL,
        "SELECT count(*) AS n, max(id) AS m FROM {t} VERSION AS OF 1",
        "SELECT id FROM {at1} WHERE id IN (SELECT id FROM {t} VERSION AS OF 1) ORDER BY id",
        "TRUNCATE TABLE {t}",
        ALL,
    ],
    "inserts": [
        CREATE,
        FILL,
        "INSERT INTO {t} (p, id) VALUES ('c', 4)",
        "INSERT INTO {t} BY NAME SELECT 'd' AS p, 5 AS id, '50' AS v",
        "INSERT INTO {t} PARTITION (p = 'e') SELECT 6, 60",
        "INSERT OVERWRITE {t} PARTITION (p = 'a') SELECT 7, 70",
        "INSERT INTO {t} REPLACE WHERE p = 'b' SELECT 8, 80, 'b'",
        ALL,
        "INSERT OVERWRITE {t} SELECT id + 1, v, p FROM {t} WHERE id > 6",
        ALL,
        "INSERT INTO {t} TABLE {t}",
        "SELECT count(*) AS n FROM {t}",
    ],
    "errors": [
        CREATE,
        FILL,
        "INSERT INTO {t} SELECT 1, 2",
        "INSERT INTO {t} REPLACE WHERE p = 'b' SELECT 8, 80, 'c'",
        "DELETE FROM {t} WHERE id IN (SELECT 1)",
        "DELETE {t}",
        "OPTIMIZE {t} WHERE id = 1",
        "OPTIMIZE {t} ZORDER BY (nothing)",
        "VACUUM {t} RETAIN 0 HOURS",
        "ALTER TABLE {t} DROP COLUMN v",
        "ALTER TABLE {t} RENAME COLUMN v TO w",
        "ALTER TABLE {t} DROP CONSTRAINT nothing",
        "ALTER TABLE {t} ADD CONSTRAINT c CHECK (v < 0)",
        "ALTER TABLE {t} ADD COLUMNS (id INT)",
        "ALTER TABLE {t} ADD COLUMNS (n INT DEFAULT 3)",
        "ALTER TABLE {t} ALTER COLUMN v TYPE STRING",
        "MERGE INTO {t} t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 0",
        "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id",
        "MERGE INTO {t} USING (SELECT 1 AS i) s ON id = s.i WHEN MATCHED THEN UPDATE SET z = 1",
        "SELECT * FROM {t} VERSION AS OF 99",
        "RESTORE TABLE {t} TO VERSION AS OF 99",
        "GENERATE nothing FOR TABLE {t}",
        "CREATE TABLE {t} (id INT) USING delta",
        "TRUNCATE TABLE {t} PARTITION (p = 'a')",
        "SELECT * FROM table_changes('{t}', 0, 1)",
        ALL,
    ],
    "columns at places": [
        "CREATE TABLE {t} (id BIGINT, v INT, s STRUCT<a: INT, b: INT>) USING delta TBLPROPERTIES "
        "('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {t} ADD COLUMNS (x INT FIRST, y INT AFTER V, s.c STRING FIRST, z INT AFTER x)",
        "ALTER TABLE {t} ADD COLUMNS (n STRUCT<a: INT>, n.b INT)",
        "ALTER TABLE {t} ADD COLUMNS (p INT FIRST, q INT AFTER nothing)",
        "ALTER TABLE {t} ALTER COLUMN s.a SET DEFAULT 3",
        "INSERT INTO {t} (id) VALUES (1)",
        "INSERT INTO {t} (id, s) VALUES (2, named_struct('c', 'c', 'a', 1, 'b', 2))",
        "SELECT * FROM {t} ORDER BY id",
        "DESCRIBE TABLE {t}",
    ],
    "partitions": [
        "CREATE TABLE {t} (id BIGINT, p STRING, `q r` INT) USING delta PARTITIONED BY (p, `q r`) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "SHOW PARTITIONS {t}",
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1), (4, 'b', 1), (5, NULL, 3)",
        "SHOW PARTITIONS {t}",
        "SHOW PARTITIONS {t} PARTITION (p = 'b')",
        "SHOW PARTITIONS {t} PARTITION (`Q R` = 2, p = 'a')",
        "SHOW PARTITIONS {t} PARTITION (id = 1)",
        "ALTER TABLE {t} ADD PARTITION (p = 'a')",
        "ALTER TABLE {t} DROP PARTITION (p = 'a')",
        "ALTER TABLE {t} RECOVER PARTITIONS",
        "ALTER TABLE {t} SET SERDE 'x'",
    ],
    "views": [
        CREATE,
        FILL,
        "CREATE OR REPLACE TEMP VIEW sv AS SELECT * FROM {t} WHERE v > 10",
        "CREATE OR REPLACE TEMP VIEW sw (a COMMENT 'x', b) AS SELECT sv.id, sv.p FROM sv",
        "INSERT INTO {t} VALUES (4, 40, 'c')",
        "SELECT * FROM sw ORDER BY a",
        "ALTER TABLE {t} ADD COLUMNS (extra INT)",
        "SELECT * FROM sv ORDER BY id",
        "DESCRIBE sw",
        "CREATE TEMP VIEW sv AS SELECT 1 AS a FROM {t}",
        "CREATE OR REPLACE TEMP VIEW sv AS SELECT * FROM sw",
        "CREATE TEMP VIEW su (a) AS SELECT * FROM {t}",
        "CREATE TEMP VIEW su (a, b, c, d, e) AS SELECT * FROM {t}",
        "CREATE TEMP VIEW d.su AS SELECT * FROM {t}",
        "CACHE TABLE sv",
        "DELETE FROM {t} WHERE id = 4",
        "SELECT count(*) AS n FROM sv",
        "UNCACHE TABLE sv",
        "ALTER VIEW sw RENAME TO sx",
        "SELECT count(*) AS n FROM sx",
        "SELECT count(*) AS n FROM sw",
        "DROP VIEW sx",
        "DROP VIEW sv",
        "SELECT count(*) AS n FROM sv",
    ],
    "several inserts": [
        CREATE,
        FILL,
        "FROM (SELECT 4 AS id, 40 AS v) INSERT INTO {t} (id, v) SELECT id, v WHERE id > 3 "
        "INSERT INTO {t} (id, p) SELECT id, 'q'",
        "FROM {t} INSERT INTO {t} SELECT id + 10, v, p WHERE id = 1 "
        "INSERT INTO {t} SELECT id + 100, v, p WHERE id IN (2, 11)",
        "FROM {t} INSERT INTO {t} SELECT id, v, p INSERT INTO {t} SELECT id, v",
        ALL,
    ],
    "refused": [
        "CREATE TABLE {t} (id BIGINT, v INT) USING delta",
        "INSERT INTO {t} AS x REPLACE ON (x.id = 1) SELECT 1, 2",
        "INSERT INTO {t} REPLACE ON id = 1 SELECT 1, 2",
        "INSERT INTO {t} BY NAME REPLACE USING (id) SELECT 1 AS id, 2 AS v",
        "INSERT OVERWRITE {t} PARTITION (v = 1) IF NOT EXISTS SELECT 1",
        "DESCRIBE TABLE {t} AS JSON",
        "DESCRIBE TABLE EXTENDED {t} AS JSON",
        "SHOW PARTITIONS {t}",
    ],
    "constraints": [
        "CREATE TABLE {t} (id BIGINT, v INT, CONSTRAINT c CHECK (v > 0)) USING delta",
        "CREATE TABLE {t} (id BIGINT, v INT CHECK (v > 0)) USING delta",
        "CREATE TABLE {t} (id BIGINT PRIMARY KEY, v INT) USING delta",
        "CREATE TABLE {t} (id BIGINT) USING delta",
    ],
    "tables": [
        "CREATE TABLE {t} (id INT NOT NULL COMMENT 'key', s STRUCT<a: INT, b: ARRAY<STRING>>, "
        "g INT GENERATED ALWAYS AS (id * 2)) USING delta COMMENT 'x' TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name', 'mine' = 'y')",
        "INSERT INTO {t} (id, s) VALUES (1, named_struct('a', 1, 'b', array('x')))",
        "ALTER TABLE {t} ADD COLUMNS (n STRING COMMENT 'c' AFTER id)",
        "ALTER TABLE {t} ADD COLUMN s.c INT",
        "ALTER TABLE {t} RENAME COLUMN n TO m",
        "ALTER TABLE {t} ALTER COLUMN m COMMENT 'd'",
        "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)",
        "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('mine', 'nothing')",
        "SHOW COLUMNS IN {t}",
        "SHOW TBLPROPERTIES {t} ('delta.constraints.c')",
        "DESCRIBE TABLE {t}",
        "SELECT * FROM {t}",
        "ALTER TABLE {t} DROP COLUMNS (m)",
        "ALTER TABLE {t} DROP CONSTRAINT IF EXISTS nothing",
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (b) AS SELECT 1 AS a, 'x' AS b",
        "SELECT * FROM {t}",
        "RESTORE TABLE {t} TO VERSION AS OF 1",
        "SELECT id, g FROM {t}",
        "REPLACE TABLE {t} (z DATE) USING delta",
        "DESCRIBE TABLE {t}",
        "OPTIMIZE {t}",
    ],
    "changed columns": [
        "CREATE TABLE {t} (id BIGINT, v INT COMMENT 'x', p STRING, s STRUCT<a: INT, b: INT>, "
        "g INT GENERATED ALWAYS AS (v * 2)) USING delta PARTITIONED BY (p)",
        "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 3",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 1 + 2",
        "ALTER TABLE {t} ALTER COLUMN p SET DEFAULT 'x'",
        "ALTER TABLE {t} ALTER v SET DEFAULT 'abc'",
        "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT (SELECT 1)",
        "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT id",
        "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT",
        "ALTER TABLE {t} ALTER COLUMN nothing SET DEFAULT 3",
        "INSERT INTO {t} (id) VALUES (1)",
        "ALTER TABLE {t} CHANGE COLUMN id SET DEFAULT NULL",
        "ALTER TABLE {t} ALTER COLUMN v DROP DEFAULT",
        "INSERT INTO {t} (id) VALUES (2)",
        "ALTER TABLE {t} ALTER COLUMN v FIRST",
        "ALTER TABLE {t} ALTER COLUMN s.b FIRST",
        "ALTER TABLE {t} ALTER COLUMN S.B AFTER A",
        "ALTER TABLE {t} ALTER COLUMN v AFTER nothing",
        "ALTER TABLE {t} CHANGE COLUMN v v INT COMMENT 'y' AFTER p",
        "ALTER TABLE {t} ALTER COLUMN id COMMENT 'key', v SET DEFAULT 1 + 1, p FIRST",
        "ALTER TABLE {t} ALTER COLUMN id COMMENT 'one', id COMMENT 'two'",
        "INSERT INTO {t} (id, v, p) VALUES (3, 30, 'z')",
        ALL,
        "DESCRIBE TABLE {t}",
    ],
}
KNOWN = {
    "ALTER TABLE {t} ADD COLUMNS (id INT)": (
        "FIELD_ALREADY_EXISTS",
        "DELTA_DUPLICATE_COLUMNS_FOUND",
    ),
    "ALTER TABLE {t} ALTER COLUMN v TYPE STRING": (
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        "DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED",
    ),
    "ALTER TABLE {t} ADD COLUMNS (n STRUCT<a: INT>, n.b INT)": (
        "UNRESOLVED_COLUMN",
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    ),
    "ALTER TABLE {t} ADD COLUMNS (p INT FIRST, q INT AFTER nothing)": (
        "FIELD_NOT_FOUND",
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    ),
    # Here alone delta-spark minds the case of names.
    "SHOW PARTITIONS {t} PARTITION (`Q R` = 2, p = 'a')": (
        "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
        [{"p": "a", "q r": 2}],
    ),
    # Spark's analyzer looks columns up before Delta is asked.
    "ALTER TABLE {t} ALTER COLUMN nothing SET DEFAULT 3": (
        "UNRESOLVED_COLUMN",
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    ),
    "ALTER TABLE {t} ALTER COLUMN v AFTER nothing": (
        "UNRESOLVED_COLUMN",
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    ),
    # Spark's analyzer gives up before Delta says what is wrong.
    "MERGE INTO {t} USING (SELECT 1 AS i) s ON id = s.i WHEN MATCHED THEN UPDATE SET z = 1": (
        "INTERNAL_ERROR",
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
}
"""Statement -> what delta-spark answers, and what we do."""


@pytest.mark.one_day_in(2, 1)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_and_does_the_same(
    delta_spark: Any,
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    request: pytest.FixtureRequest,
) -> None:
    theirs, ours = str(tmp_path / "theirs"), str(tmp_path / "ours")

    def by_us(sql: str) -> list[dict[str, Any]]:
        return [row.asDict(recursive=True) for row in delta.sql(spark, sql).collect()]

    placed = json.dumps([_placed(statement, theirs) for statement in SCRIPTS[name]])
    said = iter(delta_spark.script(SCRIPT, "said", placed, alone=True))

    def by_them(_sql: str) -> list[dict[str, Any]]:
        answer = next(said)
        if "error" in answer:
            raise DeltaSparkError(**answer["error"])
        return list(answer["rows"])

    differing = []
    if name == "views":
        delta.enable(spark)
        request.addfinalizer(lambda: delta.disable(spark))
    for statement in SCRIPTS[name]:
        there = outcome(by_them, statement)
        here = outcome(by_us, _placed(statement, ours))
        if statement.startswith("SHOW PARTITIONS") and isinstance(there, list):
            there, here = sorted(there, key=repr), sorted(here, key=repr)
        if (there, here) != KNOWN.get(statement, (here, here)):
            differing.append((statement, there, here))
    assert not differing, "\n".join(f"{s}\n  theirs: {t}\n  ours:   {o}" for s, t, o in differing)
    first, second = DeltaLog.for_table(theirs).snapshot, DeltaLog.for_table(ours).snapshot
    assert [(f.name, str(f.data_type), f.nullable) for f in first.schema] == [
        (f.name, str(f.data_type), f.nullable) for f in second.schema
    ]
    assert first.partition_columns == second.partition_columns
    assert first.version == second.version
    operations = [[e.operation for e in DeltaLog.for_table(p).history()] for p in (theirs, ours)]
    assert operations[0] == operations[1]


def _placed(statement: str, path: str) -> str:
    return statement.replace("{t}", f"delta.`{path}`").replace("{at1}", f"delta.`{path}@v1`")
