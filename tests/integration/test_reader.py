from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import lakelog.spark as delta
from lakelog.core.errors import (
    DataFileMissingError,
    DeltaAnalysisError,
    InvalidPredicateError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.connect


def ids(df: DataFrame) -> list[Any]:
    return sorted(row.id for row in df.select("id").collect())


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """Three versions: ids 0-9, then 10-19, then 20-29 alone; one file each, `p` = `id % 2`."""
    path = str(tmp_path / "t")
    for version, mode in enumerate(("append", "append", "overwrite")):
        rows = spark.range(version * 10, version * 10 + 10, 1, 1)
        delta.write(rows.selectExpr("id", "id % 2 AS p")).mode(mode).save(path)
    return path


def test_a_table_is_read_at_its_newest_version(spark: SparkSession, table: str) -> None:
    df = delta.read(spark).format("delta").load(table)
    assert df.columns == ["id", "p"]
    assert ids(df) == list(range(20, 30))


def test_a_dataframe_stays_at_the_version_it_was_planned_on(
    spark: SparkSession, table: str
) -> None:
    df = delta.read(spark).load(table)
    delta.write(spark.range(99, 100).selectExpr("id", "id AS p")).mode("append").save(table)
    assert ids(df) == list(range(20, 30))


@pytest.mark.parametrize("version", [0, "0"], ids=["number", "text"])
def test_version_as_of_reads_an_older_version(
    spark: SparkSession, table: str, version: object
) -> None:
    assert ids(delta.read(spark).option("versionAsOf", version).load(table)) == list(range(10))
    assert ids(delta.read(spark).load(table, VersionAsOf=version)) == list(range(10))


def test_a_suffix_of_the_path_reads_an_older_version(spark: SparkSession, table: str) -> None:
    assert ids(delta.read(spark).load(f"{table}@v1")) == list(range(20))


def test_a_folder_whose_own_name_ends_in_a_version_is_read_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t@v7")
    delta.write(spark.range(3)).save(path)
    assert ids(delta.read(spark).load(path)) == [0, 1, 2]


def test_timestamp_as_of_is_a_time_of_the_session_zone(
    spark: SparkSession, tmp_path: Path, table: str
) -> None:
    from lakelog.core.delta_log import DeltaLog

    moment = DeltaLog.for_table(table).snapshot_at(version=1).timestamp
    sql = "SELECT date_format(timestamp_millis({}), '{}') AS text"
    for zone in ("America/New_York", "Asia/Tokyo", "+05:30"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        plain, digits = (
            spark.sql(sql.format(moment, each)).collect()[0].text
            for each in ("yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmssSSS")
        )
        assert ids(delta.read(spark).option("timestampAsOf", plain).load(table)) == list(range(20))
        assert ids(delta.read(spark).load(f"{table}@{digits}")) == list(range(20))


def test_times_that_the_log_does_not_cover_are_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(TimestampOutOfRangeError):
        delta.read(spark).option("timestampAsOf", "2001-01-01").load(table)
    with pytest.raises(DeltaAnalysisError, match="cannot be converted to a valid timestamp"):
        delta.read(spark).option("timestampAsOf", "yesterday-ish").load(table)


def test_a_version_that_does_not_exist_says_which_do(spark: SparkSession, table: str) -> None:
    with pytest.raises(VersionNotFoundError) as caught:
        delta.read(spark).option("versionAsOf", 9).load(table)
    assert "9" in str(caught.value)
    with pytest.raises(DeltaAnalysisError, match="whole number"):
        delta.read(spark).option("versionAsOf", "last").load(table)


def test_two_ways_to_say_the_state_are_one_too_many(spark: SparkSession, table: str) -> None:
    reader = delta.read(spark).option("versionAsOf", 1)
    with pytest.raises(DeltaAnalysisError, match="one of them"):
        reader.load(f"{table}@v1")
    with pytest.raises(DeltaAnalysisError, match="one of them"):
        reader.option("timestampAsOf", "2030-01-01").load(table)


def test_where_skips_files_by_statistics_and_filters_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    for start in (0, 100, 200):
        delta.write(spark.range(start, start + 100, 1, 1)).mode("append").save(path)
    df = delta.read(spark).where("id BETWEEN 150 AND 152").where("id % 2 = 0").load(path)
    assert ids(df) == [150, 152]
    assert len(df.inputFiles()) == 1


def test_where_prunes_partitions_and_keeps_what_it_cannot_judge(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 100, 1, 1).selectExpr("id", "id % 5 AS p", "cast(id AS string) AS s")
    delta.write(rows).partitionBy("p").save(path)
    df = delta.read(spark).where("p IN (1, 2) AND length(s) = 1").load(path)
    assert ids(df) == [1, 2, 6, 7]
    assert len(df.inputFiles()) == 2


def test_where_names_an_unknown_column(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidPredicateError, match="nope"):
        delta.read(spark).where("nope = 1").load(table)


def test_a_table_in_this_process_memory_is_read_too(spark: SparkSession) -> None:
    path = "memory://test-reader/t"
    for start in (0, 10):
        rows = spark.range(start, start + 10).selectExpr("id", "id % 2 AS p")
        delta.write(rows).mode("append").partitionBy("p").save(path)
    assert ids(delta.read(spark).where("p = 1 AND id > 14").load(path)) == [15, 17, 19]
    assert delta.read(spark).load(f"{path}@v0").count() == 10


def test_no_table_no_read(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="none"):
        delta.read(spark).load(str(tmp_path / "none"))


def test_a_missing_data_file_is_named(spark: SparkSession, table: str) -> None:
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.paths import data_path

    (add,) = DeltaLog.for_table(table).snapshot.files()
    import os

    os.unlink(data_path(table, add.path))
    with pytest.raises(DataFileMissingError, match="version 2"):
        delta.read(spark).load(table)


def test_a_schema_is_accepted_where_it_is_the_tables(spark: SparkSession, table: str) -> None:
    assert ids(delta.read(spark).schema("id LONG, p BIGINT").load(table)) == list(range(20, 30))
    with pytest.raises(DeltaAnalysisError, match="own schema"):
        delta.read(spark).schema("id STRING").load(table)


def test_what_it_cannot_do_names_the_call_that_can(spark: SparkSession, table: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"spark.read.format\('csv'\)"):
        delta.read(spark).format("csv")
    with pytest.raises(TableNotFoundError, match="no table of that name in db"):
        delta.read(spark).table("db.t")
    with pytest.raises(DeltaAnalysisError, match="leave out schema"):
        delta.read(spark).schema("id LONG").option("readChangeFeed", True).load(table)
    with pytest.raises(DeltaAnalysisError, match="one path"):
        delta.read(spark).load([table, table])
