"""`_metadata` in SQL: what it says of files, and of rows that are tracked, as of delta-spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import lakelog.spark as delta
from lakelog.core import DeltaLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect
NOT_PARTITIONED = pytest.mark.connect(tracked=("",))
"""Where Spark Connect makes the difference, how files lie makes none."""

FIELDS = "row_id", "base_row_id", "default_row_commit_version", "row_commit_version"
SHOWN = ", ".join(f"_metadata.{each}" for each in FIELDS)


class Session:
    """An enabled session and a table whose rows are tracked."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, str(path)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        found = self.spark.sql(text.replace("/T", f"delta.`{self.path}`"))
        return [tuple(row) for row in found.collect()]


@pytest.fixture(params=["", " PARTITIONED BY (n)"], ids=["plain", "partitioned"])
def tracked(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Session]:
    delta.enable(spark)
    session = Session(spark, tmp_path / "t")
    properties = "'delta.enableRowTracking' = 'true'"
    session.rows(
        f"CREATE TABLE /T (id INT, n INT) USING delta{request.param} TBLPROPERTIES ({properties})"
    )
    session.rows("INSERT INTO /T SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 2), (2, 2)")
    session.rows("INSERT INTO /T VALUES (3, 2)")
    yield session
    delta.disable(spark)


@NOT_PARTITIONED
def test_rows_have_their_ids(tracked: Session) -> None:
    # As delta-spark 4.4 gave them.
    first = [(1, 0, 0, 1, 1), (2, 1, 0, 1, 1)]
    assert tracked.rows(f"SELECT id, {SHOWN} FROM /T ORDER BY id") == [*first, (3, 2, 2, 2, 2)]
    assert tracked.rows(f"SELECT id, {SHOWN} FROM /T VERSION AS OF 1 ORDER BY id") == first

    tracked.rows("UPDATE /T SET n = 5 WHERE id = 2")
    tracked.rows("OPTIMIZE /T")
    files = DeltaLog.for_table(tracked.path).update().files()
    bases = {each.base_row_id: each.default_row_commit_version for each in files}
    found = tracked.rows(f"SELECT id, {SHOWN} FROM /T ORDER BY id")
    assert [(row[0], row[1], row[4]) for row in found] == [(1, 0, 1), (2, 1, 3), (3, 2, 2)]
    assert all(bases[row[2]] == row[3] for row in found)
    tracked.rows("DELETE FROM /T WHERE id = 1")
    assert tracked.rows("SELECT id, _metadata.row_id FROM /T ORDER BY id") == [(2, 1), (3, 2)]


@NOT_PARTITIONED
def test_the_fields_are_those_of_a_column(tracked: Session) -> None:
    assert tracked.rows(
        "SELECT *, t._metadata.row_id FROM /T t WHERE t._metadata.row_id > 0 AND n = 2 ORDER BY 1"
    ) == [(2, 2, 1), (3, 2, 2)]
    ((whole,),) = tracked.rows("SELECT _metadata FROM /T WHERE id = 3")
    assert whole.asDict().keys() >= {*FIELDS, "file_path", "file_name", "row_index"}
    assert whole.row_id == 2
    assert whole.file_path.endswith(whole.file_name)
    assert tracked.rows(
        "SELECT a.id, b.id FROM /T a JOIN /T b ON a._metadata.row_id = b._metadata.row_id + 1 "
        "ORDER BY 1"
    ) == [(2, 1), (3, 2)]
    assert tracked.rows("SELECT count(*) FROM /T WHERE _metadata.row_index = 0") == [(2,)]


@pytest.mark.one_day_in(2, 1)
@NOT_PARTITIONED
def test_queries_in_changes_see_it(tracked: Session) -> None:
    tracked.rows("UPDATE /T SET n = (SELECT count(_metadata.file_name) FROM /T) WHERE id = 1")
    tracked.rows("UPDATE /T SET n = (SELECT int(max(_metadata.row_id)) + 5 FROM /T) WHERE id = 2")
    tracked.rows(
        "MERGE INTO /T t USING (SELECT id, _metadata.row_id AS r FROM /T) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 3 THEN UPDATE SET n = s.r "
        "WHEN MATCHED THEN UPDATE SET n = n + (SELECT count(DISTINCT _metadata.row_id) FROM /T)"
    )
    assert tracked.rows("SELECT id, n FROM /T ORDER BY id") == [(1, 6), (2, 10), (3, 2)]


def test_rows_that_are_not_tracked_have_no_ids(spark: SparkSession, tmp_path: Path) -> None:
    delta.enable(spark)
    try:
        plain = Session(spark, tmp_path / "t")
        plain.rows("CREATE TABLE /T (id INT) USING delta")
        plain.rows("INSERT INTO /T VALUES (1)")
        with pytest.raises(AnalysisException, match="FIELD_NOT_FOUND"):
            plain.rows("SELECT _metadata.row_id FROM /T")
        assert plain.rows("SELECT _metadata.row_index FROM /T") == [(0,)]
    finally:
        delta.disable(spark)
