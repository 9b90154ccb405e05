"""`count(*)`, `min` and `max` in SQL: the log answers as Spark does, or leaves it to Spark."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import lakelog.spark as delta
from lakelog.core import delete_rows, write_arrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CONF = "spark.databricks.delta.optimizeMetadataQuery.enabled"
ROWS = pa.table(
    {
        "p": pa.array([1, 1, 2, None, None, 3], pa.int32()),
        "l": pa.array([7, None, -3, 5, 2**40, None], pa.int64()),
        "s": pa.array([1, 2, 3, 4, 5, 6], pa.int16()),
        "d": pa.array([dt.date(2020, 1, n) for n in range(1, 7)]),
        "n": pa.nulls(6, pa.int32()),
        "t": ["a", "b", None, "d", "e", "f"],
        "f": [1.5, 3.5, None, 2.0, -0.0, 0.0],
        "a-b": pa.array(range(6), pa.int8()),
    }
)
BY_THE_LOG = [
    "SELECT count(*) FROM {t}",
    "SELECT count(1) AS n, min(l), max(l) most FROM {t}",
    "SELECT min(s), max(d), min(d), max(n), min(`a-b`) AS x FROM {t}",
    "SELECT min(p), max(p) FROM {t} x WHERE x.p > 1",
    "SELECT count(*) FROM {t} WHERE p = 1",
    "SELECT count(*) FROM {t} WHERE p = 99",
    "SELECT max(l) FROM {t} WHERE p = 99",
]
BY_SPARK = [
    "SELECT max(t) FROM {t}",
    "SELECT max(f), min(f) FROM {t}",
    "SELECT count(*) FROM {t} WHERE s = 2",
    "SELECT count(*) FROM {t} WHERE rand() < 2",
    "SELECT MIN(L) FROM {t}",
    "SELECT count(l) FROM {t}",
]


def outcomes(
    spark: SparkSession, texts: list[str], table: str, *, by_log: bool
) -> tuple[list[tuple[object, ...]], list[str]]:
    """Of each statement its columns, types and rows; and those that have no file to read."""
    found: list[tuple[object, ...]] = []
    fileless = []
    spark.conf.set(CONF, str(by_log).lower())
    try:
        for text in texts:
            frame = delta.sql(spark, text.replace("{t}", table))
            types = [each.dataType for each in frame.schema]
            found.append((frame.columns, types, [repr(tuple(row)) for row in frame.collect()]))
            if by_log and not frame.inputFiles():
                fileless.append(text)
    finally:
        spark.conf.unset(CONF)
    return found, fileless


def reads(spark: SparkSession, text: str) -> bool:
    """Whether a statement has a file to read."""
    return bool(delta.sql(spark, text).inputFiles())


@pytest.fixture(params=[False, True], ids=["plain", "mapped"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    return made(tmp_path, mapped=request.param)


def made(folder: Path, *, mapped: bool) -> str:
    """A table of two commits, of which the rows can be deleted one by one."""
    path = str(folder / "t")
    mode = {"delta.columnMapping.mode": "name"} if mapped else {}
    properties = {"delta.enableDeletionVectors": "true", **mode}
    for part in (ROWS.slice(0, 4), ROWS.slice(4)):
        write_arrow(path, part, mode="append", partition_by=["p"], properties=properties)
        properties = {}
    return path


@pytest.mark.one_day_in(2, 1)
@pytest.mark.connect
def test_the_log_answers_what_spark_answers(spark: SparkSession, table: str) -> None:
    named = f"delta.`{table}`"
    texts = [*BY_THE_LOG, *BY_SPARK]
    found, fileless = outcomes(spark, texts, named, by_log=True)
    assert found == outcomes(spark, texts, named, by_log=False)[0]
    assert fileless == BY_THE_LOG


def test_a_null_is_no_condition_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path, mapped=False)
    with pytest.raises(AnalysisException, match="FILTER_NOT_BOOLEAN"):
        delta.sql(spark, f"SELECT count(*) FROM delta.`{table}` WHERE NULL")


def test_rows_that_were_deleted_count_for_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path, mapped=True)
    named = f"delta.`{table}`"
    delete_rows(table, "l = -3")
    delete_rows(table, "s = 1")
    # One before the rows went is enough: how a version is chosen is none of the statement's.
    texts = [*BY_THE_LOG, BY_THE_LOG[1].replace("{t}", "{t} VERSION AS OF 1")]
    found, _ = outcomes(spark, texts, named, by_log=True)
    assert found == outcomes(spark, texts, named, by_log=False)[0]
    assert not reads(spark, f"SELECT count(*) FROM {named}")
    # The least value may be among the rows that went.
    assert reads(spark, f"SELECT min(s) FROM {named}")


def test_files_without_statistics_are_read(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    properties = {"delta.dataSkippingNumIndexedCols": "0"}
    write_arrow(path, ROWS, mode="append", properties=properties)
    texts = [each for each in BY_THE_LOG if "WHERE" not in each]
    named = f"delta.`{path}`"
    found, _ = outcomes(spark, texts, named, by_log=True)
    assert found == outcomes(spark, texts, named, by_log=False)[0]
    assert reads(spark, f"SELECT max(l) FROM {named}")
