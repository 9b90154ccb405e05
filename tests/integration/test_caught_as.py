"""Scripts written for delta-spark catch lakelog's errors by PySpark's classes, and by ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark import errors as pyspark_errors
from pyspark.errors import PySparkException

import lakelog.spark as delta
from lakelog.core import errors
from lakelog.spark import DeltaTable, IdentityGenerator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.connect

ANALYSIS, ARGUMENT = "AnalysisException", "IllegalArgumentException"
UNSUPPORTED, PARSE = "UnsupportedOperationException", "ParseException"
WRONG: dict[str, tuple[Callable[[Any, str], Any], str, type[Exception], str | None]] = {
    "load of nothing": (
        lambda s, p: s.read.format("delta").load(f"{p}/none"),
        ANALYSIS,
        errors.TableNotFoundError,
        "DELTA_TABLE_NOT_FOUND",
    ),
    "forPath of nothing": (
        lambda s, p: DeltaTable.forPath(s, f"{p}/none"),
        ANALYSIS,
        errors.TableNotFoundError,
        "DELTA_MISSING_DELTA_TABLE",
    ),
    "forName of nothing": (
        lambda s, p: DeltaTable.forName(s, "caught_none"),
        ANALYSIS,
        errors.TableNotFoundError,
        "DELTA_MISSING_DELTA_TABLE",
    ),
    "a path that is taken": (
        lambda s, p: s.range(1).write.format("delta").save(f"{p}/t"),
        ANALYSIS,
        errors.TableExistsError,
        "DELTA_PATH_EXISTS",
    ),
    "a name that is taken": (
        lambda s, p: s.range(1).write.format("delta").saveAsTable("caught"),
        ANALYSIS,
        errors.TableExistsError,
        "DELTA_TABLE_ALREADY_EXISTS",
    ),
    "create of what is there": (
        lambda s, p: DeltaTable.create(s).tableName("caught").addColumn("a", "INT").execute(),
        ANALYSIS,
        errors.TableExistsError,
        "DELTA_TABLE_ALREADY_EXISTS",
    ),
    "replace of nothing": (
        lambda s, p: DeltaTable.replace(s).tableName("caught_2").addColumn("a", "INT").execute(),
        ANALYSIS,
        errors.TableNotFoundError,
        "DELTA_CANNOT_REPLACE_MISSING_TABLE",
    ),
    "other columns": (
        lambda s, p: s.range(1).toDF("z").write.format("delta").mode("append").save(f"{p}/t"),
        ANALYSIS,
        errors.SchemaMismatchError,
        "DELTA_METADATA_MISMATCH",
    ),
    "a version to come": (
        lambda s, p: s.read.format("delta").option("versionAsOf", 99).load(f"{p}/t"),
        ANALYSIS,
        errors.VersionNotFoundError,
        "DELTA_VERSION_NOT_FOUND",
    ),
    "a time to come": (
        lambda s, p: s.read.format("delta").option("timestampAsOf", "2999-01-01").load(f"{p}/t"),
        ANALYSIS,
        errors.TimestampOutOfRangeError,
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
    ),
    "no time": (
        lambda s, p: DeltaTable.forPath(s, f"{p}/t").restoreToTimestamp("05/04/1999"),
        ANALYSIS,
        errors.DeltaAnalysisError,
        "DELTA_TIMESTAMP_INVALID",
    ),
    "a retention that is too short": (
        lambda s, p: DeltaTable.forPath(s, f"{p}/t").vacuum(0),
        ARGUMENT,
        errors.DeltaAnalysisError,
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
    ),
    "a type that can't be parsed": (
        lambda s, p: DeltaTable.create(s).location(f"{p}/n").addColumn("a", "1"),
        PARSE,
        errors.DeltaAnalysisError,
        "PARSE_SYNTAX_ERROR",
    ),
    "a statement that can't be parsed": (
        lambda s, p: s.sql(f"UPDATE delta.`{p}/t` SET a"),
        PARSE,
        errors.DeltaAnalysisError,
        "PARSE_SYNTAX_ERROR",
    ),
    "numbers in an INT": (
        lambda s, p: (
            DeltaTable.create(s)
            .location(f"{p}/n")
            .addColumn("a", "INT", generatedAlwaysAs=IdentityGenerator())
            .execute()
        ),
        UNSUPPORTED,
        errors.DeltaAnalysisError,
        "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
    ),
}
BROKEN: dict[str, Callable[[Any], Any]] = {
    "INSERT of a null": lambda s: s.sql("INSERT INTO caught VALUES (NULL, 1)"),
    "INSERT past a CHECK": lambda s: s.sql("INSERT INTO caught VALUES (1, -1)"),
    "an append": lambda s: (
        s.range(1).selectExpr("CAST(id AS INT) a", "-1 b").write.insertInto("caught")
    ),
    "an append of many": lambda s: (
        s.range(0, 9, 1, 3).selectExpr("CAST(id AS INT) a", "CAST(4 - id AS INT) b")
        .write.format("delta").mode("append").saveAsTable("caught")
    ),
    "an update": lambda s: DeltaTable.forName(s, "caught").update(set={"b": "-b"}),
}  # fmt: skip


@pytest.fixture
def enabled(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    delta.enable(spark)
    spark.sql(f"CREATE TABLE caught (a INT NOT NULL, b INT) USING delta LOCATION '{tmp_path}/t'")
    spark.sql("ALTER TABLE caught ADD CONSTRAINT positive CHECK (b > 0)")
    spark.sql("INSERT INTO caught VALUES (1, 1)")
    yield spark
    spark.sql("DROP TABLE caught")
    delta.disable(spark)


@pytest.mark.one_day_in(2, 1)
def test_errors_are_pysparks_and_ours(enabled: SparkSession, tmp_path: Path) -> None:
    for name, (call, theirs, ours, condition) in WRONG.items():
        with pytest.raises(getattr(pyspark_errors, theirs)) as caught:
            call(enabled, str(tmp_path))
        assert isinstance(caught.value, ours), name
        error: Any = caught.value
        assert error.getCondition() == condition, name
        assert error.getSqlState(), name
        assert isinstance(error.getMessageParameters(), dict), name


def test_broken_rules_have_the_name_that_scripts_look_for(enabled: SparkSession) -> None:
    for name, call in BROKEN.items():
        with pytest.raises(errors.ConstraintViolationError) as caught:
            call(enabled)
        assert isinstance(caught.value, PySparkException), name
        assert "DeltaInvariantViolationException" in str(caught.value), name
        assert "DELTA_" in (caught.value.getCondition() or ""), name
    assert enabled.table("caught").count() == 1
