"""Tables that map columns, written through Spark in every mode."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog
from lakelog.core.errors import SchemaMismatchError, UnsupportedFeatureError
from lakelog.core.schema.column_paths import walk
from support.samples import rows_of

WAY = "spark.lakelog.write.path"
MODES = ["name", "id"]
SQL = (
    "SELECT id, CAST(id AS STRING) AS `odd name`, CAST(id % 3 AS INT) AS p, "
    "NAMED_STRUCT('x', NULLIF(id, 3), 'y', NAMED_STRUCT('z', 'z')) AS s, "
    "ARRAY(NAMED_STRUCT('e', id)) AS l, MAP(CAST(id AS STRING), NAMED_STRUCT('v', id)) AS m "
    "FROM range({0}, {1}, 1, 2)"
)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def frame(spark, start=0, end=12):
    return spark.sql(SQL.format(start, end))


def snapshot(path):
    return DeltaLog.for_table(path).snapshot


def read(spark, path):
    return rows_of(delta.read(spark).load(path).toArrow())


def ids(path, **how):
    return sorted(snapshot(path).to_arrow(**how)["id"].to_pylist())


def names(path):
    """Path -> physical name."""
    key = "delta.columnMapping.physicalName"
    return {".".join(each): field.metadata[key] for each, field in walk(snapshot(path).schema)}


def created(spark, path, mode="name", partition_by=("p",)):
    writer = delta.write(frame(spark)).option("delta.columnMapping.mode", mode)
    writer.partitionBy(*partition_by).save(path)
    return frame(spark)


@pytest.mark.one_day_in(4)
@pytest.mark.parametrize("way", ["auto", "arrow", "driver"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["whole", "partitioned"])
def test_rows_come_back(spark, path, mode, partition_by, way):
    spark.conf.set(WAY, way)
    try:
        expected = rows_of(created(spark, path, mode, partition_by).toArrow())
        delta.write(frame(spark, 12, 20)).mode("append").save(path)
    finally:
        spark.conf.unset(WAY)

    assert read(spark, path) == sorted(
        expected + rows_of(frame(spark, 12, 20).toArrow()), key=lambda row: row["id"]
    )
    for each in snapshot(path).files():
        assert re.fullmatch(r"[0-9A-Za-z]{2}/part-\S+", each.path)
        assert set(each.partition_values) == {names(path)[name] for name in partition_by}
    assert len(snapshot(path).files("id > 1000")) == 0


@pytest.mark.parametrize("mode", MODES)
def test_every_kind_of_overwrite(spark, path, mode):
    created(spark, path, mode)

    delta.write(frame(spark, 20, 24).where("p = 1")).mode("overwrite").replaceWhere("p = 1").save(
        path
    )
    assert ids(path) == [0, 2, 3, 5, 6, 8, 9, 11, 22]

    writer = delta.write(frame(spark, 30, 31)).mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(path)
    assert ids(path) == [2, 5, 8, 11, 22, 30]

    delta.write(frame(spark, 40, 41)).mode("overwrite").replaceWhere("id >= 20").save(path)
    assert ids(path) == [2, 5, 8, 11, 40]

    delta.write(frame(spark, 50, 52)).mode("overwrite").save(path)
    assert ids(path) == [50, 51]


def test_new_columns_get_names_of_their_own(spark, path):
    created(spark, path)
    before = names(path)
    grown = frame(spark, 12, 14).selectExpr(
        "*", "id AS `new, column`", "NAMED_STRUCT('x', id, 'w', 1) AS s2"
    )
    with pytest.raises(SchemaMismatchError):
        delta.write(grown).mode("append").save(path)

    delta.write(grown).mode("append").option("mergeSchema", True).save(path)

    after = names(path)
    assert {name: after[name] for name in before} == before
    assert after["new, column"].startswith("col-")
    found = snapshot(path).to_arrow(where="id >= 12")
    assert sorted(found["new, column"].to_pylist()) == [12, 13]
    assert snapshot(path).to_arrow(where="id < 12")["new, column"].null_count == 12


def test_an_overwritten_schema_keeps_the_names_of_columns_that_stay(spark, path):
    created(spark, path)
    before = names(path)
    other = frame(spark).selectExpr("id", "s", "CAST(p AS STRING) AS p")

    delta.write(other).mode("overwrite").option("overwriteSchema", True).save(path)

    after = names(path)
    assert set(after) == {"id", "s", "s.x", "s.y", "s.y.z", "p"}
    assert {n: after[n] for n in after if n != "p"} == {n: before[n] for n in after if n != "p"}
    assert after["p"] != before["p"]
    assert read(spark, path) == rows_of(other.toArrow())


@pytest.mark.connect
def test_the_data_source_creates_appends_and_grows(spark, path):
    delta.register(spark)

    def save(df, mode, **options):
        df.write.format("lakelog").mode(mode).options(**options).save(path)

    save(frame(spark), "append", **{"delta.columnMapping.mode": "name"})
    save(frame(spark, 12, 14), "append")
    save(frame(spark, 14, 15).selectExpr("*", "1 AS one"), "append", mergeSchema="true")

    assert ids(path) == list(range(15))
    assert snapshot(path).to_arrow(where="one = 1")["id"].to_pylist() == [14]
    assert rows_of(spark.read.format("lakelog").load(path).toArrow()) == read(spark, path)


@pytest.mark.connect
def test_sparks_own_writer_is_refused_by_the_features_name(spark, path):
    created(spark, path)
    spark.conf.set(WAY, "native")
    try:
        with pytest.raises(UnsupportedFeatureError, match="columnMapping") as caught:
            delta.write(frame(spark)).mode("append").save(path)
    finally:
        spark.conf.unset(WAY)
    assert caught.value.access == "write"


@pytest.mark.parametrize("way", ["native", "arrow"])
def test_random_folders_go_without_mapping_too(spark, path, way):
    spark.conf.set(WAY, way)
    try:
        df = frame(spark).drop("odd name")
        writer = delta.write(df).option("delta.randomizeFilePrefixes", True)
        writer.option("delta.randomPrefixLength", 3).partitionBy("p").save(path)
    finally:
        spark.conf.unset(WAY)

    assert all(re.fullmatch(r"[0-9A-Za-z]{3}/part-\S+", f.path) for f in snapshot(path).files())
    assert read(spark, path) == rows_of(df.toArrow())
    assert len(snapshot(path).files("p = 1")) == len(snapshot(path).files()) // 3


@pytest.mark.connect
def test_rows_of_an_arrow_frame_keep_odd_names(spark, path):
    data = pa.table({"a.b": [1], "c d": [{"e,f": 2}]})
    delta.write(spark.createDataFrame(data)).option("delta.columnMapping.mode", "name").save(path)

    assert snapshot(path).to_arrow().to_pylist() == [{"a.b": 1, "c d": {"e,f": 2}}]


@pytest.mark.connect
def test_types_get_wider_with_merge_schema_alone(spark, path):
    writer = delta.write(spark.sql("SELECT 1 AS a, 1.5F AS f, CAST(1 AS TINYINT) AS p"))
    writer.option("delta.enableTypeWidening", True).partitionBy("p").save(path)
    wider = spark.sql("SELECT 1L << 40 AS a, 0.1D AS f, 1000 AS p")
    with pytest.raises(SchemaMismatchError):
        delta.write(wider).mode("append").save(path)

    delta.write(wider).mode("append").option("mergeSchema", True).save(path)

    expected = [{"a": 1, "f": 1.5, "p": 1}, {"a": 1 << 40, "f": 0.1, "p": 1000}]
    assert sorted(delta.read(spark).load(path).toArrow().to_pylist(), key=lambda r: r["a"]) == (
        expected
    )
    changes = [field.metadata["delta.typeChanges"] for field in snapshot(path).schema]
    assert [(each[0]["fromType"], each[0]["toType"]) for each in changes] == [
        ("integer", "long"),
        ("float", "double"),
        ("byte", "integer"),
    ]
    # What is narrower is cast to what the column has become.
    delta.write(spark.sql("SELECT 5 AS a, 2 AS p")).mode("append").save(path)
    assert snapshot(path).to_arrow(where="p = 2")["a"].to_pylist() == [5]
    with pytest.raises(SchemaMismatchError):
        delta.write(spark.sql("SELECT 5.5D AS a")).mode("append").option("mergeSchema", True).save(
            path
        )


@pytest.mark.connect
@pytest.mark.parametrize("way", ["auto", "arrow"])
def test_partition_columns_are_in_files_where_a_property_wants_that(spark, path, way):
    spark.conf.set(WAY, way)
    try:
        writer = delta.write(frame(spark)).option("delta.enableIcebergCompatV2", True)
        writer.partitionBy("p").save(path)
    finally:
        spark.conf.unset(WAY)

    assert snapshot(path).properties.column_mapping_mode == "name"
    for each in snapshot(path).files():
        assert names(path)["p"] in pq.read_schema(f"{path}/{each.path}").names
    assert ids(path) == list(range(12))
