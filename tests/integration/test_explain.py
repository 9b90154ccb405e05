"""EXPLAIN of statements that change rows shows how the rows are found, and changes none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, read_arrow
from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.connect
def test_the_plan_of_a_change_is_that_of_the_rows_that_it_finds(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    delta.write(spark.range(4).selectExpr("id", "id * 2 AS v")).save(path)
    for text, *found in (
        ("DELETE FROM {t} AS t WHERE t.id = 1", "Delta DELETE", "EqualTo(id,1)", "FileScan"),
        ("UPDATE {t} SET v = v + 77, id = DEFAULT WHERE id > 2", "Delta UPDATE", "+ 77", "(id,2)"),
        (
            "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "Delta MERGE",
            "Inner",
        ),
        (
            "WITH q AS (SELECT 9 AS id) MERGE INTO {t} t USING q ON t.id = q.id "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (q.id)",
            "RightOuter",
        ),
        (
            "MERGE INTO {t} t USING {t} VERSION AS OF 0 AS s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "FullOuter",
        ),
        (
            "MERGE INTO {t} t USING (SELECT 5) AS s (x) ON t.id = s.x "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "LeftOuter",
        ),
        ("INSERT INTO {t} SELECT id, v FROM {t} WHERE id = 3", "Delta INSERT", "EqualTo(id,3)"),
        ("INSERT INTO {t} VALUES (7, DEFAULT)", "Delta INSERT", "LocalTableScan"),
    ):
        sql = "EXPLAIN " + text.replace("{t}", f"delta.`{path}`")
        (row,) = delta.sql(spark, sql).collect()
        assert not [each for each in found if each not in row.plan], (text, row.plan)
    (row,) = delta.sql(spark, f"EXPLAIN FORMATTED DELETE FROM delta.`{path}`").collect()
    assert "(1) Scan parquet" in row.plan
    with pytest.raises(SqlSyntaxError, match="an expression"):
        delta.sql(spark, f"EXPLAIN DELETE FROM delta.`{path}` WHERE")
    assert DeltaLog.for_table(path).snapshot.version == 0
    assert sorted(read_arrow(path)["id"].to_pylist()) == [0, 1, 2, 3]
