"""Spark with lakelog, Spark with Delta's own jars, and deltalake, on the same tables."""

from __future__ import annotations

import deltalake
import pyarrow.compute as pc
import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog
from support.samples import SAMPLES, ids, numbers, rows_of

BROAD = ["every type", "timestamps without zone", "nested", "by text", "by every type"]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def frame(spark, data):
    if data.column_names == ["id", "at"]:
        # PySpark takes times without zone for times in the session's zone unless it is told.
        return spark.createDataFrame(data, "id bigint, at timestamp_ntz")
    return spark.createDataFrame(data)


def rows(df):
    return rows_of(df.toArrow())


@pytest.mark.parametrize("name", BROAD)
def test_what_we_write_by_spark_all_others_read(spark, delta_spark, path, name):
    sample = SAMPLES[name]
    delta.write(frame(spark, sample.data)).partitionBy(*sample.partition_by).save(path)
    expected = rows_of(sample.data)
    assert rows_of(delta_spark.read(path)) == expected
    assert rows_of(deltalake.DeltaTable(path).to_pyarrow_table()) == expected
    assert rows_of(DeltaLog.for_table(path).snapshot.to_arrow()) == expected


@pytest.mark.parametrize("name", BROAD)
def test_what_delta_spark_writes_we_read_and_append_to_by_spark(spark, delta_spark, path, name):
    sample = SAMPLES[name]
    delta_spark.write(path, sample.data, partition_by=sample.partition_by)
    assert rows(delta.read(spark).load(path)) == rows_of(sample.data)
    delta.write(frame(spark, sample.data)).mode("append").save(path)
    doubled = sorted(rows_of(sample.data) * 2, key=lambda row: row["id"])
    assert rows_of(delta_spark.read(path)) == doubled
    assert rows(delta.read(spark).load(path)) == doubled
    if sample.partition_by:
        # One value is one partition, whoever wrote the row.
        adds = DeltaLog.for_table(path).snapshot.files()
        assert len({str(sorted(add.partition_values.items())) for add in adds}) * 2 == len(adds)


def test_what_deltalake_writes_we_read_by_spark(spark, path):
    for name in BROAD:
        sample = SAMPLES[name]
        where = f"{path}-{name}"
        by = list(sample.partition_by) or None
        deltalake.write_deltalake(where, sample.data, partition_by=by)
        assert rows(delta.read(spark).load(where)) == rows_of(sample.data), name


def test_overwrites_of_ours_and_time_travel_are_seen_by_delta_spark(spark, delta_spark, path):
    delta.write(frame(spark, numbers(0))).partitionBy("p").save(path)
    odd = numbers(20).filter(pc.field("p") == 1)
    delta.write(frame(spark, odd)).mode("overwrite").replaceWhere("p = 1").save(path)
    few = numbers(30, 1)
    writer = delta.write(frame(spark, few)).mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(path)
    for version in range(3):
        theirs = rows_of(delta_spark.read(path, version=version))
        assert rows(delta.read(spark).option("versionAsOf", version).load(path)) == theirs
    assert ids(delta_spark.read(path)) == [21, 23, 30]
    assert [e["operation"] for e in delta_spark.history(path)] == ["WRITE"] * 3


CONDITIONS = [
    "f > 1e30",
    "isnan(d)",
    "d < -1e300",
    "l = 9223372036854775807",
    "small = -99999.99",
    "wide > 12345678901234567890.123456789012345677",
    "day < '1969-12-31'",
    "at = '1969-12-31 23:59:59.999999'",
    "at > '2038-01-19 03:14:08.123455'",
    "text > 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'",
    "text IS NULL",
    "raw IS NOT NULL AND i = 0",
]


@pytest.mark.one_day_in(3, 1)
def test_statistics_of_files_that_spark_wrote_for_us_lose_no_row(spark, delta_spark, path):
    data = SAMPLES["every type"].data
    for number in range(data.num_rows):
        one = frame(spark, data.slice(number, 1)).coalesce(1)
        delta.write(one).mode("append").save(path)
    assert DeltaLog.for_table(path).snapshot.num_files == data.num_rows
    for condition in CONDITIONS:
        # The first is planned by statistics, the second can't be: the condition is hidden.
        skipping = delta_spark.count(path, where=condition)
        whole = delta_spark.count(path, where=f"IF(rand() < 2, {condition}, false)")
        assert skipping == whole > 0, condition
        assert delta.read(spark).where(condition).load(path).count() == whole, condition
