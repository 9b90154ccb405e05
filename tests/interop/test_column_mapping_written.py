"""Tables that map columns, written by us: read, changed and read again by the peers."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.schema.column_paths import walk
from support.samples import SAMPLES, rows_of

MODES = ["name", "id"]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "odd name": ["a", None, "c", "d"],
        "s": [{"x": 1, "y": {"z": "p"}}, None, {"x": None, "y": None}, {"x": 4, "y": {"z": None}}],
        "l": [[{"e": 1.5}, None], [], None, [{"e": 2.0}]],
        "m": pa.array(
            [[("k", {"v": 1})], [], None, [("a", None), ("b", {"v": None})]],
            pa.map_(pa.string(), pa.struct([("v", pa.int32())])),
        ),
        "p": ["u", "u", None, "a b"],
    }
)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def snapshot(path):
    return DeltaLog.for_table(path).snapshot


def ours(path, **how):
    return rows_of(snapshot(path).to_arrow(**how))


def theirs(delta_spark, path, **how):
    return rows_of(delta_spark.read(path, **how))


def marks(path):
    """Path -> id and physical name."""
    keys = "delta.columnMapping.id", "delta.columnMapping.physicalName"
    return {
        ".".join(each): tuple(field.metadata[key] for key in keys)
        for each, field in walk(snapshot(path).schema)
    }


def protocol_of(path):
    found = snapshot(path).protocol
    names = found.reader_features, found.writer_features
    return found.min_reader_version, found.min_writer_version, *(set(each or ()) for each in names)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_values_of_every_type_come_through(delta_spark, path, mode, sample):
    data, partition_by = SAMPLES[sample]
    properties = {"delta.columnMapping.mode": mode}
    write_arrow(path, data, partition_by=partition_by, properties=properties, mode="append")

    assert theirs(delta_spark, path) == rows_of(data) == ours(path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["whole", "partitioned"])
def test_delta_spark_goes_on_where_we_stopped(delta_spark, path, mode, partition_by):
    properties = {"delta.columnMapping.mode": mode}
    write_arrow(path, ROWS, partition_by=partition_by, properties=properties, mode="append")
    table, before = f"delta.`{path}`", marks(path)
    assert theirs(delta_spark, path, where="s.x = 4 AND p = 'a b'") == ours(path, where="id = 4")

    delta_spark.write(path, ROWS)
    delta_spark.sql(f"ALTER TABLE {table} RENAME COLUMN `odd name` TO title")
    delta_spark.sql(f"ALTER TABLE {table} DROP COLUMN s.y")
    delta_spark.sql(f"ALTER TABLE {table} ADD COLUMN (late INT)")
    delta_spark.sql(f"DELETE FROM {table} WHERE id = 2")

    assert marks(path)["title"] == before["odd name"]
    assert ours(path) == theirs(delta_spark, path)
    changed = pa.table(
        {
            "id": pa.array([7], pa.int64()),
            "title": ["x"],
            "s": [{"x": 9}],
            "late": pa.array([1], pa.int32()),
            "newest": ["n"],
        }
    )
    write_arrow(path, changed, schema_mode="merge", mode="append")

    assert ours(path) == theirs(delta_spark, path)
    found = theirs(delta_spark, path, where="newest = 'n'")
    assert [(row["id"], row["title"], row["s"]) for row in found] == [(7, "x", {"x": 9})]
    assert marks(path)["newest"][0] > max(number for number, _ in before.values()) + 1


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["whole", "partitioned"])
@pytest.mark.one_day_in(4)
def test_a_table_of_delta_spark_is_written_by_us(delta_spark, path, spark, partition_by):
    table = f"delta.`{path}`"
    clause = f"PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
    delta_spark.sql(
        f"CREATE TABLE {table} (id LONG, `a b` STRING, p INT, s STRUCT<x: LONG, l: ARRAY<INT>>) "
        f"USING delta {clause} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    delta_spark.sql(f"INSERT INTO {table} VALUES (1, 'x', 1, NAMED_STRUCT('x', 2, 'l', ARRAY(1)))")
    delta_spark.sql(f"ALTER TABLE {table} RENAME COLUMN s.x TO xx")
    delta_spark.sql(f"ALTER TABLE {table} RENAME COLUMN p TO part")
    before = marks(path)
    df = spark.sql(
        "SELECT id, 'y' AS `a b`, CAST(id AS INT) AS part, "
        "NAMED_STRUCT('xx', id, 'l', ARRAY(7)) AS s FROM range(2, 6)"
    )

    delta.write(df).mode("append").save(path)
    assert ours(path) == theirs(delta_spark, path)
    assert marks(path) == before

    delta.write(df.where("part = 2")).mode("overwrite").replaceWhere("part = 2").save(path)
    delta.write(df.limit(1)).mode("overwrite").option("partitionOverwriteMode", "dynamic").save(
        path
    )
    assert ours(path) == theirs(delta_spark, path)
    assert delta_spark.count(path, where="part = 2") == 1

    log = DeltaLog.for_table(path)
    log.checkpoint()
    assert theirs(delta_spark, path, where="id > 3") == ours(path, where="id > 3")
    write_arrow(path, snapshot(path).to_arrow().slice(0, 1), mode="append")
    delta_spark.sql(f"ALTER TABLE {table} DROP COLUMN `a b`")
    assert ours(path) == theirs(delta_spark, path)


def test_the_protocol_and_the_marks_are_those_of_delta_spark(delta_spark, tmp_path):
    """The same table made by both, and the same upgrade."""
    us, them = str(tmp_path / "us"), str(tmp_path / "them")
    data = ROWS.drop_columns(["odd name"])
    for mode in ("name", None):
        properties = {"delta.columnMapping.mode": mode} if mode else {}
        one, two = f"{us}-{mode}", f"{them}-{mode}"
        write_arrow(one, data, properties=properties, mode="append")
        delta_spark.write(two, data, options=properties)
        if mode is None:
            for path in (one, two):
                delta_spark.sql(
                    f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES "
                    "('delta.columnMapping.mode' = 'name')"
                )
        ids = {path: number for path, (number, _) in marks(one).items()}
        assert ids == {path: number for path, (number, _) in marks(two).items()}
        assert protocol_of(one) == protocol_of(two)
        assert snapshot(one).metadata.configuration == snapshot(two).metadata.configuration
        assert ours(one) == ours(two) == theirs(delta_spark, one)


def test_deltalake_reads_names_and_partitions(path):
    from deltalake import DeltaTable, QueryBuilder

    properties = {"delta.columnMapping.mode": "name"}
    write_arrow(path, ROWS, partition_by=["p"], properties=properties, mode="append")
    write_arrow(path, ROWS.append_column("new", ROWS["id"]), schema_mode="merge", mode="append")

    query = QueryBuilder().register("t", DeltaTable(path))
    found = pa.table(query.execute('SELECT id, "odd name", s, p, new FROM t').read_all())
    names = ["id", "odd name", "s", "p", "new"]
    assert sorted(map(repr, found.to_pylist())) == sorted(
        map(repr, snapshot(path).to_arrow(columns=names).to_pylist())
    )
