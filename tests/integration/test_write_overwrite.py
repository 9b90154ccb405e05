"""Overwriting a part of a table: `replaceWhere` and dynamic partition overwrite."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidPredicateError,
)
from lakelog.spark import write, write_to

DATA = "SELECT id, IF(id = 5, NULL, id % 2) AS p, CONCAT('s', id) AS s FROM RANGE(6)"


def pairs(path):
    table = DeltaTable(path).to_pyarrow_table().sort_by("id")
    return [(row["id"], row["p"], row["s"]) for row in table.to_pylist()]


def last_commit(path):
    return DeltaTable(path).history(1)[0]


@pytest.fixture
def table(spark, tmp_path):
    """Rows 0 to 5 in the partitions 0, 1 and null."""
    path = str(tmp_path / "table")
    write(spark.sql(DATA).repartition(1)).partitionBy("p").save(path)
    return path


def overwrite(spark, sql):
    return write(spark.sql(sql)).mode("overwrite")


def test_replace_where_on_a_partition_column_takes_whole_files(spark, table):
    version = (
        overwrite(spark, "SELECT 10L AS id, 1L AS p, 'new' AS s").replaceWhere("p = 1").save(table)
    )

    assert pairs(table) == [
        (0, 0, "s0"),
        (2, 0, "s2"),
        (4, 0, "s4"),
        (5, None, "s5"),
        (10, 1, "new"),
    ]
    commit = last_commit(table)
    assert version == 1
    assert commit["operationParameters"]["predicate"] == "p = 1"
    assert commit["operationMetrics"]["numRemovedFiles"] == "1"
    assert commit["isBlindAppend"] is False


def test_replace_where_does_not_touch_rows_for_which_it_is_null(spark, table):
    overwrite(spark, "SELECT 10L AS id, 0L AS p, 'new' AS s").replaceWhere("p != 1").save(table)

    assert (5, None, "s5") in pairs(table)
    assert (0, 0, "s0") not in pairs(table)


def test_replace_where_on_the_null_partition(spark, table):
    overwrite(spark, "SELECT 10L AS id, CAST(NULL AS BIGINT) AS p, 'new' AS s").replaceWhere(
        "p IS NULL"
    ).save(table)

    assert (5, None, "s5") not in pairs(table)
    assert (10, None, "new") in pairs(table)
    assert len(pairs(table)) == 6


@pytest.mark.connect
def test_replace_where_on_other_columns_keeps_the_rows_that_do_not_match(spark, table):
    overwrite(spark, "SELECT 3L AS id, 1L AS p, 'new' AS s").replaceWhere("id >= 3 AND p = 1").save(
        table
    )

    assert pairs(table) == [
        (0, 0, "s0"),
        (1, 1, "s1"),
        (2, 0, "s2"),
        (3, 1, "new"),
        (4, 0, "s4"),
        (5, None, "s5"),
    ]


@pytest.mark.connect
def test_replace_where_with_a_function_is_decided_by_spark(spark, table):
    overwrite(spark, "SELECT 2L AS id, 0L AS p, 'S2' AS s").replaceWhere("upper(s) = 'S2'").save(
        table
    )

    assert (2, 0, "S2") in pairs(table)
    assert len(pairs(table)) == 6


def test_replace_where_with_a_function_of_a_partition_column_keeps_the_rest(spark, table):
    overwrite(spark, "SELECT 9L AS id, 1L AS p, 'new' AS s").replaceWhere("abs(p) = 1").save(table)

    assert [row[0] for row in pairs(table)] == [0, 2, 4, 5, 9]


def test_replace_where_without_new_rows_deletes(spark, table):
    empty = spark.sql(DATA).where("id > 99")

    write(empty).mode("overwrite").replaceWhere("p = 0").save(table)

    assert [row[0] for row in pairs(table)] == [1, 3, 5]


@pytest.mark.connect
@pytest.mark.parametrize("p", ["0L", "CAST(NULL AS BIGINT)"])
def test_rows_that_do_not_match_are_refused_and_nothing_changes(spark, table, p):
    before = pairs(table)

    with pytest.raises(ConstraintViolationError, match=r"DELTA_REPLACE_WHERE_MISMATCH.*p = 1"):
        overwrite(spark, f"SELECT 10L AS id, {p} AS p, 'x' AS s").replaceWhere("p = 1").save(table)

    assert pairs(table) == before
    assert DeltaTable(table).version() == 0


def test_the_check_of_new_rows_can_be_switched_off(spark, table):
    key = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
    spark.conf.set(key, "false")
    try:
        overwrite(spark, "SELECT 10L AS id, 0L AS p, 'x' AS s").replaceWhere("p = 1").save(table)
    finally:
        spark.conf.unset(key)

    assert [row[0] for row in pairs(table)] == [0, 2, 4, 5, 10]


def test_replace_where_may_add_columns(spark, table):
    data = "SELECT 10L AS id, 1L AS p, 'new' AS s, 1.5D AS extra"
    writer = overwrite(spark, data).option("mergeSchema", True)
    writer.replaceWhere("id >= 3 AND p = 1").save(table)

    found = DeltaTable(table).to_pyarrow_table().sort_by("id").to_pylist()
    assert [row["extra"] for row in found] == [None, None, None, None, None, 1.5]


@pytest.mark.connect
def test_an_unknown_column_in_replace_where_is_refused(spark, table):
    with pytest.raises(InvalidPredicateError, match="nope"):
        overwrite(spark, "SELECT 10L AS id, 1L AS p, 'x' AS s").replaceWhere("nope = 1").save(table)

    assert DeltaTable(table).version() == 0


def test_replace_where_on_other_columns_changes_data(spark, table):
    with pytest.raises(DeltaAnalysisError, match="dataChange=false"):
        overwrite(spark, "SELECT 3L AS id, 1L AS p, 'x' AS s").replaceWhere("id = 3").option(
            "dataChange", False
        ).save(table)


@pytest.mark.connect
def test_a_timestamp_in_replace_where_is_in_the_sessions_zone(spark, tmp_path):
    path = str(tmp_path / "times")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    data = (
        "SELECT id, TIMESTAMP'2024-01-01 00:00:00' + MAKE_DT_INTERVAL(CAST(id AS INT)) AS t FROM "
    )
    write(spark.sql(data + "RANGE(3)")).partitionBy("t").save(path)

    overwrite(spark, "SELECT 9L AS id, TIMESTAMP'2024-01-02 00:00:00' AS t").replaceWhere(
        "t = '2024-01-02 00:00:00'"
    ).save(path)

    assert sorted(r["id"] for r in DeltaTable(path).to_pyarrow_table().to_pylist()) == [0, 2, 9]


def test_a_dynamic_overwrite_replaces_the_partitions_that_it_has_rows_for(spark, table):
    overwrite(
        spark,
        "SELECT * FROM VALUES (10L, 1L, 'new'), (11L, 7L, 'new'), (12L, NULL, 'new') "
        "AS t(id, p, s)",
    ).option("partitionOverwriteMode", "dynamic").save(table)

    assert [row[0] for row in pairs(table)] == [0, 2, 4, 10, 11, 12]
    assert last_commit(table)["operationParameters"]["isDynamicPartitionOverwrite"] in (
        True,
        "true",
    )


@pytest.mark.connect
def test_a_dynamic_overwrite_by_the_sessions_conf(spark, table):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")

    overwrite(spark, "SELECT 10L AS id, 1L AS p, 'new' AS s").save(table)

    assert [row[0] for row in pairs(table)] == [0, 2, 4, 5, 10]


def test_a_dynamic_overwrite_without_rows_changes_nothing(spark, table):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")

    assert write(spark.sql(DATA).where("id > 99")).mode("overwrite").save(table) is None
    assert len(pairs(table)) == 6


def test_a_dynamic_overwrite_of_an_unpartitioned_table_replaces_it(spark, tmp_path):
    path = str(tmp_path / "flat")
    write(spark.range(3)).save(path)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")

    overwrite(spark, "SELECT 7L AS id").save(path)

    assert DeltaTable(path).to_pyarrow_table()["id"].to_pylist() == [7]


def test_what_was_overwritten_can_still_be_read_at_its_version(spark, table):
    overwrite(spark, "SELECT 10L AS id, 1L AS p, 'new' AS s").replaceWhere("p = 1").save(table)

    old = DeltaLog.for_table(table).snapshot_at(version=0).to_arrow()

    assert sorted(old["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]


def test_an_overwrite_by_a_column_may_meet_no_partition_that_is_there(spark, table):
    before = pairs(table)
    rows = spark.sql("SELECT 10L AS id, 7L AS p, 'new' AS s")
    write_to(rows, f"delta.`{table}`").overwrite(sf.col("p") == 7)
    assert pairs(table) == [*before, (10, 7, "new")]


@pytest.mark.parametrize(("condition", "said"), [("id = 2", "false"), ("p = 0", None)])
def test_replace_where_says_that_rows_lost_their_ids_where_it_copies_some(
    spark, tmp_path, condition, said
):
    path = str(tmp_path / "table")
    rows = spark.sql(DATA).repartition(1)
    tracked = {"delta.enableRowTracking": "true"}
    writer = write(rows).partitionBy("p")
    for name, value in tracked.items():
        writer = writer.option(name, value)
    writer.save(path)
    overwrite(spark, "SELECT 2L AS id, 0L AS p, 'new' AS s").replaceWhere(condition).save(path)
    tags = last_commit(path).get("tags")
    assert tags == (None if said is None else {"delta.rowTracking.preserved": said})
    adds = DeltaLog.for_table(path).snapshot.files()
    assert all(add.base_row_id is not None for add in adds)
