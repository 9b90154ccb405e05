"""Columns of intervals are read and written, whoever wrote them and wherever they are."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, create_table, delete_rows, update_rows, write_arrow
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.arrow.partitions import parse_value, serialize_value
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError, SchemaMismatchError
from lakelog.core.schema import StructField, StructType, type_from_json_value
from lakelog.core.schema.types import DAY_TIME, YEAR_MONTH
from support.raw_log import PROTOCOL, RawLog, add, metadata

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.schema import DataType

ALLOW = {"spark.databricks.delta.schema.typeCheck.enabled": "false"}
DAYS = ["day", "hour", "minute", "second"]
SPELLINGS: dict[str, DataType] = {
    "interval year": YEAR_MONTH,
    "interval month": YEAR_MONTH,
    "interval year to month": YEAR_MONTH,
    **{f"interval {each}": DAY_TIME for each in DAYS},
    **{f"interval {a} to {b}": DAY_TIME for a in DAYS for b in DAYS[DAYS.index(a) + 1 :]},
}
# As delta-spark 4.4 writes them.
TEXTS: list[tuple[DataType, int, str]] = [
    (YEAR_MONTH, 18, "INTERVAL '1-6' YEAR TO MONTH"),
    (YEAR_MONTH, -18, "INTERVAL '-1-6' YEAR TO MONTH"),
    (YEAR_MONTH, 0, "INTERVAL '0-0' YEAR TO MONTH"),
    (YEAR_MONTH, -(2**31), "INTERVAL '-178956970-8' YEAR TO MONTH"),
    (DAY_TIME, 93_784_500_000, "INTERVAL '1 02:03:04.5' DAY TO SECOND"),
    (DAY_TIME, -86_400_000_001, "INTERVAL '-1 00:00:00.000001' DAY TO SECOND"),
    (DAY_TIME, 0, "INTERVAL '0 00:00:00' DAY TO SECOND"),
    (DAY_TIME, -(2**63), "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND"),
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling_is_read_and_one_is_written(text: str) -> None:
    schema = StructType.from_json(
        json.dumps({"type": "struct", "fields": [{"name": "x", "type": text}]})
    )
    kind = SPELLINGS[text]
    assert schema == StructType((StructField("x", kind),))
    assert type_from_json_value(text) == kind
    assert json.loads(schema.to_json())["fields"][0]["type"] == str(kind)


@pytest.mark.parametrize(
    "text", ["interval month to day", "INTERVAL DAY", "interval second to day", "interval"]
)
def test_another_spelling_is_no_type(text: str) -> None:
    with pytest.raises(ValueError, match="unknown type"):
        type_from_json_value(text)


@pytest.mark.parametrize(("kind", "value", "text"), TEXTS, ids=[each[2] for each in TEXTS])
def test_a_partition_value_is_a_literal_of_spark(kind: DataType, value: int, text: str) -> None:
    assert serialize_value(value, kind) == text
    assert cast_text(text, kind) == value == parse_value(text, kind)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (YEAR_MONTH, "INTERVAL '7' MONTH", 7),
        (YEAR_MONTH, "1-6", 18),
        (YEAR_MONTH, "interval -'1-6' year to month", -18),
        (DAY_TIME, "INTERVAL '02:03' HOUR TO MINUTE", 7_380_000_000),
        (DAY_TIME, "INTERVAL '1.25' SECOND", 1_250_000),
        (DAY_TIME, "1 00:00:00", 86_400_000_000),
    ],
)
def test_a_shorter_literal_is_read(kind: DataType, text: str, value: int) -> None:
    assert cast_text(text, kind) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (YEAR_MONTH, "INTERVAL '1' DAY"),
        (YEAR_MONTH, "INTERVAL '178956971-0' YEAR TO MONTH"),
        (YEAR_MONTH, "18"),
        (DAY_TIME, "INTERVAL '1-6' YEAR TO MONTH"),
        (DAY_TIME, "INTERVAL '1:2' DAY TO SECOND"),
        (DAY_TIME, "INTERVAL '1.5' DAY"),
        (DAY_TIME, "INTERVAL '²' DAY"),
        (DAY_TIME, "INTERVAL '99999999999' DAY"),
    ],
)
def test_what_is_no_interval_is_unreadable(kind: DataType, text: str) -> None:
    with pytest.raises(ValueError, match=r"not an interval|has"):
        cast_text(text, kind)


def test_files_of_others_have_plain_integers(tmp_path: Path) -> None:
    kinds = {"i": "integer", "d": "interval hour to second", "m": "interval month"}
    schema = StructType.from_json(
        json.dumps({"type": "struct", "fields": [{"name": k, "type": v} for k, v in kinds.items()]})
    )
    rows = pa.table(
        {
            "i": pa.array([1, 2], pa.int32()),
            "d": pa.array([-1, None], pa.int64()),
            "m": pa.array([18, None], pa.int32()),
        }
    )
    pq.write_table(rows, tmp_path / "f.parquet")
    stats = json.dumps({"numRecords": 2, "nullCount": {"i": 0, "d": 1, "m": 1}})
    RawLog(tmp_path).commit(PROTOCOL, metadata(schema=schema), add("f.parquet", stats=stats))
    table = str(tmp_path)
    expected: list[dict[str, Any]] = [
        {"i": 1, "d": dt.timedelta(microseconds=-1), "m": 18},
        {"i": 2, "d": None, "m": None},
    ]
    snapshot = DeltaLog.for_table(table).snapshot
    assert snapshot.to_arrow().to_pylist() == expected
    assert snapshot.to_arrow(["i"], where="d IS NULL").to_pylist() == [{"i": 2}]
    with pytest.raises(InvalidPredicateError):
        snapshot.to_arrow(where="m > 1")
    write_arrow(table, snapshot.to_arrow(), mode="append")
    delete_rows(table, "i = 2")
    update_rows(table, {"i": "i + 6"})
    after = DeltaLog.for_table(table)
    after.checkpoint()
    assert after.snapshot.to_arrow().to_pylist() == 2 * [expected[0] | {"i": 7}]
    for file in after.snapshot.files():
        known = json.loads(file.stats or "")
        assert set(known["nullCount"]) == {"i", "d", "m"}
        assert set(known["minValues"]) == set(known["maxValues"]) == {"i"}
        stored = pq.read_schema(tmp_path / file.path)
        assert [stored.field(name).type for name in ("d", "m")] == [pa.int64(), pa.int32()]


DEEP = "k long, d interval day, s struct<x: interval year, l: array<interval second>>"


def test_nested_ones_and_partitions_of_them_come_back(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    create_table(table, f"{DEEP}, m interval year", partition_by=["d", "m"], conf=ALLOW)
    inner = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.duration("ms")))])
    rows: dict[str, Any] = {
        "k": [1, 2],
        "d": pa.array([5, None], pa.duration("s")),
        "s": pa.array([{"x": -1, "l": [dt.timedelta(seconds=1), None]}, None], inner),
        "m": pa.array([-18, 0], pa.int16()),
    }
    write_arrow(table, pa.table(rows), mode="append")
    snapshot = DeltaLog.for_table(table).snapshot
    assert {tuple(each.partition_values.values()) for each in snapshot.files()} == {
        ("INTERVAL '0 00:00:05' DAY TO SECOND", "INTERVAL '-1-6' YEAR TO MONTH"),
        (None, "INTERVAL '0-0' YEAR TO MONTH"),
    }
    found = {row["k"]: row for row in snapshot.to_arrow().to_pylist()}
    assert found == {row["k"]: row for row in pa.table(rows).to_pylist()}
    with pytest.raises(SchemaMismatchError):
        write_arrow(table, pa.table({**rows, "d": [1, 2]}), mode="append")


def test_a_new_column_of_them_is_refused_unless_asked_for(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    data = pa.table({"a": pa.array([1], pa.duration("us"))})
    with pytest.raises(DeltaAnalysisError, match=r"UNSUPPORTED_DATA_TYPES.*typeCheck"):
        write_arrow(table, data)
    write_arrow(table, data, conf=ALLOW)
    write_arrow(table, data, mode="append")
    wider = data.append_column("b", data["a"])
    with pytest.raises(DeltaAnalysisError, match=r"types: b: interval.*typeCheck"):
        write_arrow(table, wider, mode="append", schema_mode="merge")
    assert DeltaLog.for_table(table).snapshot.to_arrow().num_rows == 2
