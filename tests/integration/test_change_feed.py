"""Writing to tables with a change data feed, and with deletion vectors."""

from __future__ import annotations

import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, delete_rows, table_changes
from support.samples import rows_of

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
ROWS = "SELECT id, CAST(id % 2 AS INT) AS p FROM RANGE({}, {}, 1, 1)"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def make(spark, path, properties, partition_by=()):
    writer = delta.write(spark.sql(ROWS.format(0, 6)))
    for key, value in properties.items():
        writer = writer.option(key, value)
    writer.partitionBy(*partition_by).save(path)


def overwrite(spark, path, start, end, **options):
    frame = spark.sql(ROWS.format(start, end))
    return delta.write(frame).mode("overwrite").options(**options).save(path)


def ids(path):
    return sorted(row["id"] for row in rows_of(DeltaLog.for_table(path).snapshot.to_arrow()))


def changes(path, version):
    rows = table_changes(path, version, version).read_all().to_pylist()
    return sorted((row["_change_type"], row["id"]) for row in rows)


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["plain", "partitioned"])
@pytest.mark.parametrize("way", ["auto", "native", "arrow", "driver"])
@pytest.mark.parametrize("more", [{}, VECTORS], ids=["rewrite", "vectors"])
def test_replaced_rows_are_told_and_those_that_stay_are_not(spark, path, partition_by, way, more):
    make(spark, path, {**FEED, **more}, partition_by)
    if more:
        delete_rows(path, "id = 1")
    spark.conf.set("spark.lakelog.write.path", way)
    try:
        version = overwrite(spark, path, 3, 5, replaceWhere="id >= 3")
    finally:
        spark.conf.unset("spark.lakelog.write.path")

    assert ids(path) == [0, 2, 3, 4] if more else [0, 1, 2, 3, 4]
    assert changes(path, version) == [
        *(("delete", i) for i in (3, 4, 5)),
        *(("insert", i) for i in (3, 4)),
    ]
    entry = DeltaLog.for_table(path).history(1)[0]
    assert int(entry.metrics["numAddedChangeFiles"]) > 0


def test_where_no_row_comes_or_goes_nothing_is_told(spark, path):
    make(spark, path, FEED)
    delete_rows(path, "id = 4")

    version = overwrite(spark, path, 0, 0, replaceWhere="id = 4")

    log = DeltaLog.for_table(path)
    assert version is None or changes(path, version) == []
    assert ids(path) == [0, 1, 2, 3, 5]
    assert log.snapshot.version == (1 if version is None else version)


def test_rows_that_are_random_are_told_as_they_were_written(spark, path):
    make(spark, path, FEED)
    frame = spark.sql("SELECT CAST(1000 + RAND() * 1000000 AS BIGINT) AS id, 1 AS p FROM RANGE(50)")

    version = delta.write(frame).mode("overwrite").replaceWhere("id >= 5").save(path)

    told = [i for kind, i in changes(path, version) if kind == "insert"]
    assert told == [i for i in ids(path) if i >= 5]


@pytest.mark.parametrize(
    "options",
    [{}, {"replaceWhere": "p = 1"}, {"partitionOverwriteMode": "dynamic"}],
    ids=["whole", "partition", "dynamic"],
)
def test_whole_files_need_no_files_of_change_data(spark, path, options):
    make(spark, path, FEED, ("p",))
    frame = spark.sql("SELECT id, 1 AS p FROM RANGE(20, 22)")

    version = delta.write(frame).mode("overwrite").options(**options).save(path)

    gone = [1, 3, 5] if options else range(6)
    assert changes(path, version) == [
        *(("delete", i) for i in gone),
        *(("insert", i) for i in (20, 21)),
    ]
    assert "numAddedChangeFiles" not in (DeltaLog.for_table(path).history(1)[0].metrics) or options


def test_appends_and_overwrites_go_on_beside_vectors(spark, path):
    make(spark, path, VECTORS, ("p",))
    delete_rows(path, "id = 1 OR id = 2")

    delta.write(spark.sql(ROWS.format(10, 12))).mode("append").save(path)
    assert ids(path) == [0, 3, 4, 5, 10, 11]
    overwrite(spark, path, 20, 22, replaceWhere="id = 3 OR id >= 20")
    assert ids(path) == [0, 4, 5, 10, 11, 20, 21]
    delete_rows(path, "id = 4")
    frame = spark.sql("SELECT 30L AS id, 0 AS p")
    delta.write(frame).mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    assert ids(path) == [5, 11, 21, 30]
    delete_rows(path, "id = 5")
    assert delta.read(spark).load(path).count() == 3
    overwrite(spark, path, 0, 1)
    assert ids(path) == [0]


def test_the_data_source_writes_to_such_tables(spark, path):
    make(spark, path, {**FEED, **VECTORS})
    delete_rows(path, "id < 3")
    delta.register(spark)

    frame = spark.sql(ROWS.format(10, 12))
    frame.write.format("lakelog").mode("append").save(path)
    assert changes(path, 2) == [("insert", 10), ("insert", 11)]
    frame.write.format("lakelog").mode("overwrite").save(path)
    assert changes(path, 3)[:3] == [("delete", 3), ("delete", 4), ("delete", 5)]
    assert ids(path) == [10, 11]
