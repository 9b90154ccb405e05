"""One table's change data feed, written and read by us and by delta-spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

import lakelog.spark as delta
from lakelog.core import DeltaLog, delete_rows, lit, table_changes, update_rows, write_arrow
from support.examples import SEED
from support.samples import PARTITIONS

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = {
    "vectors": {**FEED, **VECTORS},
    "rewrite": FEED,
    "mapped": {**FEED, "delta.columnMapping.mode": "name"},
    "mapped by id, vectors": {**FEED, **VECTORS, "delta.columnMapping.mode": "id"},
}
either_way = pytest.mark.parametrize("properties", WAYS.values(), ids=WAYS)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def numbers(count, start=0):
    values = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(values, pa.int64()),
            "p": pa.array([i % 3 for i in values], pa.int32()),
            "text": [f"t{i}" for i in values],
        }
    )


def listed(rows):
    """Rows as sorted tuples; times to the millisecond, without a zone, as text."""
    found = []
    for row in rows:
        at = row.pop("_commit_timestamp")
        text = at if isinstance(at, str) else at.replace(tzinfo=None).isoformat()
        found.append(
            (row["_commit_version"], row["_change_type"], text[:23], repr(sorted(row.items())))
        )
    return sorted(found)


def ours(path, first=0, last=None):
    return listed(table_changes(path, first, last).read_all().to_pylist())


def theirs(delta_spark, path, first=0, last=None):
    end = "" if last is None else f", {last}"
    return listed(delta_spark.sql(f"SELECT * FROM table_changes_by_path('{path}', {first}{end})"))


ALL = [("vectors", None), ("mapped", None), ("vectors", ["p"]), ("mapped by id, vectors", ["p"])]
IN_SOAK = ALL if SEED else []
IN_COMMITS = {
    "delta.enableInCommitTimestamps": "true",
    "delta.deletedFileRetentionDuration": "interval 2000 weeks",
}
"""Times of versions that are no file's, and so come again where delta-spark is remembered: at a
time of day that is long ago."""


def overwrite(path, **row):
    """By the core: with one row, the table or what a condition names, in two versions."""
    where = row.pop("replace_where", None)
    if where:
        delete_rows(path, where)
    schema = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("text", pa.string())])
    rows = pa.Table.from_pylist([row], schema)
    write_arrow(path, rows, mode="append" if where else "overwrite")


def overwrite_by_spark(spark):
    """The same by a job of Spark's."""

    def write(path, **row):
        where = row.pop("replace_where", None)
        frame = spark.createDataFrame([tuple(row.values())], "id long, p int, text string")
        writer = delta.write(frame).mode("overwrite")
        (writer.replaceWhere(where) if where else writer).save(path)

    return write


@pytest.mark.soak
@pytest.mark.parametrize(("way", "partition_by"), [("rewrite", ["p"]), *IN_SOAK])
@pytest.mark.one_day_in(6, 4)
def test_a_history_of_both_tells_both_the_same(delta_spark, spark, path, way, partition_by):
    tell_a_history(delta_spark, path, WAYS[way], partition_by, overwrite_by_spark(spark))
    (row,) = delta_spark.sql(f"SELECT * FROM table_changes_by_path('{path}', 0) LIMIT 1")
    assert table_changes(path, 0).read_all().column_names == list(row)


@pytest.mark.parametrize(
    ("way", "partition_by"), [("vectors", None), ("mapped by id, vectors", ["p"])]
)
def test_a_history_without_spark_of_ours(delta_spark, path, way, partition_by):
    tell_a_history(delta_spark, path, WAYS[way] | IN_COMMITS, partition_by, overwrite)


def tell_a_history(delta_spark, path, properties, partition_by, overwrite):
    write_arrow(path, numbers(30), partition_by=partition_by, properties=properties, mode="append")
    table = f"delta.`{path}`"
    delete_rows(path, "id < 3")
    delta_spark.sql(f"DELETE FROM {table} WHERE id BETWEEN 2 AND 5")
    update_rows(path, {"text": lit("ours"), "p": pc.field("p") + 1}, "id IN (6, 7, 20)")
    delta_spark.sql(f"UPDATE {table} SET text = 'theirs' WHERE id > 25")
    delta_spark.sql(
        f"MERGE INTO {table} t USING (SELECT EXPLODE(SEQUENCE(9, 40, 10)) AS k) s ON t.id = s.k "
        "WHEN MATCHED AND k > 15 THEN DELETE WHEN MATCHED THEN UPDATE SET text = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, p, text) VALUES (k, 1, 'new')"
    )
    overwrite(path, id=11, p=2, text="replaced", replace_where="id >= 10 AND id < 15")
    delta_spark.sql(f"INSERT INTO {table} REPLACE WHERE id = 16 SELECT 16, 5, 'swapped'")
    delta_spark.sql(f"OPTIMIZE {table}")
    delete_rows(path, "p = 1")
    delta_spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 6")
    delta_spark.sql(f"DELETE FROM {table} WHERE p = 2")
    overwrite(path, id=1, p=1, text="x")
    delete_rows(path)

    latest = DeltaLog.for_table(path).snapshot.version
    assert latest >= 12
    for version in (0, latest):
        assert ours(path, version, version) == theirs(delta_spark, path, version, version), version
    assert ours(path, 2, 5) == theirs(delta_spark, path, 2, 5)
    assert len(ours(path)) == len(theirs(delta_spark, path)) > 60


@pytest.mark.one_day_in(2)
@either_way
def test_partitions_of_any_value_are_told_alike(delta_spark, path, properties):
    count = len(PARTITIONS)
    data = pa.table(
        {"id": pa.array(range(2 * count), pa.int64()), "p": pa.array(PARTITIONS * 2, pa.string())}
    )
    write_arrow(path, data, partition_by=["p"], properties=properties, mode="append")
    delete_rows(path, f"id < {count} AND id > 2")
    update_rows(path, {"id": pc.field("id") + 1000}, f"id >= {count}")
    delta_spark.sql(f"UPDATE delta.`{path}` SET id = id + 1000 WHERE id < 1010")

    assert ours(path) == theirs(delta_spark, path)
    assert len(ours(path)) > 5 * count


@pytest.mark.parametrize("mode", ["name", "id"])
def test_the_feed_of_a_table_with_mapped_columns_is_read(delta_spark, path, mode):
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"CREATE TABLE {table} (id LONG, p STRING, s STRUCT<x: INT>) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        f"'delta.columnMapping.mode' = '{mode}')"
    )
    delta_spark.sql(
        f"INSERT INTO {table} SELECT id, CAST(id % 2 AS STRING), NAMED_STRUCT('x', 1) "
        "FROM RANGE(0, 10)"
    )
    delta_spark.sql(f"DELETE FROM {table} WHERE id < 4")
    delta_spark.sql(f"UPDATE {table} SET s = NAMED_STRUCT('x', 2), p = 'z' WHERE id = 7")

    found = table_changes(path, 0).read_all().to_pylist()
    expected = delta_spark.sql(f"SELECT * FROM table_changes_by_path('{path}', 0)")
    assert len(found) == 16
    assert sorted((r["_change_type"], r["id"], r["p"], r["s"]["x"]) for r in found) == sorted(
        (r["_change_type"], r["id"], r["p"], r["s"]["x"]) for r in expected
    )


def test_deltalake_reads_our_feed(path):
    write_arrow(path, numbers(30), partition_by=["p"], properties=FEED, mode="append")
    delete_rows(path, "id < 3")
    update_rows(path, {"text": lit("new")}, "id = 7")
    write_arrow(path, numbers(3, 50), mode="overwrite")

    found = pa.table(DeltaTable(path).load_cdf(starting_version=0).read_all()).to_pylist()
    mine = table_changes(path, 0).read_all().to_pylist()
    columns = ("_commit_version", "_change_type", "id", "p", "text")
    assert sorted(tuple(str(row[c]) for c in columns) for row in found) == sorted(
        tuple(str(row[c]) for c in columns) for row in mine
    )
