"""Partition values as Spark reads them; `tests/integration/test_partition_casts_as_spark.py` asks
Spark itself."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, delete_rows, update_rows, write_arrow
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.arrow.time_zones import zone_of
from lakelog.core.errors import CorruptLogError
from lakelog.core.schema import DataType, DecimalType, PrimitiveType
from support.examples import examples
from support.raw_log import partitioned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MONEY = DecimalType(5, 2)


def kind(name: str) -> DataType:
    return PrimitiveType(name)


def day(text: str) -> int:
    return dt.date.fromisoformat(text).toordinal() - dt.date(1970, 1, 1).toordinal()


def moment(text: str) -> int:
    since = dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return since // dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        (kind("integer"), "7 ", 7),
        (kind("integer"), "\t-7.9\n", -7),
        (kind("integer"), ".5", 0),
        (kind("byte"), "+127.", 127),
        (kind("long"), "-9223372036854775808", -(1 << 63)),
        (kind("boolean"), " Yes", True),
        (kind("boolean"), "n", False),
        (kind("boolean"), "1", True),
        (kind("date"), "2024-1-5", day("2024-01-05")),
        (kind("date"), "2024-01-05T12:00:00", day("2024-01-05")),
        (kind("date"), "2024-3", day("2024-03-01")),
        (kind("date"), "+10000-01-01", 2932897),
        (kind("date"), "-0001-01-01", -719893),
        (kind("date"), "0000-01-01", -719528),
        (kind("double"), "1.5d", 1.5),
        (kind("double"), "-Inf", -math.inf),
        (kind("double"), "0x1p3", 8.0),
        (kind("double"), "-NaN", math.nan),
        (kind("float"), "-1e60", -math.inf),
        (kind("float"), "0.1", 0.10000000149011612),
        (MONEY, "-1.235", Decimal("-1.24")),
        (MONEY, "1e-999999999", Decimal("0.00")),
        (MONEY, " 999.994 ", Decimal("999.99")),
        (kind("timestamp"), "2024-1-5 1:2", moment("2024-01-05T01:02:00+01:00")),
        (kind("timestamp"), "2024-01-05T01:02:03.1234567Z", moment("2024-01-05T01:02:03.123456Z")),
        (kind("timestamp"), "2024-01-05 01:02:03+1:30", moment("2024-01-05T01:02:03+01:30")),
        (kind("timestamp"), "2024-01-05 01:02:03-0130", moment("2024-01-05T01:02:03-01:30")),
        (kind("timestamp"), "2024-01-05 01:02:03 GMT+3", moment("2024-01-05T01:02:03+03:00")),
        (kind("timestamp"), "2024-01-05 01:02:03America/Lima", moment("2024-01-05T06:02:03Z")),
        (kind("timestamp"), "2024-03-31 02:30:00", 1711848600000000),
        (kind("timestamp"), "2024-10-27 02:30:00", 1729989000000000),
        (kind("timestamp"), "+10000-01-01 00:00:00", 253402297200000000),
        (kind("timestamp"), "-0001-01-01 00:00:00", -62198758408000000),
        (kind("timestamp"), "294247-01-10 04:00:54.775807Z", (1 << 63) - 1),
        (kind("timestamp"), "2024-07-05 01:02:03 PST", moment("2024-07-05T01:02:03-07:00")),
        (kind("timestamp"), "2024-07-05 01:02:03EST", moment("2024-07-05T01:02:03-05:00")),
        (kind("timestamp"), "2024-07-05 01:02:03 CST", moment("2024-07-05T01:02:03-05:00")),
        (kind("timestamp_ntz"), "2024-01-05 01:02:03+05:00", moment("2024-01-05T01:02:03Z")),
        (kind("string"), " ab ", " ab "),
        (kind("binary"), "\u00e9 ", b"\xc3\xa9 "),
    ],
)
def test_a_text_is_what_spark_takes_it_for(data_type: DataType, text: str, value: Any) -> None:
    found = cast_text(text, data_type, "Europe/Berlin")
    assert found == value or (math.isnan(found) and math.isnan(value))
    assert type(found) is type(value)
    assert pa.array([found], to_arrow_type(data_type)).null_count == 0


@pytest.mark.parametrize("text", ["T1", "1:2", "01:02:03.5", "T01:02:03 PST", "1:2:3 +14:00"])
def test_a_time_without_a_day_is_one_of_the_day_on_which_it_is_read(text: str) -> None:
    name = text.partition(" ")[2] or "Europe/Berlin"
    zone = zone_of(name)
    before = dt.datetime.now(zone).date()
    found = cast_text(text, kind("timestamp"), "Europe/Berlin")
    after = dt.datetime.now(zone).date()
    days = [
        cast_text(f"{day} {text.lstrip('T')}", kind("timestamp"), name) for day in (before, after)
    ]
    assert found in days


@pytest.mark.parametrize("name", ["PST", "EST", "CST", "VST", "HST"])
def test_javas_short_names_are_zones_of_a_session_too(name: str) -> None:
    assert zone_of(name).utcoffset(dt.datetime(2024, 1, 1)) is not None  # noqa: DTZ001 # a wall clock


REFUSED = [
    (kind("integer"), "x"),
    (kind("integer"), " "),
    (kind("integer"), "+"),
    (kind("integer"), "1e3"),
    (kind("integer"), "1_0"),
    (kind("integer"), "\u0667"),
    (kind("integer"), "7\u00a0"),
    (kind("integer"), "2147483648"),
    (kind("boolean"), "on"),
    (kind("date"), "20240105"),
    (kind("date"), "2024-02-30"),
    (kind("date"), "2024-1-5x"),
    (kind("date"), "9999999-01-01"),
    (kind("date"), "tomorrow"),
    (kind("double"), "1,5"),
    (kind("double"), "+-inf"),
    (kind("double"), "1_0"),
    (MONEY, "999.995"),
    (MONEY, "1e999999999"),
    (MONEY, "NaN"),
    (kind("timestamp"), "12"),
    (kind("timestamp"), "T"),
    (kind("timestamp"), "T24:00"),
    (kind("timestamp_ntz"), "12:00:00"),
    (kind("timestamp_ntz"), "T12"),
    (kind("timestamp"), "2024-01-05 24:00:00"),
    (kind("timestamp"), "2024-01-05 01:02:03 Mars/Olympus"),
    (kind("timestamp"), "2024-01-05 01:02:03+19"),
    (kind("timestamp"), "2024-01-05 01:02:03+130"),
    (kind("timestamp"), "2024-01-05 01:02:03+01:303"),
    (kind("timestamp"), "294248-01-01Z"),
    (kind("timestamp_ntz"), "soon"),
    (kind("variant"), "x"),
]


@pytest.mark.parametrize(("data_type", "text"), REFUSED)
def test_what_spark_does_not_understand_is_refused(data_type: DataType, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        cast_text(text, data_type)


def test_null_and_the_empty_text_are_null() -> None:
    assert cast_text(None, kind("date")) is None
    assert cast_text("", kind("string")) is None


@settings(max_examples=examples(24))
@given(st.text(), st.sampled_from([kind(n) for n in ("integer", "date", "double", "timestamp")]))
def test_no_text_at_all_breaks_it(text: str, data_type: DataType) -> None:
    try:
        found = cast_text(text, data_type)
    except ValueError:
        return
    assert len(pa.array([found], to_arrow_type(data_type))) == 1


def left(uri: str) -> list[int]:
    return sorted(DeltaLog.for_table(uri).snapshot.to_arrow("a")["a"].to_pylist())


def replaced(uri: str, value: Any) -> object:
    rows = pa.table({"a": pa.array([], pa.int64()), "p": pa.array([], pa.date32())})
    return write_arrow(uri, rows, mode="overwrite", replace_where=f"p = {value}")


REMOVES: dict[str, Callable[[str, Any], object]] = {
    "replace_where": replaced,
    "delete": lambda uri, value: delete_rows(uri, f"p = {value}"),
    "delete rows": lambda uri, value: delete_rows(uri, f"p = {value} and a >= 0"),
    "delete nulls": lambda uri, _: delete_rows(uri, "p is null and a >= 0"),
    "update": lambda uri, value: update_rows(uri, {"a": -1}, f"p = {value}"),
    "read": lambda uri, _: DeltaLog.for_table(uri).snapshot.to_arrow(),
    "read it": lambda uri, _: DeltaLog.for_table(uri).snapshot.to_arrow("p"),
    "filter by it": lambda uri, _: DeltaLog.for_table(uri).snapshot.to_arrow("a", "p is null"),
}


@pytest.mark.parametrize("remove", REMOVES.values(), ids=REMOVES)
def test_a_value_that_no_one_understands_is_named_and_never_removed(
    tmp_path: Path, remove: Callable[[str, Any], object]
) -> None:
    uri = partitioned(tmp_path, kind("date"), "2024-01-05", "2024-02-30", None)
    with pytest.raises(CorruptLogError, match="PARTITION_COLUMN_CAST_FAILED") as caught:
        remove(uri, "date '2024-01-05'")
    assert (caught.value.path, caught.value.value) == ("f1.parquet", "2024-02-30")
    assert left(uri) == [0, 1, 2]


@pytest.mark.parametrize("remove", ["replace_where", "delete", "delete rows"])
def test_only_the_partition_that_is_meant_goes_however_values_are_spelled(
    tmp_path: Path, remove: str
) -> None:
    texts = [
        "2024-01-05",
        "2024-1-5",
        "+10000-01-01",
        "2024-1-6 ",
        "2024-01-05T00:00",
        "-2024",
        None,
    ]
    uri = partitioned(tmp_path, kind("date"), *texts)
    REMOVES[remove](uri, "date '2024-01-05'")
    assert left(uri) == [2, 3, 5, 6]


def test_the_whole_table_is_replaced_and_deleted_whatever_its_values_are(tmp_path: Path) -> None:
    uri = partitioned(tmp_path, kind("long"), "1", "x")
    write_arrow(uri, pa.table({"a": [7], "p": [1]}), mode="overwrite")
    assert left(uri) == [7]
    (tmp_path / "other").mkdir()
    uri = partitioned(tmp_path / "other", kind("long"), "1", "x")
    delete_rows(uri)
    assert left(uri) == []
