"""Tables with mapped columns, vectors and wider types, by both ways of reading."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import lakelog.spark as delta
from lakelog.core import DeltaLog
from lakelog.core.errors import DataFileError, DataFileMissingError, UnsupportedFeatureError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.deletion_vectors import inline, stored
from support.raw_log import RawLog, add, metadata
from support.samples import rows_of

WAY = "spark.lakelog.read.path"
FEATURES = ["columnMapping", "deletionVectors", "typeWidening"]
PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": FEATURES,
        "writerFeatures": FEATURES,
    }
}


def mapped(name, number, kind, **more):
    mapping = {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": f"col-{number}",
    }
    kind = PrimitiveType(kind) if isinstance(kind, str) else kind
    return StructField(name, kind, True, {**mapping, **more})


CHANGE = [{"fromType": "integer", "toType": "long", "tableVersion": 1}]
SCHEMA = StructType(
    (
        mapped("id", 1, "long", **{"delta.typeChanges": CHANGE}),
        mapped("s", 2, StructType((mapped("x", 3, "string"), mapped("new", 4, "double")))),
        mapped("p", 5, "integer"),
    )
)


@pytest.fixture(params=["name", "id"])
def path(request, tmp_path):
    """Three files: one with a vector beside it, one with an inline vector, one with none."""
    table = tmp_path / "t"
    log = RawLog(table).commit(
        PROTOCOL,
        metadata(
            schema=SCHEMA,
            partition_columns=("p",),
            configuration={"delta.columnMapping.mode": request.param},
        ),
    )
    inner = pa.struct([_stored("x", 9, pa.string()), _stored("col-3", 3, pa.string())])
    schema = pa.schema([_stored("col-1", 1, pa.int32()), _stored("col-2", 2, inner)])
    vectors = [*stored(table, {0, 7}), inline({1, 2, 9}), None]
    for part, vector in enumerate(vectors):
        rows = [
            {"col-1": part * 10 + i, "col-2": {"x": "dropped", "col-3": str(i)}} for i in range(10)
        ]
        data = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(data, table / f"f{part}.parquet", row_group_size=3)
        size = (table / f"f{part}.parquet").stat().st_size
        more = {"deletionVector": vector} if vector else {}
        log.commit(add(f"f{part}.parquet", size=size, partitionValues={"col-5": str(part)}, **more))
    return str(table)


def _stored(name, number, kind):
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def expected(path, **how):
    return rows_of(DeltaLog.for_table(path).snapshot.to_arrow(**how))


def shown(df):
    return rows_of(df.toArrow())


@pytest.mark.connect
def test_the_rows_are_those_of_the_core(spark, path):
    df = delta.read(spark).load(path)

    assert shown(df) == expected(path)
    assert len(expected(path)) == 25
    assert df.count() == 25
    assert not any("delta." in str(field.metadata) for field in df.schema.fields)


def test_conditions_and_columns_are_those_of_the_table(spark, path):
    found = delta.read(spark).where("id >= 8 and p < 2").load(path)
    assert shown(found) == expected(path, where="id >= 8 and p < 2")

    found = delta.read(spark).option("columns", "p,id").load(path)
    assert shown(found) == expected(path, columns=["p", "id"])


@pytest.mark.connect
def test_the_data_source_reads_them_too(spark, path):
    delta.register(spark)
    df = spark.read.format("lakelog").load(path)

    assert shown(df) == expected(path)
    assert sorted(row.id for row in df.where("p = 1").collect()) == [10, 13, 14, 15, 16, 17, 18]


def test_every_version_is_read(spark, path):
    for version in range(1, 4):
        snapshot = DeltaLog.for_table(path).snapshot_at(version=version)
        df = delta.read(spark).option("versionAsOf", version).load(path)
        assert shown(df) == rows_of(snapshot.to_arrow())


@pytest.mark.connect
def test_sparks_own_reader_is_refused_what_it_can_not_follow_by_name(spark, path):
    mode = DeltaLog.for_table(path).snapshot.properties.column_mapping_mode
    spark.conf.set(WAY, "native")
    try:
        # The files have no statistics, so nobody knows how many rows a vector is for.
        refused = ["columnMapping"] * (mode == "id") + ["deletionVectors"]
        with pytest.raises(UnsupportedFeatureError, match=r"Snapshot\.to_arrow") as caught:
            delta.read(spark).load(path)
    finally:
        spark.conf.unset(WAY)
    assert caught.value.features == refused


@pytest.mark.connect
def test_a_damaged_or_missing_vector_is_an_error_with_its_name(spark, path):
    (file,) = Path(path).glob("*.bin")
    data = bytearray(file.read_bytes())
    data[15] ^= 1
    file.write_bytes(data)
    with pytest.raises(PySparkException) as caught:
        delta.read(spark).load(path).collect()
    error = delta.unwrap_error(caught.value)
    assert isinstance(error, DataFileError)
    assert file.name in str(error)

    file.unlink()
    with pytest.raises(PySparkException) as caught:
        delta.read(spark).load(path).collect()
    error = delta.unwrap_error(caught.value)
    assert isinstance(error, DataFileMissingError)
    assert error.path == str(file)


def test_such_a_table_is_appended_to(spark, path):
    before = expected(path)

    delta.write(delta.read(spark).load(path)).mode("append").save(path)

    assert sorted(map(repr, expected(path))) == sorted(map(repr, before + before))
    snapshot = DeltaLog.for_table(path).snapshot
    assert snapshot.version == 4
    new = [file for file in snapshot.files() if "/part-" in file.path]
    assert {tuple(file.partition_values) for file in new} == {("col-5",)}
    same = [file for file in new if file.partition_values == {"col-5": "1"}]
    assert len(snapshot.files("p = 1")) == 1 + len(same)
