"""Delta types <-> Arrow types, and the casts between."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core.arrow.arrow_casts import cast_batch, cast_table
from lakelog.core.arrow.arrow_types import (
    from_arrow_schema,
    from_arrow_type,
    to_arrow_schema,
    to_arrow_type,
)
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError, SchemaMismatchError
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    type_from_json_value,
)


def schema(*fields: StructField) -> StructType:
    return StructType(fields)


def column(data_type: object, *, nullable: bool = True, name: str = "c") -> StructType:
    return schema(StructField(name, type_from_json_value(data_type), nullable))


INT, LONG, STRING = map(PrimitiveType, ["integer", "long", "string"])
EVERYTHING = schema(
    *(
        StructField(name, PrimitiveType(name))
        for name in [
            *("string", "binary", "boolean", "date"),
            *("byte", "short", "integer", "long", "float", "double"),
        ]
    ),
    StructField("timestamp", PrimitiveType("timestamp")),
    StructField("timestamp_ntz", PrimitiveType("timestamp_ntz")),
    StructField("decimal", DecimalType(38, 18), nullable=False),
    StructField("array", ArrayType(ArrayType(LONG, contains_null=False))),
    StructField("map", MapType(STRING, schema(StructField("x", INT)), value_contains_null=False)),
    StructField("struct", schema(StructField("a b", STRING, nullable=False))),
    StructField("void", PrimitiveType("void")),
)


def test_every_type_survives_the_way_to_arrow_and_back() -> None:
    assert from_arrow_schema(to_arrow_schema(EVERYTHING)) == EVERYTHING


def test_timestamps_carry_the_zone_that_was_asked_for() -> None:
    arrow = to_arrow_schema(EVERYTHING, timestamps="Europe/Berlin")
    assert arrow.field("timestamp").type == pa.timestamp("us", "Europe/Berlin")
    assert arrow.field("timestamp_ntz").type == pa.timestamp("us")


def test_variants_are_structs_of_two_binaries_at_any_depth() -> None:
    wanted = column({"type": "array", "elementType": "variant", "containsNull": True})
    element = to_arrow_schema(wanted).field("c").type.value_type
    assert {each.name: (each.type, each.nullable) for each in element} == {
        "metadata": (pa.binary(), False),
        "value": (pa.binary(), False),
    }


@pytest.mark.parametrize(
    ("arrow", "delta"),
    [
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.large_string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "long"),
        (pa.large_binary(), "binary"),
        (pa.binary(16), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.timestamp("s", "Asia/Tokyo"), "timestamp"),
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.decimal256(38, 3), "decimal(38,3)"),
        (pa.float16(), "float"),
        (
            pa.list_(pa.int8(), 3),
            {"type": "array", "elementType": "byte", "containsNull": True},
        ),
        (
            pa.large_list(pa.field("x", pa.bool_(), nullable=False)),
            {"type": "array", "elementType": "boolean", "containsNull": False},
        ),
    ],
    ids=str,
)
def test_the_many_spellings_of_arrow_become_one_delta_type(
    arrow: pa.DataType, delta: object
) -> None:
    assert from_arrow_type(arrow) == type_from_json_value(delta)


@pytest.mark.parametrize(
    "arrow",
    [
        pa.time64("us"),
        pa.time32("s"),
        pa.month_day_nano_interval(),
        pa.decimal256(40, 2),
        pa.decimal128(5, -2),
        pa.decimal128(2, 5),
        pa.dense_union([pa.field("a", pa.int8())]),
    ],
    ids=str,
)
def test_a_type_that_delta_lacks_is_named_with_its_column(arrow: pa.DataType) -> None:
    nested = pa.schema([pa.field("outer", pa.struct([pa.field("in.ner", pa.list_(arrow))]))])
    with pytest.raises(DeltaAnalysisError) as caught:
        from_arrow_schema(nested)
    assert caught.value.column == "outer.`in.ner`.element"
    assert str(arrow) in str(caught.value)
    assert "cast it to" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "delta", "expected"),
    [
        (pa.array([1, None], pa.int8()), "long", [1, None]),
        (pa.array([255], pa.uint8()), "short", [255]),
        (pa.array([1.5], pa.float32()), "double", [1.5]),
        (pa.array([7], pa.int32()), "double", [7.0]),
        (pa.array([2**63 - 1], pa.int64()), "decimal(19,0)", [Decimal(2**63 - 1)]),
        (pa.array([-5], pa.int8()), "decimal(4,1)", [Decimal("-5.0")]),
        (pa.array([Decimal("1.5")]), "decimal(10,2)", [Decimal("1.50")]),
        (pa.array(["a", None, "a"]).dictionary_encode(), "string", ["a", None, "a"]),
        (pa.array([b"ab"], pa.binary(2)), "binary", [b"ab"]),
        (pa.array([86_400_005], pa.date64()), "date", [dt.date(1970, 1, 2)]),
        (pa.nulls(2), "timestamp", [None, None]),
        (
            pa.array([-1], pa.timestamp("ms")),
            "timestamp_ntz",
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999_000)],  # noqa: DTZ001  # a local time
        ),
    ],
    ids=str,
)
def test_a_cast_that_loses_nothing_is_made(
    values: pa.Array, delta: object, expected: list[object]
) -> None:
    wanted = column(delta)
    out = cast_table(pa.table({"C": values}), wanted)
    assert out.schema == to_arrow_schema(wanted)
    assert out.column("c").to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "delta"),
    [
        (pa.array([1], pa.int64()), "integer"),
        (pa.array([1], pa.int64()), "double"),
        (pa.array([1], pa.int32()), "float"),
        (pa.array([1]), "string"),
        (pa.array(["1"]), "integer"),
        (pa.array([0], pa.timestamp("us")), "timestamp"),
        (pa.array([0], pa.timestamp("us", "UTC")), "timestamp_ntz"),
        (pa.array([0], pa.date32()), "timestamp"),
        (pa.array([Decimal("1.55")]), "decimal(38,1)"),
        (pa.array([[1]]), "integer"),
        (pa.array([1]), {"type": "array", "elementType": "long", "containsNull": True}),
    ],
    ids=str,
)
def test_a_cast_that_could_lose_something_is_refused(values: pa.Array, delta: object) -> None:
    with pytest.raises(SchemaMismatchError, match="Column c has type"):
        cast_table(pa.table({"c": values}), column(delta))


def test_nanoseconds_are_taken_when_they_are_whole_microseconds() -> None:
    table = pa.table({"c": pa.array([1_000, None], pa.timestamp("ns", "UTC"))})
    out = cast_table(table, column("timestamp"))
    assert out.column("c").cast(pa.int64()).to_pylist() == [1, None]


def test_a_nanosecond_too_many_is_refused_and_not_cut() -> None:
    table = pa.table({"c": pa.array([1_001], pa.timestamp("ns"))})
    with pytest.raises(DeltaAnalysisError, match=r"Column c: values of type timestamp\[ns\]"):
        cast_table(table, column("timestamp_ntz"))


def test_the_instant_stays_when_the_zone_changes() -> None:
    values = pa.array([-1], pa.timestamp("us", "America/New_York"))
    out = cast_table(pa.table({"c": values}), column("timestamp"), timestamps="Asia/Tokyo")
    assert out.schema.field("c").type == pa.timestamp("us", "Asia/Tokyo")
    assert out.column("c").cast(pa.int64()).to_pylist() == [-1]


def test_columns_take_order_and_spelling_of_the_schema_and_missing_ones_are_null() -> None:
    wanted = schema(
        StructField("A", LONG),
        StructField("b", schema(StructField("X", LONG), StructField("y", STRING))),
        StructField("new", MapType(STRING, LONG)),
    )
    data = pa.table({"B": [{"x": 1}, None], "a": pa.array([1, 2], pa.int32())})
    out = cast_table(data, wanted)
    assert out.schema == to_arrow_schema(wanted)
    assert out.to_pylist() == [
        {"A": 1, "b": {"X": 1, "y": None}, "new": None},
        {"A": 2, "b": None, "new": None},
    ]


def test_a_column_that_the_schema_lacks_is_refused_at_any_depth() -> None:
    wanted = schema(StructField("s", schema(StructField("x", LONG))))
    with pytest.raises(SchemaMismatchError, match=r"Column s\.z is not in the table"):
        cast_table(pa.table({"s": [{"x": 1, "z": 2}]}), wanted)


def test_a_column_that_the_data_has_twice_is_refused() -> None:
    data = pa.table([pa.array([1]), pa.array([2])], names=["c", "C"])
    with pytest.raises(SchemaMismatchError, match="twice"):
        cast_table(data, column("long"))


NESTED = schema(
    StructField("l", ArrayType(schema(StructField("x", LONG), StructField("n", STRING)))),
    StructField("m", MapType(STRING, ArrayType(LONG))),
)
NESTED_ROWS: list[dict[str, Any]] = [
    {"l": [{"x": 0}], "m": [("a", [1])]},
    {"l": None, "m": None},
    {"l": [{"x": 1}, None, {"x": None}], "m": [("b", None), ("c", [2, None])]},
    {"l": [], "m": []},
    {"l": [{"x": 9}], "m": [("d", [4])]},
]


@pytest.mark.parametrize("offset", range(5))
@pytest.mark.parametrize("outer", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_slices_of_nested_data_keep_their_rows(offset: int, outer: object) -> None:
    assert callable(outer)
    source = pa.schema(
        [
            ("l", outer(pa.struct([("x", pa.int32())]))),
            ("m", pa.map_(pa.large_string(), outer(pa.int16()))),
        ]
    )
    data = pa.Table.from_pylist(NESTED_ROWS, schema=source).slice(offset, 3)
    out = cast_table(data, NESTED)
    out.validate(full=True)
    expected = [
        {
            "l": None if row["l"] is None else [x and {**x, "n": None} for x in row["l"]],
            "m": row["m"],
        }
        for row in NESTED_ROWS[offset : offset + 3]
    ]
    assert out.schema == to_arrow_schema(NESTED)
    assert out.to_pylist() == expected


@pytest.mark.parametrize(
    ("wanted", "values", "path"),
    [
        (column("long", nullable=False), [1, None], "c"),
        (
            schema(StructField("c", schema(StructField("x", LONG, nullable=False)))),
            [{"x": None}],
            "c.x",
        ),
        (
            schema(StructField("c", ArrayType(LONG, contains_null=False))),
            [[1], [None]],
            "c.element",
        ),
    ],
    ids=["column", "field", "element"],
)
def test_nulls_in_a_required_column_are_refused_by_name(
    wanted: StructType, values: list[object], path: str
) -> None:
    data = pa.table({"c": pa.array(values, to_arrow_type(_nullable(wanted)))})
    with pytest.raises(ConstraintViolationError) as caught:
        cast_table(data, wanted)
    assert caught.value.column == path
    assert f"NOT NULL constraint violated for column: {path}." in str(caught.value)


def _nullable(wanted: StructType) -> DataType:
    match wanted.fields[0].data_type:
        case StructType((inner,)):
            return schema(StructField(inner.name, inner.data_type))
        case ArrayType(element):
            return ArrayType(element)
        case other:
            return other


def test_null_map_values_are_refused_only_where_a_row_holds_them() -> None:
    wanted = schema(StructField("c", MapType(STRING, LONG, value_contains_null=False)))
    data = pa.table({"c": pa.array([[("a", None)], [("b", 1)]], pa.map_(pa.string(), pa.int64()))})
    assert cast_table(data.slice(1), wanted).column("c").to_pylist() == [[("b", 1)]]
    with pytest.raises(ConstraintViolationError, match=r"c\.value"):
        cast_table(data, wanted)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (LONG, 7),
        (STRING, "x"),
        (ArrayType(LONG), [1, None]),
        (MapType(STRING, LONG), [("a", 1)]),
        (schema(StructField("y", LONG, nullable=False)), {"y": 3}),
    ],
    ids=str,
)
def test_a_required_field_below_a_null_struct_is_no_violation_and_can_be_written(
    data_type: DataType, value: object, tmp_path: object
) -> None:
    import pyarrow.parquet as pq

    required = StructField("x", data_type, nullable=False)
    wanted = schema(StructField("c", schema(required)))
    loose = schema(StructField("c", schema(StructField("x", _loose(data_type)))))
    data = pa.Table.from_pylist([{"c": {"x": value}}, {"c": None}], schema=to_arrow_schema(loose))
    out = cast_table(data, wanted)
    out.validate(full=True)
    pq.write_table(out, f"{tmp_path}/x.parquet")
    assert pq.read_table(f"{tmp_path}/x.parquet").to_pylist() == [{"c": {"x": value}}, {"c": None}]


def _loose(data_type: DataType) -> DataType:
    match data_type:
        case StructType(fields):
            return schema(*(StructField(f.name, f.data_type) for f in fields))
        case other:
            return other


def test_a_required_column_that_is_missing_matters_only_when_there_are_rows() -> None:
    wanted = schema(StructField("a", LONG), StructField("b", LONG, nullable=False))
    assert cast_table(pa.table({"a": pa.array([], pa.int64())}), wanted).num_rows == 0
    with pytest.raises(ConstraintViolationError, match="column: b"):
        cast_table(pa.table({"a": [1]}), wanted)


def test_equal_types_do_not_hide_nulls_in_a_required_column() -> None:
    wanted = column("long", nullable=False)
    array = pa.array([1, None], pa.int64())
    data = pa.Table.from_arrays([array], schema=to_arrow_schema(wanted))
    with pytest.raises(ConstraintViolationError):
        cast_table(data, wanted)


def test_a_batch_is_cast_as_a_table_is_and_may_be_empty() -> None:
    batch = pa.record_batch({"c": pa.array([1], pa.int8())})
    wanted = column("long")
    for source in (batch, batch.slice(0, 0)):
        out = pa.Table.from_batches(cast_batch(source, wanted), to_arrow_schema(wanted))
        assert out.num_rows == source.num_rows


def test_metadata_of_the_data_does_not_travel() -> None:
    data = pa.table({"c": pa.array([1])}).replace_schema_metadata({"pandas": "{}"})
    assert cast_table(data, column("long")).schema.metadata is None


def test_rows_that_are_in_the_table_already_are_read_as_they_are() -> None:
    wanted = schema(
        StructField("a", LONG, nullable=False),
        StructField("s", schema(StructField("x", LONG, nullable=False))),
        StructField("l", ArrayType(LONG, contains_null=False)),
        StructField("m", MapType(STRING, LONG, value_contains_null=False)),
        StructField("gone", LONG, nullable=False),
    )
    rows = [{"a": None, "s": {"x": None, "old": 1}, "l": [None], "m": [("k", None)], "b": 1}]
    source = pa.schema(
        [
            ("a", pa.int32()),
            ("s", pa.struct([("x", pa.int64()), ("old", pa.int64())])),
            ("l", pa.list_(pa.int64())),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("b", pa.int64()),
        ]
    )
    out = cast_table(pa.Table.from_pylist(rows, schema=source), wanted, purpose="read")
    assert out.schema == to_arrow_schema(wanted)
    assert out.to_pylist() == [
        {"a": None, "s": {"x": None}, "l": [None], "m": [("k", None)], "gone": None}
    ]
