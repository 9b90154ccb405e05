"""Spark's rules for time zones decide what Spark evaluates, whatever Python's are."""

from __future__ import annotations

import pytest

from lakelog.core import DeltaLog
from lakelog.core.expressions.tree import is_opaque
from lakelog.core.filters.filter import normalize_filter
from lakelog.spark import sql
from lakelog.spark.session.session import session_conf

CLOCKS = ["1850-01-01 01:01:01", "1945-07-01 12:00:00", "2024-07-01 08:00:00"]


@pytest.fixture(params=["Europe/Stockholm", "Africa/Accra"])
def zone(request, spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


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


def test_where_the_rules_agree_files_are_still_left_out(spark, tmp_path, zone):
    path = str(tmp_path / "t")
    sql(spark, f"CREATE TABLE delta.`{path}` (ts TIMESTAMP) USING delta")
    log = DeltaLog.for_table(path, conf=session_conf(spark))
    snapshot = log.update()

    def opaque(text):
        zone = snapshot.conf.session_tz
        found = normalize_filter(text, snapshot.schema, session_tz=zone)
        return found is not None and is_opaque(found)

    assert not opaque("ts > TIMESTAMP'2024-07-01 08:00:00'")
    assert not opaque("ts > TIMESTAMP'1850-01-01 01:01:01Z'")
    assert opaque("ts > TIMESTAMP'1850-01-01 01:01:01'")
    assert opaque("ts > DATE'1850-01-01'")
