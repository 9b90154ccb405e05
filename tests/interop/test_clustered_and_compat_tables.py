"""Tables clustered by delta-spark, and tables that are read as Iceberg, written by us."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from support.samples import rows_of

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "s": [{"x": 1}, None, {"x": 3}],
        "l": [[1, None], [], None],
        "m": pa.array([[("k", [1.5])], [], None], pa.map_(pa.string(), pa.list_(pa.float64()))),
        "p": ["a", "b c", None],
    }
)
COLUMNS = "id LONG, s STRUCT<x: LONG>, l ARRAY<LONG>, m MAP<STRING, ARRAY<DOUBLE>>, p STRING"


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def snapshot(path):
    return DeltaLog.for_table(path).snapshot


def rows(data):
    """In an order of their own: ids come twice here."""
    return sorted(map(repr, rows_of(data)))


def same(delta_spark, path):
    return rows(snapshot(path).to_arrow()) == rows(delta_spark.read(path))


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_clustered_table_stays_clustered(delta_spark, spark, path, mode):
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"CREATE TABLE {table} ({COLUMNS}) USING delta CLUSTER BY (id, s.x) "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
    )
    domains = dict(snapshot(path).domain_metadata)

    write_arrow(path, ROWS, mode="append")
    df = spark.sql("SELECT id, NAMED_STRUCT('x', id) AS s, 'z' AS p FROM range(10, 60)")
    delta.write(df).mode("append").save(path)
    write_arrow(path, ROWS.append_column("new", ROWS["id"]), schema_mode="merge", mode="append")

    assert dict(snapshot(path).domain_metadata) == domains
    assert same(delta_spark, path)
    before = rows(snapshot(path).to_arrow())
    delta_spark.sql(f"OPTIMIZE {table}")
    assert delta_spark.detail(path)["clusteringColumns"] == ["id", "s.x"]
    assert rows(snapshot(path).to_arrow()) == before
    assert {each.clustering_provider for each in snapshot(path).files()} == {"liquid"}
    write_arrow(path, ROWS, mode="overwrite")
    assert same(delta_spark, path)


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["whole", "partitioned"])
@pytest.mark.parametrize("version", [1, 2])
def test_tables_that_are_read_as_iceberg_go_both_ways(delta_spark, path, version, partition_by):
    data = ROWS if version == 2 else ROWS.drop_columns(["l", "m"])
    columns = COLUMNS if version == 2 else "id LONG, s STRUCT<x: LONG>, p STRING"
    flag = f"delta.enableIcebergCompatV{version}"
    ours, theirs = f"{path}-ours", f"{path}-theirs"
    write_arrow(ours, data, partition_by=partition_by, properties={flag: "true"}, mode="append")
    clause = f"PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
    delta_spark.sql(
        f"CREATE TABLE delta.`{theirs}` ({columns}) USING delta {clause} TBLPROPERTIES "
        f"('{flag}' = 'true', 'delta.columnMapping.mode' = 'name')"
    )
    for each in (ours, theirs):
        write_arrow(each, data, mode="append")
        delta_spark.write(each, data)
        delta_spark.sql(f"ALTER TABLE delta.`{each}` ADD COLUMNS (late STRING)")
        write_arrow(each, data.append_column("late", data["p"]), mode="append")
        delta_spark.sql(f"DELETE FROM delta.`{each}` WHERE id = 2 AND late IS NULL")
        assert same(delta_spark, each)
    mine, its = snapshot(ours), snapshot(theirs)
    assert parts_of(mine) == parts_of(its)
    for name in ("min_reader_version", "min_writer_version"):
        assert getattr(mine.protocol, name) == getattr(its.protocol, name)
    assert set(mine.protocol.writer_features or ()) == set(its.protocol.writer_features or ())
    converts = {"delta.universalFormat.iceberg.atomicConversion.supported": "true"}
    assert {**mine.metadata.configuration, **converts} == {
        **its.metadata.configuration,
        **converts,
    }


def parts_of(found):
    """Column -> the parts of it that have ids, under the column's own name."""
    parts = {}
    for field in found.schema:
        ids = field.metadata.get("delta.columnMapping.nested.ids", {})
        physical = field.metadata["delta.columnMapping.physicalName"]
        parts[field.name] = sorted(each.replace(physical, field.name) for each in ids)
    return parts


def test_nested_ids_are_those_that_files_of_delta_spark_have(delta_spark, path):
    """A file of each, read by the ids of the schema alone."""
    import pyarrow.parquet as pq

    write_arrow(path, ROWS, properties={"delta.enableIcebergCompatV2": "true"}, mode="append")
    delta_spark.write(path, ROWS)
    layouts = []
    for each in snapshot(path).files():
        metadata = pq.read_metadata(f"{path}/{each.path}")
        layouts.append(sorted(ids_of(metadata.schema.to_arrow_schema())))
    assert layouts[0] == layouts[1]
    numbers = [number for number in layouts[0] if number]
    assert len(numbers) == len(set(numbers)) == 10
    assert json.loads(snapshot(path).metadata.schema_string)


def ids_of(fields):
    for each in fields:
        yield int((each.metadata or {}).get(b"PARQUET:field_id", 0))
        kind = each.type
        if pa.types.is_struct(kind):
            yield from ids_of(list(kind))
        elif pa.types.is_map(kind):
            yield from ids_of([kind.key_field, kind.item_field])
        elif pa.types.is_list(kind):
            yield from ids_of([kind.value_field])


def test_partition_columns_in_files_change_nothing_for_readers(delta_spark, path):
    from deltalake import DeltaTable

    properties = {"delta.enableMaterializePartitionColumnsFeature": "true"}
    write_arrow(path, ROWS, partition_by=["p"], properties=properties, mode="append")
    delta_spark.write(path, ROWS, partition_by=["p"])

    assert same(delta_spark, path)
    found = pa.table(DeltaTable(path).to_pyarrow_table(columns=["id", "p"]))
    assert sorted(map(repr, found.to_pylist())) == sorted(
        map(repr, snapshot(path).to_arrow(columns=["id", "p"]).to_pylist())
    )
