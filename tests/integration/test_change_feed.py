"""Tables with a change data feed, and with deletion vectors: written, and their feed read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import lakelog.spark as delta
from lakelog.core import DeltaLog, delete_rows, table_changes, update_rows, write_arrow
from lakelog.core.errors import DataFileMissingError, DeltaAnalysisError
from support.raw_log import RawLog
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


@pytest.mark.one_day_in(4)
@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["plain", "partitioned"])
@pytest.mark.parametrize("way", ["auto", "native", "arrow", "driver"])
@pytest.mark.parametrize("more", [{}, VECTORS], ids=["rewrite", "vectors"])
def test_replaced_rows_are_reported_and_those_that_stay_are_not(
    spark, path, partition_by, way, more
):
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


@pytest.mark.connect
def test_where_no_row_comes_or_goes_nothing_is_reported(spark, path):
    make(spark, path, FEED)
    delete_rows(path, "id = 4")

    version = overwrite(spark, path, 0, 0, replaceWhere="id = 4")

    log = DeltaLog.for_table(path)
    assert version is None or changes(path, version) == []
    assert ids(path) == [0, 1, 2, 3, 5]
    assert log.snapshot.version == (1 if version is None else version)


@pytest.mark.connect
def test_rows_that_are_random_are_reported_as_they_were_written(spark, path):
    make(spark, path, FEED)
    frame = spark.sql("SELECT CAST(1000 + RAND() * 1000000 AS BIGINT) AS id, 1 AS p FROM RANGE(50)")

    version = delta.write(frame).mode("overwrite").replaceWhere("id >= 5").save(path)

    feed_rows = [i for kind, i in changes(path, version) if kind == "insert"]
    assert feed_rows == [i for i in ids(path) if i >= 5]


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


@pytest.mark.one_day_in(3, 2)
@pytest.mark.connect
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


def feed_rows(df):
    return sorted(str(row.asDict(recursive=True)) for row in df.collect())


def expected(path, *bounds, **times):
    rows = table_changes(path, *bounds, **times).read_all().to_pylist()
    return sorted(str(_naive(row)) for row in rows)


def _naive(row):
    return {k: v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for k, v in row.items()}


def feed(spark, path, **options):
    return delta.read(spark).option("readChangeFeed", "true").options(**options).load(path)


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["plain", "partitioned"])
@pytest.mark.parametrize(
    "more",
    [{}, VECTORS, {**VECTORS, "delta.columnMapping.mode": "id"}],
    ids=["rewrite", "vectors", "mapped"],
)
def test_the_feed_is_read_as_the_core_reads_it(spark, path, partition_by, more):
    make(spark, path, {**FEED, **more}, partition_by)
    delete_rows(path, "id = 1 OR id = 4")
    update_rows(path, {"p": 7}, "id = 2")
    delete_rows(path, "id = 5")
    delete_rows(path)

    df = feed(spark, path, startingVersion=0)
    assert feed_rows(df) == expected(path, 0)
    assert df.columns == ["id", "p", "_change_type", "_commit_version", "_commit_timestamp"]
    assert dict(df.dtypes)["_commit_timestamp"] == "timestamp"
    assert df.count() == 6 + 2 + 2 + 1 + 3
    assert feed_rows(feed(spark, path, startingVersion="1", endingVersion=2)) == expected(
        path, 1, 2
    )

    narrow = delta.read(spark).where("_change_type = 'delete' AND id > 1")
    narrow = narrow.option("columns", "id, _commit_version").option("readChangeFeed", True)
    found = narrow.option("startingVersion", 0).load(path).collect()
    assert sorted(map(tuple, found)) == [(2, 4), (3, 4), (4, 1), (5, 3)]


@pytest.mark.connect
def test_the_bounds_of_the_feed_may_be_times_of_the_session(spark, path):
    make(spark, path, FEED)
    overwrite(spark, path, 7, 8)
    log = RawLog(Path(path))
    for version in (0, 1):
        log.touch(version, 1_000_000 * (version + 1))

    spark.conf.set("spark.sql.session.timeZone", "+01:00")
    try:
        late = feed(spark, path, startingTimestamp="1970-01-01 01:33:20")
        early = feed(spark, path, startingVersion=0, endingTimestamp="1970-01-01 01:33:19")
        assert late.select("_commit_version").distinct().count() == 1
        assert feed_rows(late.drop("_commit_timestamp")) != feed_rows(
            early.drop("_commit_timestamp")
        )
        assert early.count() == 6
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.connect
def test_what_is_no_range_is_refused(spark, path):
    make(spark, path, FEED)
    for options, match in (
        ({}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"startingVersion": "one"}, "startingVersion is 'one'"),
        ({"startingTimestamp": "soon"}, r"\('soon'\).*startingTimestamp is a date"),
        ({"startingVersion": 5}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"startingVersion": 0, "versionAsOf": 0}, "versionAsOf reads the rows of one version"),
    ):
        with pytest.raises(DeltaAnalysisError, match=match):
            feed(spark, path, **options)
    conf = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
    spark.conf.set(conf, "true")
    try:
        assert feed(spark, path, startingVersion=5).collect() == []
    finally:
        spark.conf.unset(conf)


@pytest.mark.connect
def test_a_file_that_is_gone_is_named(spark, path):
    make(spark, path, FEED)
    for file in Path(path).glob("*.parquet"):
        file.unlink()

    with pytest.raises(PySparkException) as caught:
        feed(spark, path, startingVersion=0).collect()
    error = delta.unwrap_error(caught.value)
    assert isinstance(error, DataFileMissingError)
    assert "changes of version 0" in str(error)


@pytest.mark.connect
def test_a_feed_of_many_files_is_dealt_out_to_tasks(spark, path):
    make(spark, path, FEED)
    for start in range(10, 90):
        write_arrow(path, pa.table({"id": [start], "p": pa.array([0], pa.int32())}), mode="append")

    df = feed(spark, path, startingVersion=1)
    assert sorted(row.id for row in df.collect()) == list(range(10, 90))


@pytest.mark.connect
def test_scripts_read_the_feed_where_lakelog_is_enabled(spark, path):
    make(spark, path, FEED)
    delete_rows(path, "id = 1")
    delta.enable(spark)
    try:
        reader = spark.read.format("delta").option("readChangeFeed", "true")
        df = reader.option("startingVersion", 1).load(path)
        assert [(row.id, row._change_type) for row in df.collect()] == [(1, "delete")]
    finally:
        delta.disable(spark)


@pytest.mark.connect
def test_the_data_source_says_who_reads_the_feed(spark, path):
    make(spark, path, FEED)
    delta.register(spark)
    with pytest.raises(PySparkException, match=r"use lakelog\.spark\.read\(spark\)"):
        spark.read.format("lakelog").option("readChangeFeed", "true").load(path).collect()
    with pytest.raises(PySparkException, match=r"'yes' for option 'readChangeFeed'"):
        spark.read.format("lakelog").option("readChangeFeed", "yes").load(path).collect()
    with pytest.raises(DeltaAnalysisError, match=r"'yes' for option 'readChangeFeed'"):
        delta.read(spark).option("readChangeFeed", "yes").load(path)
