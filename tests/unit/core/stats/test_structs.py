from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.log.file_names import checkpoint_name, commit_name
from lakelog.core.schema import (
    ArrayType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.stats.structs import parse_stats, stats_type

AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"
AS_JSON = "delta.checkpoint.writeStatsAsJson"


def schema_of(**types):
    return StructType(
        tuple(
            StructField(name, PrimitiveType(kind) if isinstance(kind, str) else kind)
            for name, kind in types.items()
        )
    )


def one(kind, value):
    target = stats_type(schema_of(c=kind), [], TableProperties({}), with_tight_bounds=False)
    text = json.dumps({"numRecords": 1, "minValues": {"c": value}})
    (found,) = parse_stats(pa.array([text]), target).to_pylist()
    return found["minValues"]["c"]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("byte", -128, -128),
        ("byte", 128, None),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", 2**63, None),
        ("integer", 1.5, None),
        ("integer", True, None),
        ("double", 0.1, 0.1),
        ("double", 3, 3.0),
        ("double", float("nan"), None),
        ("double", float("inf"), None),
        ("string", "ü", "ü"),
        ("string", 5, None),
        ("date", "2020-01-02", dt.date(2020, 1, 2)),
        ("date", "0000-01-02", None),
        (
            "timestamp",
            "2020-01-02T03:04:05.678+01:00",
            dt.datetime(2020, 1, 2, 2, 4, 5, 678_000, tzinfo=dt.UTC),
        ),
        ("timestamp_ntz", "2020-01-02T03:04:05.678Z", None),
        ("timestamp", "soon", None),
        (DecimalType(4, 1), 1.5, Decimal("1.5")),
        (DecimalType(4, 1), 1.55, None),
        (DecimalType(4, 1), 12345, None),
    ],
)
def test_a_value_that_is_not_of_the_type_says_nothing(kind, value, expected):
    assert one(kind, value) == expected


def test_a_decimal_keeps_all_its_digits():
    target = stats_type(
        schema_of(c=DecimalType(38, 2)), [], TableProperties({}), with_tight_bounds=False
    )
    text = '{"maxValues":{"c":123456789012345678901234567890123456.78}}'
    (found,) = parse_stats(pa.array([text]), target).to_pylist()
    assert found["maxValues"]["c"] == Decimal("123456789012345678901234567890123456.78")


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7"])
def test_a_text_that_is_no_statistics_is_null(text):
    target = stats_type(schema_of(c="long"), [], TableProperties({}), with_tight_bounds=True)
    assert parse_stats(pa.array([text], pa.string()), target).to_pylist() == [None]


def test_the_struct_has_the_indexed_columns_alone():
    inner = StructType((StructField("x", PrimitiveType("boolean")),))
    array = ArrayType(PrimitiveType("long"), contains_null=True)
    schema = schema_of(p="long", a="long", flag="boolean", s=inner, list=array, late="long")
    properties = TableProperties({"delta.dataSkippingNumIndexedCols": "4"})
    target = stats_type(schema, ["p"], properties, with_tight_bounds=True)
    bounds = pa.struct(
        [("a", pa.int64()), ("flag", pa.bool_()), ("s", pa.struct([("x", pa.bool_())]))]
    )
    assert str(target) == str(
        pa.struct(
            [
                ("numRecords", pa.int64()),
                ("minValues", bounds),
                ("maxValues", bounds),
                (
                    "nullCount",
                    pa.struct(
                        [
                            ("a", pa.int64()),
                            ("flag", pa.int64()),
                            ("s", pa.struct([("x", pa.int64())])),
                            ("list", pa.int64()),
                        ]
                    ),
                ),
                ("tightBounds", pa.bool_()),
            ]
        )
    )
    none = TableProperties({"delta.dataSkippingNumIndexedCols": "0"})
    assert [f.name for f in stats_type(schema, [], none, with_tight_bounds=False)] == ["numRecords"]


def test_with_column_mapping_the_names_are_those_of_the_files():
    field = StructField(
        "a", PrimitiveType("long"), metadata={"delta.columnMapping.physicalName": "col-1"}
    )
    for mode, name in (("name", "col-1"), ("none", "a")):
        properties = TableProperties({"delta.columnMapping.mode": mode})
        target = stats_type(StructType((field,)), [], properties, with_tight_bounds=False)
        assert target.field("nullCount").type.field(0).name == name


ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3]),
        "price": pa.array([Decimal("1.10"), None, Decimal("-2.5")], pa.decimal128(12, 2)),
        "at": pa.array([dt.datetime(2020, 1, 2, tzinfo=dt.UTC)] * 3, pa.timestamp("us", "UTC")),
        "name": ["a", "b", None],
        "p": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 1), None]),
    }
)


def columns(tmp_path, **properties):
    table = str(tmp_path / "t")
    write_arrow(table, ROWS, partition_by=["p"], properties=properties, mode="append")
    log = DeltaLog.for_table(table)
    expected = sorted(log.snapshot.file_table.to_pylist(), key=str)
    log.checkpoint()
    folder = tmp_path / "t" / "_delta_log"
    (folder / commit_name(0)).rename(folder / "kept")
    found = sorted(DeltaLog.for_table(table).snapshot.file_table.to_pylist(), key=str)
    for row in (*expected, *found):
        row["stats"] = json.loads(row["stats"])
    assert found == expected
    rows = pq.read_table(folder / checkpoint_name(0))["add"].to_pylist()
    return [row for row in rows if row is not None]


@pytest.mark.parametrize(
    ("properties", "there"),
    [
        ({}, {"stats"}),
        ({AS_STRUCT: "true"}, {"stats", "stats_parsed", "partitionValues_parsed"}),
        ({AS_STRUCT: "true", AS_JSON: "false"}, {"stats_parsed", "partitionValues_parsed"}),
        ({AS_JSON: "false"}, {"stats_parsed", "partitionValues_parsed"}),
        ({AS_STRUCT: "false"}, {"stats"}),
    ],
)
def test_a_table_says_how_its_checkpoints_keep_statistics(tmp_path, properties, there):
    for row in columns(tmp_path, **properties):
        kinds = {"stats", "stats_parsed", "partitionValues_parsed"}
        assert kinds & row.keys() == there
        if "stats_parsed" in there:
            assert row["stats_parsed"]["numRecords"] in (1, 2)
            assert row["partitionValues_parsed"]["p"] in (dt.date(2024, 1, 1), None)


def test_a_table_may_do_without_statistics(tmp_path):
    table = str(tmp_path / "t")
    write_arrow(table, ROWS, properties={AS_STRUCT: "false", AS_JSON: "false"}, mode="append")
    log = DeltaLog.for_table(table)
    log.checkpoint()
    (tmp_path / "t" / "_delta_log" / commit_name(0)).rename(tmp_path / "kept")
    (row,) = DeltaLog.for_table(table).snapshot.file_table.to_pylist()
    assert row["stats"] is None
