"""Which types turn into which."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
    type_from_json_value,
)
from lakelog.core.schema.upcasts import is_upcast, is_widening, shares_int32

NUMBERS: list[DataType] = [
    *map(PrimitiveType, ["byte", "short", "integer", "long", "float", "double"]),
    DecimalType(3, 0),
    DecimalType(10, 0),
    DecimalType(19, 0),
    DecimalType(20, 0),
    DecimalType(22, 2),
]
LIMITS = {
    "byte": [-(2**7), 2**7 - 1],
    "short": [-(2**15), 2**15 - 1],
    "integer": [-(2**31), 2**31 - 1],
    "long": [-(2**63), 2**63 - 1, 2**53 + 1],
    "float": [2.0**127, -(2.0**-126), 0.1],
    "double": [1.7e308, 5e-324, 0.1],
}


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(NUMBERS, 2)), ids=str)
def test_an_upcast_keeps_every_value_and_only_those_are_upcasts(
    source: DataType, target: DataType
) -> None:
    limits = (
        LIMITS[source.name]
        if isinstance(source, PrimitiveType)
        else [10 ** (source.precision - source.scale) - 1]
        if isinstance(source, DecimalType)
        else []
    )
    values = pa.array(limits, to_arrow_type(source))
    if is_upcast(source, target):
        wanted = StructType((StructField("c", target),))
        out = cast_table(pa.table({"c": values}), wanted).column("c")
        assert out.to_pylist() == values.to_pylist()
        return
    try:
        kept = values.cast(to_arrow_type(target)).cast(values.type).equals(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        kept = False
    # What keeps the limits and is still no upcast: decimals and floats do not mix.
    mixed = isinstance(source, DecimalType) or {source, target} <= set(NUMBERS[4:])
    assert not kept or mixed


@pytest.mark.parametrize(
    ("source", "target", "widens"),
    [
        ("byte", "long", True),
        ("long", "integer", False),
        ("integer", "double", True),
        ("byte", "float", False),
        ("long", "double", False),
        ("date", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("byte", "decimal(10,0)", True),
        ("byte", "decimal(9,0)", False),
        ("long", "decimal(20,0)", True),
        ("long", "decimal(19,0)", False),
        ("integer", "decimal(12,2)", True),
        ("decimal(5,2)", "decimal(7,4)", True),
        ("decimal(5,2)", "decimal(6,4)", False),
        ("decimal(5,2)", "decimal(5,2)", False),
        ("string", "binary", False),
    ],
)
def test_the_protocol_s_table_of_type_widening_is_kept(
    source: str, target: str, widens: bool
) -> None:
    assert is_widening(type_from_json_value(source), type_from_json_value(target)) is widens


def test_only_byte_short_and_int_share_a_parquet_type() -> None:
    pairs = itertools.product(NUMBERS, NUMBERS)
    shared = {(str(a), str(b)) for a, b in pairs if shares_int32(a, b)}
    assert shared == set(itertools.product(["tinyint", "smallint", "int"], repeat=2))


def test_containers_and_dates_are_no_upcasts() -> None:
    date, ntz = PrimitiveType("date"), PrimitiveType("timestamp_ntz")
    assert not is_upcast(date, ntz)
    assert not is_upcast(ArrayType(date), ArrayType(ntz))
    assert not is_widening(ArrayType(date), ArrayType(ntz))
    assert is_upcast(PrimitiveType("void"), ArrayType(date))
