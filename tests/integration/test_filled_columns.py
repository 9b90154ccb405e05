"""Columns that Spark's writes fill: defaults, identities, generated ones; by every way to write."""

from __future__ import annotations

import datetime

import pytest

import lakelog.spark
from lakelog.core import DeltaLog, create_table
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError
from lakelog.core.features.identity_columns import IDENTITY_TAG, identity_columns
from lakelog.core.schema import (
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
    identity_column,
)

LONG, STRING, INT = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")
DATE, TIMESTAMP = PrimitiveType("date"), PrimitiveType("timestamp")
DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
WAYS = ["driver", "native", "arrow"]
PATH = "spark.lakelog.write.path"
TASKS = "spark.lakelog.identity.maxTasks"


@pytest.fixture
def way(request, spark):
    spark.conf.set(PATH, request.param)
    yield request.param
    spark.conf.unset(PATH)


def rows(path):
    return DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()


def mark(path):
    return identity_columns(DeltaLog.for_table(path).snapshot.schema)["id"].high_water_mark


EVENTS = StructType(
    (
        StructField("seen", TIMESTAMP),
        StructField("n", INT),
        generated_column("day", DATE, "CAST(seen AS DATE)"),
        generated_column("key", STRING, "sha2(CAST(n AS STRING), 256) -- of the number"),
        column_with_default("source", STRING, "concat('un', 'known')"),
    )
)


@pytest.mark.connect
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_what_the_data_lacks_is_computed_where_the_rows_are(spark, tmp_path, way):
    path = str(tmp_path / "t")
    create_table(path, EVENTS, partition_by=["day"], properties=DEFAULTS)
    data = spark.range(2).selectExpr("CAST(id AS INT) n", "TIMESTAMP'2024-05-06 23:30:00' seen")
    lakelog.spark.write(data).mode("append").save(path)
    found = {row["n"]: row for row in rows(path)}
    assert found[1]["day"] == datetime.date(2024, 5, 6)
    assert found[1]["key"] == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    assert {row["source"] for row in found.values()} == {"unknown"}
    for number, null in ((5, "CAST(NULL AS STRING)"), (6, "NULL")):
        given = spark.sql(f"SELECT {number} n, {null} source")
        lakelog.spark.write(given).mode("append").save(path)
        assert [row["source"] for row in rows(path) if row["n"] == number] == [None]
    with pytest.raises(ConstraintViolationError, match="Generated Column"):
        lakelog.spark.write(spark.sql("SELECT 7 n, NULL key")).mode("append").save(path)


@pytest.mark.connect
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_wrong_generated_value_stops_the_write(spark, tmp_path, way):
    path = str(tmp_path / "t")
    create_table(path, EVENTS, properties=DEFAULTS)
    right = "SELECT 1 n, TIMESTAMP'2024-05-06 23:30:00' seen, DATE'2024-05-06' day"
    lakelog.spark.write(spark.sql(right)).mode("append").save(path)
    wrong = spark.sql(right.replace("05-06' day", "05-07' day"))
    with pytest.raises(ConstraintViolationError) as caught:
        lakelog.spark.write(wrong).mode("append").save(path)
    text = str(caught.value)
    assert "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated Column" in text
    assert "(day <=> CAST(seen AS DATE))" in text
    assert "- day : 2024-05-07" in text
    assert len(rows(path)) == 1


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize(("start", "step"), [(10, 3), (0, -2)])
def test_numbers_are_unique_on_the_lattice_and_marked(spark, tmp_path, way, start, step):
    path = str(tmp_path / "t")
    columns = StructType((identity_column("id", start=start, step=step), StructField("v", LONG)))
    create_table(path, columns, properties={"delta.dataSkippingNumIndexedCols": "0"})
    total = 0
    for count, partitions in ((7, 3), (0, 1), (5, 1)):
        data = spark.range(0, count, 1, partitions).selectExpr("id AS v")
        lakelog.spark.write(data).mode("append").save(path)
        total += count
    numbers = [row["id"] for row in rows(path)]
    assert len(set(numbers)) == total
    assert all((n - start) % step == 0 and (n - start) // step >= 0 for n in numbers)
    furthest = max(numbers) if step > 0 else min(numbers)
    assert mark(path) == furthest
    if way == "driver":
        assert sorted(numbers) == sorted(start + k * step for k in range(total))
    last = DeltaLog.for_table(path).history(1)[0]
    assert last.commit_info["tags"] == {IDENTITY_TAG: "true"}
    assert last.is_blind_append


def test_a_shuffle_of_many_tasks_gives_no_number_twice(spark, tmp_path):
    path = str(tmp_path / "t")
    create_table(path, StructType((identity_column("id"), StructField("v", LONG))))
    spark.conf.set(TASKS, "3")
    try:
        data = spark.range(200).repartition(8).selectExpr("id AS v")
        lakelog.spark.write(data).mode("append").save(path)
    finally:
        spark.conf.unset(TASKS)
    numbers = {row["id"] for row in rows(path)}
    assert len(numbers) == 200
    # Three tasks of some 67 rows each: gaps, but no more of them than of tasks.
    assert max(numbers) <= 3 * 100


def test_few_rows_get_numbers_without_gaps(spark, tmp_path):
    path = str(tmp_path / "t")
    create_table(path, StructType((identity_column("id"), StructField("v", STRING))))
    for value in ("a", "b"):
        data = spark.createDataFrame([(value,), (value * 2,)], "v string")
        lakelog.spark.write(data).mode("append").save(path)
    assert sorted(row["id"] for row in rows(path)) == [1, 2, 3, 4]


@pytest.mark.connect
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_numbers_beyond_a_bigint_stop_the_write(spark, tmp_path, way):
    path = str(tmp_path / "t")
    last = (1 << 63) - 1
    create_table(path, StructType((identity_column("id", start=last), StructField("v", LONG))))
    with pytest.raises(ConstraintViolationError, match="identity column id has no numbers left"):
        lakelog.spark.write(spark.range(0, 2, 1, 1).selectExpr("id v")).mode("append").save(path)
    lakelog.spark.write(spark.range(0, 1, 1, 1).selectExpr("id v")).mode("append").save(path)
    assert mark(path) == last


def test_values_for_an_identity(spark, tmp_path):
    always, by_default = str(tmp_path / "a"), str(tmp_path / "b")
    create_table(always, StructType((identity_column("id"), StructField("v", LONG))))
    create_table(
        by_default, StructType((identity_column("id", by_default=True), StructField("v", LONG)))
    )
    data = spark.sql("SELECT 50L id, 1L v")
    with pytest.raises(DeltaAnalysisError, match="EXPLICIT_INSERT_NOT_SUPPORTED"):
        lakelog.spark.write(data).mode("append").save(always)
    lakelog.spark.write(data).mode("append").save(by_default)
    assert mark(by_default) is None
    lakelog.spark.write(spark.sql("SELECT 2L v")).mode("append").save(by_default)
    assert {row["v"]: row["id"] for row in rows(by_default)} == {1: 50, 2: 1}


@pytest.mark.connect
def test_rows_that_replace_others_are_numbered_and_those_that_stay_keep_theirs(spark, tmp_path):
    path = str(tmp_path / "t")
    columns = StructType(
        (identity_column("id"), StructField("v", LONG), generated_column("w", LONG, "v + id"))
    )
    create_table(path, columns)
    lakelog.spark.write(spark.range(4).selectExpr("id v").coalesce(1)).mode("append").save(path)
    before = {row["v"]: row["id"] for row in rows(path)}
    data = spark.sql("SELECT 3L v")
    lakelog.spark.write(data).mode("overwrite").replaceWhere("v >= 2").save(path)
    after = {row["v"]: row["id"] for row in rows(path)}
    assert {v: after[v] for v in (0, 1)} == {v: before[v] for v in (0, 1)}
    assert after.keys() == {0, 1, 3}
    assert after[3] > max(before.values())
    assert all(row["w"] == row["v"] + row["id"] for row in rows(path))
    assert mark(path) >= after[3]


@pytest.mark.connect
def test_the_data_source_refuses_what_it_can_t_fill(spark, tmp_path):
    lakelog.spark.register(spark)
    path = str(tmp_path / "t")
    create_table(path, EVENTS, properties=DEFAULTS)
    data = spark.sql("SELECT 1 n")
    with pytest.raises(Exception, match="generates, numbers or fills its column day"):
        data.write.format("lakelog").mode("append").save(path)
    assert rows(path) == []


def test_a_copy_of_a_table_has_its_rows_and_none_of_its_rules(spark, tmp_path):
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    create_table(path, EVENTS, properties=DEFAULTS)
    frame = lakelog.spark.read(spark).load(path)
    lakelog.spark.write(frame).save(copy)
    fields = DeltaLog.for_table(copy).snapshot.schema
    assert [dict(field.metadata) for field in fields] == [{}] * 5
