from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.alter.columns import change_column
from lakelog.core.alter.new_columns import add_columns
from lakelog.core.alter.property_changes import set_properties
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType

V1, V2 = ({f"delta.enableIcebergCompatV{version}": "true"} for version in (1, 2))
PLAIN = pa.table({"id": [1, 2], "s": [{"x": 1}, None], "p": ["a", "b"]})
MAP = pa.map_(pa.string(), pa.list_(pa.struct([("v", pa.int64())])))
NESTED = PLAIN.append_column("l", pa.array([[[1]], None])).append_column(
    "m", pa.array([[("k", [{"v": 1}])], None], MAP)
)


@pytest.fixture
def uri(tmp_path):
    return str(tmp_path / "t")


def snapshot(uri):
    return DeltaLog.for_table(uri).snapshot


def rows(uri):
    return snapshot(uri).to_arrow().sort_by("id").to_pylist()


def file_schema(uri):
    path = snapshot(uri).files()[0].path
    return pq.read_schema(Path(uri) / path)


def number(field):
    return int(field.metadata[b"PARQUET:field_id"])


@pytest.mark.parametrize(("flag", "feature"), [(V1, "icebergCompatV1"), (V2, "icebergCompatV2")])
def test_a_new_table_maps_columns_and_keeps_partitions_in_files(uri, flag, feature):
    write_arrow(uri, PLAIN, partition_by=["p"], properties=flag, mode="append")

    found = snapshot(uri)
    assert found.properties.column_mapping_mode == "name"
    assert {feature, "columnMapping"} <= set(found.protocol.writer_features or ())
    assert rows(uri) == PLAIN.to_pylist()
    fields = {field.name: field.metadata for field in found.schema}
    last = file_schema(uri).field(len(file_schema(uri)) - 1)
    assert last.name == fields["p"]["delta.columnMapping.physicalName"]
    assert number(last) == fields["p"]["delta.columnMapping.id"]
    assert last.name not in json.loads(found.files()[0].stats or "")["nullCount"]


def test_parts_of_version_two_have_ids_in_schema_and_files(uri):
    write_arrow(uri, NESTED, properties=V2, mode="append")
    add_columns(uri, pa.schema([("late", pa.list_(pa.int64()))]))
    write_arrow(uri, NESTED.append_column("late", pa.array([[1], None])), mode="append")

    schema = snapshot(uri).schema
    nested: Any = {f.name: f.metadata.get("delta.columnMapping.nested.ids") for f in schema}
    names = {f.name: f.metadata["delta.columnMapping.physicalName"] for f in schema}
    assert set(nested["l"]) == {f"{names['l']}.element", f"{names['l']}.element.element"}
    assert set(nested["m"]) == {
        f"{names['m']}.{part}" for part in ("key", "value", "value.element")
    }
    assert nested["id"] is None
    numbers = [each for ids in nested.values() if ids for each in ids.values()]
    fields = [f.metadata["delta.columnMapping.id"] for f in schema]
    assert len({*numbers, *fields}) == len(numbers) + len(fields)
    most = int(snapshot(uri).metadata.configuration["delta.columnMapping.maxColumnId"])
    assert most == max(*numbers, *fields)
    newest = max(snapshot(uri).files(), key=lambda each: each.modification_time)
    stored = pq.read_schema(Path(uri) / newest.path)
    outer = stored.field(names["l"]).type.value_field
    assert number(outer) == nested["l"][f"{names['l']}.element"]
    assert number(outer.type.value_field) == nested["l"][f"{names['l']}.element.element"]
    value = stored.field(names["m"]).type.item_field
    assert number(value) == nested["m"][f"{names['m']}.value"]
    assert number(stored.field(names["m"]).type.key_field) == nested["m"][f"{names['m']}.key"]
    assert [row["l"] for row in rows(uri)] == [[[1]], [[1]], None, None]


@pytest.mark.parametrize(
    ("properties", "data", "rule"),
    [
        ({**V1, **V2}, PLAIN, "VERSION_MUTUAL_EXCLUSIVE"),
        ({**V2, "delta.columnMapping.mode": "none"}, PLAIN, "WRONG_REQUIRED_TABLE_PROPERTY"),
        ({**V2, "delta.enableDeletionVectors": "true"}, PLAIN, "DELETION_VECTORS_SHOULD_BE"),
        (V1, NESTED, "UNSUPPORTED_DATA_TYPE"),
    ],
    ids=range(4),
)
def test_what_breaks_the_promise_is_refused_by_name(uri, properties, data, rule):
    with pytest.raises(DeltaAnalysisError, match=f"DELTA_ICEBERG_COMPAT_VIOLATION.{rule}"):
        write_arrow(uri, data, properties=properties, mode="append")


def test_a_table_that_promised_keeps_to_it(uri):
    properties = {**V1, "delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "enabled"}
    data = PLAIN.append_column("n", pa.array([1, 2], pa.int32()))
    write_arrow(uri, data, partition_by=["p"], properties=properties, mode="append")
    broken = "DELTA_ICEBERG_COMPAT_VIOLATION"

    with pytest.raises(DeltaAnalysisError, match=f"{broken}.UNSUPPORTED_DATA_TYPE"):
        add_columns(uri, pa.schema([("l", pa.list_(pa.int64()))]))
    with pytest.raises(DeltaAnalysisError, match=f"{broken}.DELETION_VECTORS_SHOULD_BE_DISABLED"):
        set_properties(uri, {"delta.enableDeletionVectors": "true"})
    with pytest.raises(DeltaAnalysisError, match=f"{broken}.UNSUPPORTED_TYPE_WIDENING"):
        change_column(uri, "n", data_type=PrimitiveType("double"))
    with pytest.raises(DeltaAnalysisError, match=f"{broken}.REPLACE_TABLE_CHANGE_PARTITION_NAMES"):
        write_arrow(uri, data, mode="overwrite", schema_mode="overwrite", partition_by=["n"])
    change_column(uri, "n", data_type=PrimitiveType("long"))
    file = snapshot(uri).files()[0]
    txn = DeltaLog.for_table(uri).start_transaction()
    with pytest.raises(DeltaAnalysisError, match=f"{broken}.FILES_NOT_ICEBERG_COMPAT"):
        txn.commit([replace(file, path="new", stats=None)], Operation.write("Append"))


def test_files_say_how_many_rows_they_have_whatever_the_session_wants(uri):
    conf = {"spark.databricks.delta.stats.collect": "false"}
    write_arrow(uri, PLAIN, properties=V2, conf=conf, mode="append")

    assert [each.num_records for each in snapshot(uri).files()] == [2]


def test_a_table_with_files_does_not_begin_to_promise(uri):
    write_arrow(uri, PLAIN, properties={"delta.columnMapping.mode": "name"}, mode="append")
    with pytest.raises(DeltaAnalysisError, match="FILES_NOT_ICEBERG_COMPAT"):
        set_properties(uri, V2)
    empty = uri + "-empty"
    write_arrow(
        empty, NESTED.slice(0, 0), properties={"delta.columnMapping.mode": "name"}, mode="append"
    )
    set_properties(empty, V2)
    write_arrow(empty, NESTED, mode="append")
    fields = {f.name: f.metadata for f in snapshot(empty).schema}
    assert "delta.columnMapping.nested.ids" in fields["l"]


@pytest.mark.parametrize(
    "flag",
    ["delta.enableMaterializePartitionColumnsFeature", "delta.writePartitionColumnsToParquet"],
)
def test_partition_columns_are_in_files_where_a_property_wants_that(uri, flag):
    write_arrow(uri, PLAIN, partition_by=["p"], properties={flag: "true"}, mode="append")

    assert file_schema(uri).names == ["id", "s", "p"]
    assert rows(uri) == PLAIN.to_pylist()
    assert len(snapshot(uri).files("p = 'a'")) == 1
