"""Spark's rules for time zones decide what Spark evaluates, whatever Python's are."""

from __future__ import annotations

import re
import shutil

import pytest

from lakelog.core import DeltaLog
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import is_opaque
from lakelog.spark import read, sql, write
from lakelog.spark.session.session import session_conf

CLOCKS = ["1850-01-01 01:01:01", "1945-07-01 12:00:00", "2024-07-01 08:00:00"]


ONE_ZONE = pytest.mark.parametrize("zone", ["Europe/Stockholm"], indirect=True)


@pytest.fixture(params=["Europe/Stockholm", "Africa/Accra"])
def zone(request, spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.one_day_in(2, 1)
def test_what_was_written_on_a_clock_is_found_changed_and_deleted_by_it(spark, tmp_path, zone):
    path = str(tmp_path / "t")
    sql(
        spark,
        f"CREATE TABLE delta.`{path}` (ts TIMESTAMP, p TIMESTAMP, n INT) USING delta "
        "PARTITIONED BY (p)",
    )
    for number, clock in enumerate(CLOCKS):
        time = f"TIMESTAMP'{clock}'"
        sql(spark, f"INSERT INTO delta.`{path}` VALUES ({time}, {time}, {number})")
    for number, clock in enumerate(CLOCKS):
        for condition in (
            f"ts = TIMESTAMP'{clock}'",
            f"p = '{clock}'",
            f"ts IN (TIMESTAMP'{clock}', TIMESTAMP'1700-01-01 00:00:00')",
            f"CAST(ts AS DATE) = DATE'{clock[:10]}' AND hour(p) = {int(clock[11:13])}",
            f"ts BETWEEN CAST('{clock}' AS TIMESTAMP) AND to_timestamp('{clock}')",
        ):
            found = sql(spark, f"SELECT n FROM delta.`{path}` WHERE {condition}").collect()
            assert [row.n for row in found] == [number], condition
        for condition in (f"ts = TIMESTAMP'{clock}'", f"hour(p) = {int(clock[11:13])}"):
            found = sql(spark, f"UPDATE delta.`{path}` SET n = n WHERE {condition}").collect()
            assert [tuple(row) for row in found] == [(1,)], condition
    for number, clock in enumerate(CLOCKS):
        found = sql(spark, f"DELETE FROM delta.`{path}` WHERE ts = TIMESTAMP'{clock}'").collect()
        assert [tuple(row) for row in found] == [(1,)], (number, clock)


@ONE_ZONE
def test_where_the_rules_agree_files_are_still_left_out(spark, tmp_path, zone):
    path = str(tmp_path / "t")
    sql(spark, f"CREATE TABLE delta.`{path}` (ts TIMESTAMP) USING delta")
    log = DeltaLog.for_table(path, conf=session_conf(spark))
    snapshot = log.update()

    def opaque(text):
        zone = snapshot.conf.session_tz
        found = normalize_filter(text, snapshot.schema, EvalContext(zone))
        return found is not None and is_opaque(found)

    assert not opaque("ts > TIMESTAMP'2024-07-01 08:00:00'")
    assert not opaque("ts > TIMESTAMP'1850-01-01 01:01:01Z'")
    assert opaque("ts > TIMESTAMP'1850-01-01 01:01:01'")
    assert opaque("ts > DATE'1850-01-01'")


@pytest.fixture
def written_by_others(spark, tmp_path, zone):
    """A table partitioned by times whose texts in the log name no zone, as others write them."""
    made, copied = tmp_path / "made", tmp_path / "t"
    sql(
        spark,
        f"CREATE TABLE delta.`{made}` (p TIMESTAMP, n INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = true)",
    )
    for number, clock in enumerate(CLOCKS):
        sql(spark, f"INSERT INTO delta.`{made}` VALUES (TIMESTAMP'{clock}', {number})")
        commit = made / "_delta_log" / f"{number + 1:020}.json"
        value = f'"partitionValues":{{"p":"{clock}"}}'
        text, count = re.subn(r'"partitionValues":\{"p":"[^"]*"\}', value, commit.read_text())
        assert count == 1
        commit.write_text(text)
    for each in (made / "_delta_log").glob("*.crc"):
        each.unlink()
    # Elsewhere, because the session knows what it committed.
    shutil.copytree(made, copied)
    return f"delta.`{copied}`", str(copied)


@ONE_ZONE
def test_partitions_whose_times_name_no_zone_are_those_that_spark_reads(spark, written_by_others):
    table, path = written_by_others

    def rows():
        found = sql(spark, f"SELECT CAST(p AS STRING) AS p, n FROM {table}").collect()
        return sorted(map(tuple, found))

    expected = dict(enumerate(CLOCKS))
    assert rows() == sorted((clock, n) for n, clock in expected.items())
    for number, clock in enumerate(CLOCKS):
        for condition in (f"p = TIMESTAMP'{clock}'", f"year(p) = {clock[:4]}"):
            sql(spark, f"UPDATE {table} SET n = n + 10 WHERE {condition}")
            frame = spark.sql(f"SELECT TIMESTAMP'{clock}' AS p, {number} AS n")
            target = write(frame).mode("overwrite")
            target.option("replaceWhere", condition).save(path)
            assert rows() == sorted((clock, n) for n, clock in expected.items()), condition
    # Its first version, whose partitions have the same texts again.
    sql(spark, f"RESTORE {table} TO VERSION AS OF {len(CLOCKS)}")
    frame = spark.sql(f"SELECT TIMESTAMP'{CLOCKS[0]}' AS p, 7 AS n")
    write(frame).mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    assert rows() == sorted([(CLOCKS[0], 7), (CLOCKS[1], 1), (CLOCKS[2], 2)])
    sql(spark, f"DELETE FROM {table} WHERE p = TIMESTAMP'{CLOCKS[2]}'")
    assert rows() == sorted([(CLOCKS[0], 7), (CLOCKS[1], 1)])
    feed = read(spark).option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    assert {row.p for row in feed.selectExpr("CAST(p AS STRING) AS p").collect()} == set(CLOCKS)


@ONE_ZONE
def test_defaults_and_generated_columns_follow_spark_s_rules(spark, tmp_path, zone):
    table = f"delta.`{tmp_path / 't'}`"
    sql(
        spark,
        f"CREATE TABLE {table} (n INT, ts TIMESTAMP DEFAULT TIMESTAMP'{CLOCKS[0]}', "
        "d DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), h INT GENERATED ALWAYS AS (hour(ts))) "
        "USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    )
    sql(spark, f"INSERT INTO {table} (n) VALUES (0)")
    sql(spark, f"INSERT INTO {table} (n, ts) VALUES (1, TIMESTAMP'{CLOCKS[1]}')")
    sql(spark, f"INSERT INTO {table} (n, ts) VALUES (2, TIMESTAMP'2000-01-01 00:00:00')")
    sql(spark, f"UPDATE {table} SET ts = TIMESTAMP'{CLOCKS[2]}' WHERE n = 2")
    sql(
        spark,
        f"MERGE INTO {table} t USING (SELECT 3 AS n) s ON t.n = s.n "
        "WHEN NOT MATCHED THEN INSERT (n) VALUES (s.n)",
    )
    found = sql(
        spark, f"SELECT n, CAST(ts AS STRING) ts, CAST(d AS STRING) d, h FROM {table} ORDER BY n"
    )
    clocks = [*CLOCKS, CLOCKS[0]]
    assert [tuple(row) for row in found.collect()] == [
        (n, clock, clock[:10], int(clock[11:13])) for n, clock in enumerate(clocks)
    ]


def test_a_zone_that_python_does_not_know_is_spark_s(spark, tmp_path):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "SystemV/PST8PDT")
    try:
        table = f"delta.`{tmp_path / 't'}`"
        sql(spark, f"CREATE TABLE {table} (ts TIMESTAMP, n INT) USING delta PARTITIONED BY (n)")
        for number, clock in enumerate(CLOCKS):
            sql(spark, f"INSERT INTO {table} VALUES (TIMESTAMP'{clock}', {number})")
        for number, clock in enumerate(CLOCKS):
            condition = f"ts = TIMESTAMP'{clock}' AND hour(ts) = {int(clock[11:13])}"
            assert sql(spark, f"SELECT n FROM {table} WHERE {condition}").collect()[0].n == number
            assert sql(spark, f"DELETE FROM {table} WHERE {condition}").collect()[0][0] == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
