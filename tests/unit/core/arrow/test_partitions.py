from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakelog.core.arrow.partitions import (
    parse_value,
    partition_schema_of,
    serialize_value,
    typed_partition_columns,
    typed_partition_table,
)
from lakelog.core.schema import ArrayType, DataType, DecimalType, PrimitiveType
from lakelog.core.schema import StructField as Field
from lakelog.core.schema import StructType as Struct


def kind(name: str) -> DataType:
    return PrimitiveType(name)


TYPED = st.one_of(
    st.tuples(st.just(kind("string")), st.text(min_size=1).filter(lambda s: s.isprintable())),
    st.tuples(st.just(kind("byte")), st.integers(-128, 127)),
    st.tuples(st.just(kind("short")), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just(kind("integer")), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(kind("long")), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(kind("double")), st.floats(allow_nan=False)),
    st.tuples(st.just(kind("float")), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just(kind("boolean")), st.booleans()),
    st.tuples(st.just(kind("date")), st.dates()),
    st.tuples(st.just(kind("timestamp")), st.datetimes(timezones=st.just(UTC))),
    st.tuples(st.just(kind("timestamp_ntz")), st.datetimes()),
    st.tuples(st.just(kind("binary")), st.text(min_size=1).map(str.encode)),
    st.tuples(
        st.just(DecimalType(38, 7)),
        st.integers(-(10**38) + 1, 10**38 - 1).map(
            lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -7))
        ),
    ),
)


@example((kind("float"), -math.inf))
@given(TYPED)
def test_every_value_reads_back_from_its_text(typed: tuple[DataType, Any]) -> None:
    data_type, value = typed
    assert parse_value(serialize_value(value, data_type), data_type) == value


@given(st.sampled_from([kind("string"), kind("long"), kind("date"), DecimalType(5, 2)]))
def test_null_and_the_empty_text_are_null_for_every_type(data_type: DataType) -> None:
    assert serialize_value(None, data_type) is None
    assert parse_value(None, data_type) is None
    assert parse_value("", data_type) is None


def test_nan_reads_back_as_one_and_the_same_object() -> None:
    text = serialize_value(math.nan, kind("double"))
    assert text == "NaN"
    assert parse_value(text, kind("double")) is parse_value("nan", kind("double"))


@pytest.mark.parametrize(
    "text",
    ["2020-06-01 12:00:00.5", "2020-06-01T12:00:00.500", "2020-06-01T10:00:00.500000Z",
     "2020-06-01 13:00:00.5+03:00", "2020-06-01 05:30:00.5-0430"],
)  # fmt: skip
def test_the_spellings_of_one_timestamp_are_equal(text: str) -> None:
    wanted = datetime(2020, 6, 1, 10, 0, 0, 500_000, tzinfo=UTC)
    assert parse_value(text, kind("timestamp"), "Europe/Berlin") == wanted


def test_the_session_zone_may_be_an_offset() -> None:
    wanted = datetime(2020, 1, 1, 10, tzinfo=UTC)
    assert parse_value("2020-01-01 12:00:00", kind("timestamp"), "+02:00") == wanted
    assert parse_value("2020-01-01 12:00:00", kind("timestamp"), "GMT+2") == wanted
    midnight = datetime(2020, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    assert parse_value("2020-01-01", kind("timestamp_ntz"), "+02:00") == midnight
    with pytest.raises(ValueError, match="Mars"):
        parse_value("2020-01-01", kind("timestamp"), "Mars/Olympus")


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("1.5", kind("integer")),
        ("1_000", kind("integer")),
        ("١", kind("integer")),
        ("128", kind("byte")),
        ("yes", kind("boolean")),
        ("2020-13-01", kind("date")),
        ("20200101", kind("date")),
        ("2020-01-01 25:00:00", kind("timestamp")),
        ("0001-01-01 00:00:00+23:00", kind("timestamp")),
        ("abc", kind("double")),
        ("1e60", kind("float")),
        ("1.234", DecimalType(5, 2)),
        ("12345", DecimalType(5, 2)),
        ("x", ArrayType(kind("long"))),
        ("x", kind("variant")),
    ],
)
def test_a_text_that_is_no_such_value_is_refused(text: str, data_type: DataType) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_value(text, data_type)


def test_a_value_that_does_not_fit_its_type_is_refused() -> None:
    with pytest.raises(ValueError, match="smallint"):
        serialize_value(40_000, kind("short"))
    with pytest.raises(ValueError, match="int"):
        serialize_value("x", kind("integer"))


def files(*values: dict[str, str | None]) -> pa.Table:
    maps = pa.array([list(v.items()) for v in values], pa.map_(pa.string(), pa.string()))
    return pa.table({"partition_values": pa.chunked_array([maps.slice(0, 1), maps.slice(1)])})


SCHEMA = Struct((Field("d", kind("date")), Field("n", kind("integer"))))


def test_partition_columns_are_typed_row_by_row() -> None:
    table = files({"d": "2020-01-02", "n": "5"}, {"n": None, "d": ""}, {"d": "2020-01-02"})
    typed = typed_partition_table(table, SCHEMA)
    assert typed.schema == pa.schema([("d", pa.date32()), ("n", pa.int32())])
    assert typed["d"].to_pylist() == [date(2020, 1, 2), None, date(2020, 1, 2)]
    assert typed["n"].to_pylist() == [5, None, None]


def test_a_value_that_cannot_be_read_is_null_and_marked() -> None:
    typed, bad = typed_partition_columns(files({"d": "x", "n": "1"}, {"d": None, "n": "y"}), SCHEMA)
    assert typed.to_pylist() == [{"d": None, "n": 1}, {"d": None, "n": None}]
    assert bad.to_pylist() == [{"d": True, "n": False}, {"d": False, "n": True}]


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("dnx"), st.sampled_from(["1", "2", ""]))),
             min_size=1, max_size=6),
    st.integers(0, 3),
)  # fmt: skip
def test_values_are_found_in_maps_of_any_shape(rows: list[Any], skip: int) -> None:
    maps = pa.array(rows, pa.map_(pa.string(), pa.string())).slice(skip)
    table = pa.table({"partition_values": maps})
    schema = Struct((Field("n", kind("integer")),))
    wanted = [next((v for k, v in row if k == "n"), None) for row in rows[skip:]]
    assert typed_partition_table(table, schema)["n"].to_pylist() == [
        int(v) if v else None for v in wanted
    ]


def test_no_files_give_typed_columns_without_rows() -> None:
    empty = pa.table({"partition_values": pa.array([], pa.map_(pa.string(), pa.string()))})
    typed = typed_partition_table(empty, SCHEMA)
    assert (typed.num_rows, typed.schema.names) == (0, ["d", "n"])


def test_the_partition_schema_follows_the_partitioning_and_names_what_is_missing() -> None:
    assert partition_schema_of(SCHEMA, ["n", "d"]).names == ["n", "d"]
    with pytest.raises(KeyError, match="zz"):
        partition_schema_of(SCHEMA, ["zz"])
