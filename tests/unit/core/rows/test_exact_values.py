"""A value that somebody sets a column to is what the column holds, or it is refused."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.rows.exact_values import exact_array, exact_scalar
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable

ZONE = ZoneInfo("Asia/Kolkata")
ATOMS: list[DataType] = [
    *map(
        PrimitiveType,
        ["byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean"],
    ),
    *map(PrimitiveType, ("date", "timestamp", "timestamp_ntz")),
    *(DecimalType(10, 2), DecimalType(38, 0), DecimalType(5, 5)),
]
BY_NAME = {str(kind): kind for kind in ATOMS}
times = st.datetimes(datetime.fromisoformat("1900-01-01"), datetime.fromisoformat("2100-01-01"))
numbers = st.one_of(
    st.integers(-(1 << 70), 1 << 70),
    st.integers(-200, 200),
    st.integers(-200, 200).map(float),
    st.floats(),
    st.decimals(-(10**12), 10**12, places=3, allow_nan=False),
    st.integers(-200, 200).map(Decimal),
    st.sampled_from(
        [1.999, 1e300, 1e-300, 2.4e38, 0.1, Decimal("1.5"), Decimal("0.1"), 1 << 53, 2**53 + 1]
    ),
)
values = st.one_of(
    numbers,
    st.text(max_size=3),
    st.binary(max_size=3),
    st.booleans(),
    st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    times,
    times.map(lambda each: each.replace(hour=0, minute=0, second=0, microsecond=0)),
    times.map(lambda each: each.replace(tzinfo=timezone(timedelta(hours=2)))),
)


def at_once(one: datetime, other: datetime) -> bool:
    """Whether both are one instant; to `==` none is that of another zone in a fold or a gap."""
    return one.astimezone(UTC) == other.astimezone(UTC)


def same(value: Any, found: Any, target: DataType) -> bool:
    """Whether a column that holds `found` holds what was given."""
    name = str(target)
    if isinstance(value, bool | str | bytes):
        return type(found) is type(value) and bool(found == value)
    if isinstance(value, datetime):
        if name == "timestamp":
            return at_once(found, value if value.tzinfo else value.replace(tzinfo=ZONE))
        at_midnight = name == "date" and value == datetime.combine(value, datetime.min.time())
        return value.tzinfo is None and bool(found == (value.date() if at_midnight else value))
    if isinstance(value, date):
        midnight = datetime.combine(value, datetime.min.time())
        zoned = midnight.replace(tzinfo=ZONE)
        if name == "timestamp":
            return at_once(found, zoned)
        return bool(found == (midnight if name == "timestamp_ntz" else value))
    if isinstance(value, float) and math.isnan(value):
        return isinstance(found, float) and math.isnan(found)
    if name == "float":
        nearest = struct.unpack("f", struct.pack("f", float(value)))[0]
        return bool(found == nearest) and (found == 0) == (value == 0)
    if isinstance(found, float) and isinstance(value, Decimal):
        return Decimal(repr(found)) == value
    if isinstance(found, Decimal) and isinstance(value, float):
        return float(found) == value
    return isinstance(found, int | float | Decimal) and bool(found == value)


@settings(max_examples=examples(24), deadline=None)
@given(values)
def test_a_value_is_kept_or_refused_whatever_the_type(value: Any) -> None:
    for kind in ATOMS:
        try:
            found = exact_scalar(value, kind, session_tz="Asia/Kolkata")
        except ValueError:
            continue
        assert found.type == to_arrow_type(kind)
        assert same(value, found.as_py(), kind), (value, kind, found)


@settings(max_examples=examples(24), deadline=None)
@given(values)
def test_so_is_each_value_of_an_arrow_array(value: Any) -> None:
    try:
        array = pa.array([value, None])
    except (pa.ArrowException, OverflowError):
        return
    for kind in ATOMS:
        if isinstance(value, datetime | date) and str(kind) == "timestamp":
            continue  # Arrow's arrays know fewer zones; the scalars are held above
        try:
            found = exact_array(array, kind, session_tz="Asia/Kolkata")
        except ValueError:
            continue
        assert same(value, found[0].as_py(), kind), (value, kind, found)
        assert found[1].as_py() is None


@settings(max_examples=examples(24), deadline=None)
@given(st.data())
def test_what_a_type_can_hold_is_taken(data: st.DataObject) -> None:
    """Strictness is no excuse: the values of a column are values for it."""
    own: dict[str, st.SearchStrategy[Any]] = {
        "tinyint": st.integers(-128, 127),
        "int": st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(0, 9).map(float),
        "bigint": st.integers(-(1 << 63), (1 << 63) - 1) | st.just(Decimal(7)),
        "float": st.floats(width=32) | st.just(0.1),
        "double": st.floats() | st.integers(-(1 << 53), 1 << 53) | st.just(Decimal("0.1")),
        "string": st.text(),
        "binary": st.binary(),
        "boolean": st.booleans(),
        "date": st.dates(),
        "timestamp": times
        | times.map(lambda each: each.replace(tzinfo=UTC))
        | st.dates(date(1, 1, 2)),  # the first day begins in the year 0 of UTC
        "timestamp_ntz": st.datetimes() | st.dates(),
        "decimal(10,2)": st.decimals(-(10**7), 10**7, places=2) | st.just(0.25) | st.just(0.1),
        "decimal(38,0)": st.integers(-(10**37), 10**37),
    }
    name = data.draw(st.sampled_from(sorted(own)))
    kind, value = BY_NAME[name], data.draw(own[name])
    assert same(value, exact_scalar(value, kind, session_tz="Asia/Kolkata").as_py(), kind)


INT = PrimitiveType("integer")
NESTED = StructType(
    (
        StructField("a", INT),
        StructField("l", ArrayType(INT)),
        StructField("m", MapType(PrimitiveType("string"), INT)),
    )
)
WHOLE = {"a": 1, "l": [2, None], "m": {"k": 3}}


def test_nested_values_are_taken_at_every_depth() -> None:
    found = exact_scalar({**WHOLE, "a": None}, NESTED)
    assert found.as_py() == {"a": None, "l": [2, None], "m": [("k", 3)]}
    assert exact_scalar(found, NESTED) == found
    assert exact_scalar({"A": 1, "l": (), "m": [("k", 3)]}, NESTED).as_py()["m"] == [("k", 3)]
    assert not exact_scalar(None, NESTED).is_valid


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"typo": 1}, "'typo' is not a field; the fields are a, l, m"),
        ({}, "no value for a, l, m"),
        ({"a": 1}, "no value for l, m"),
        ({**WHOLE, "A": 2}, "'A' is given twice"),
        ({**WHOLE, "a": 1.5}, "at a: .*1.5"),
        ({**WHOLE, "l": [1, 2.5]}, "at l.element: .*2.5"),
        ({**WHOLE, "l": "12"}, "is not a list"),
        ({**WHOLE, "l": {1, 2}}, "is not a list"),
        ({**WHOLE, "m": {"k": Decimal("1.5")}}, "at m.value"),
        ({**WHOLE, "m": {1: 1}}, "at m.key"),
        ({**WHOLE, "m": [("k", 1), ("k", 2)]}, "given twice"),
        ({**WHOLE, "m": [(None, 1)]}, r"is not a \(key, value\) pair"),
        ([1, [2], {}], "is not a mapping"),
    ],
    ids=str,
)
def test_nested_values_are_exact_at_every_depth(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_scalar(value, NESTED)


def test_nanoseconds_are_not_cut_off() -> None:
    for unit_of_a_column in map(PrimitiveType, ("timestamp_ntz", "date")):
        with pytest.raises(ValueError, match="lose data"):
            exact_scalar(pa.scalar(1, pa.timestamp("ns")), unit_of_a_column)
    even = pa.scalar(1000, pa.timestamp("ns", "UTC"))
    found = exact_scalar(even, PrimitiveType("timestamp")).as_py()
    assert found == datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)


WRAPS: list[tuple[Callable[[Any], Any], Callable[[DataType], DataType]]] = [
    (lambda data: data, lambda kind: kind),
    (
        lambda data: pa.StructArray.from_arrays([data], ["S"]),
        lambda kind: StructType((StructField("s", kind),)),
    ),
    (lambda data: pa.ListArray.from_arrays([0, 1], data), ArrayType),
    (lambda data: pa.LargeListArray.from_arrays([0, 1], data), ArrayType),
    (lambda data: pa.FixedSizeListArray.from_arrays(data, 1), ArrayType),
    (
        lambda data: pa.MapArray.from_arrays([0, 1], pa.array(["k"]), data),
        lambda kind: MapType(PrimitiveType("string"), kind),
    ),
]


@pytest.mark.parametrize("inner", WRAPS)
@pytest.mark.parametrize("outer", WRAPS)
def test_no_field_of_a_struct_becomes_null_at_any_depth(outer: Any, inner: Any) -> None:
    kind = StructType((StructField("a", INT), StructField("b", PrimitiveType("long"))))
    target = outer[1](inner[1](kind))
    whole, fewer = (
        pa.StructArray.from_arrays([pa.array([5], pa.int32())] * len(names), list(names))
        for names in ("BA", "a")
    )
    assert "'b': 5" in str(exact_array(outer[0](inner[0](whole)), target).to_pylist())
    with pytest.raises(ValueError, match="no value for b"):
        exact_array(outer[0](inner[0](fewer)), target)
    other = StructType((*kind.fields, StructField("c", INT)))
    with pytest.raises(ValueError, match="no value for c"):
        exact_array(outer[0](inner[0](whole)), outer[1](inner[1](other)))
