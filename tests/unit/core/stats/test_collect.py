from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.stats.collect import StatsConfig, indexed_leaves, stats_from_footer
from lakelog.core.stats.footer_gaps import Times

pq: Any = pyarrow.parquet


def footer(table: pa.Table, **options: Any) -> Any:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False, **options)
    return pq.read_metadata(sink)


def stats_of(table: pa.Table, **options: Any) -> Any:
    wanted = {"nan_columns": {}, **options}
    return orjson.loads(stats_from_footer(footer(table), from_arrow_schema(table.schema), **wanted))


def test_every_type_has_the_bounds_that_delta_gives_it() -> None:
    table = pa.table(
        {
            "n": pa.array([3, None, -1], pa.int16()),
            "x": pa.array([0.5, 2.0, None], pa.float32()),
            "s": ["b", "a", None],
            "d": pa.array([date(2020, 1, 2), None, date(1, 1, 1)]),
            "t": pa.array([1, -1, None], pa.timestamp("us", "UTC")),
            "u": pa.array([1_234_567, None, None], pa.timestamp("us")),
            "c": pa.array([Decimal("1.50"), Decimal("-2.25"), None]),
            "b": [True, None, None],
            "y": [b"x", None, None],
            "l": [[1], None, []],
        }
    )
    assert stats_of(table) == {
        "numRecords": 3,
        "minValues": {
            "n": -1, "x": 0.5, "s": "a", "d": "0001-01-01", "t": "1969-12-31T23:59:59.999Z",
            "u": "1970-01-01T00:00:01.234", "c": -2.25, "b": True,
        },
        "maxValues": {
            "n": 3, "x": 2.0, "s": "b", "d": "2020-01-02", "t": "1970-01-01T00:00:00.000Z",
            "u": "1970-01-01T00:00:01.234", "c": 1.5, "b": True,
        },
        "nullCount": {
            "n": 1, "x": 1, "s": 1, "d": 1, "t": 1, "u": 2, "c": 1, "b": 2, "y": 2,
        },
    }  # fmt: skip


def test_decimals_keep_every_digit() -> None:
    table = pa.table({"c": pa.array([Decimal("12345678901234567890.123456789012345678")])})
    text = stats_from_footer(footer(table), from_arrow_schema(table.schema))
    assert '"minValues":{"c":12345678901234567890.123456789012345678}' in text


@pytest.mark.parametrize("integers", [True, False])
def test_decimals_are_read_in_every_physical_type(integers: bool) -> None:
    for precision in (5, 15, 30):
        values = pa.array([Decimal("-1.5"), Decimal("0.5")], pa.decimal128(precision, 2))
        table = pa.table({"c": values})
        meta = footer(table, store_decimal_as_integer=integers)
        found = orjson.loads(stats_from_footer(meta, from_arrow_schema(table.schema)))
        assert (found["minValues"], found["maxValues"]) == ({"c": -1.5}, {"c": 0.5})


def test_structs_nest_and_lists_have_no_statistics() -> None:
    table = pa.table(
        {"s": pa.array([{"a": 1, "l": [1]}, {"a": None, "l": []}, None]), "z": [1] * 3}
    )
    found = stats_of(table)
    assert found["nullCount"] == {"s": {"a": 2}, "z": 0}
    assert found["minValues"] == {"s": {"a": 1}, "z": 1}


def test_a_name_with_a_dot_is_no_struct() -> None:
    table = pa.table({"a.b": [1], "a": pa.array([{"b": 7}])})
    assert stats_of(table)["minValues"] == {"a.b": 1, "a": {"b": 7}}


def test_bounds_span_row_groups_and_a_group_of_nulls_takes_none_away() -> None:
    table = pa.table({"n": pa.array([5, 6, None, None, 1, 2])})
    meta = footer(table, row_group_size=2)
    found = orjson.loads(stats_from_footer(meta, from_arrow_schema(table.schema)))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == (
        {"n": 1}, {"n": 6}, {"n": 2},
    )  # fmt: skip


def test_a_column_of_nulls_and_a_column_the_file_lacks_are_null_in_every_row() -> None:
    table = pa.table({"n": pa.array([None, None], pa.int64())})
    schema = StructType(
        (StructField("n", PrimitiveType("long")), StructField("new", PrimitiveType("string")))
    )
    assert orjson.loads(stats_from_footer(footer(table), schema)) == {
        "numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"n": 2, "new": 2},
    }  # fmt: skip


def test_a_column_with_nan_leaves_its_file_without_bounds_but_with_null_counts() -> None:
    table = pa.table({"x": [1.0, math.nan, None], "y": [1.0, 2.0, None]})
    meta = footer(table, write_statistics=["y"])
    schema = from_arrow_schema(table.schema)
    found = orjson.loads(stats_from_footer(meta, schema, nan_columns={("x",): 1}))
    assert found == {"numRecords": 3, "nullCount": {"x": 1, "y": 1}}


def test_float_bounds_of_a_writer_no_one_checked_for_nan_are_not_taken() -> None:
    table = pa.table({"x": [1.0, math.nan], "n": [1, 2]})
    found = stats_of(table, nan_columns=None)
    assert found == {"numRecords": 2, "nullCount": {"x": 0, "n": 0}}


def test_zeros_become_bounds_that_hold_for_both_signs() -> None:
    for zero in (0.0, -0.0):
        found = stats_of(pa.table({"x": [zero]}))
        assert math.copysign(1, found["minValues"]["x"]) == -1
        assert math.copysign(1, found["maxValues"]["x"]) == 1


def test_infinite_bounds_are_left_out() -> None:
    found = stats_of(pa.table({"x": [-math.inf, 1.0]}))
    assert found == {"numRecords": 2, "nullCount": {"x": 0}}


def test_int96_timestamps_have_the_bounds_that_somebody_read() -> None:
    table = pa.table({"t": pa.array([1, None], pa.timestamp("us", "UTC"))})
    meta = footer(table, use_deprecated_int96_timestamps=True)
    schema = from_arrow_schema(table.schema)
    assert orjson.loads(stats_from_footer(meta, schema)) == {
        "numRecords": 2, "nullCount": {},
    }  # fmt: skip
    read: dict[tuple[str, ...], Times] = {("t",): Times(1, (1000, 1_000_000_000))}
    found = orjson.loads(stats_from_footer(meta, schema, times=read))
    assert found["nullCount"] == {"t": 1}
    assert found["minValues"] == {"t": "1970-01-01T00:00:00.000Z"}
    assert found["maxValues"] == {"t": "1970-01-01T00:00:01.000Z"}


def test_a_file_in_the_legacy_calendar_has_no_bounds_of_days() -> None:
    table = pa.table({"d": pa.array([1], pa.date32()), "n": [1]})
    assert stats_of(table)["minValues"] == {"d": "1970-01-02", "n": 1}
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"org.apache.spark.legacyDateTime": ""})
    marked = stats_from_footer(pq.read_metadata(sink), from_arrow_schema(table.schema))
    assert orjson.loads(marked) == {"numRecords": 1, "nullCount": {"d": 0, "n": 0}}


def test_dates_beyond_the_year_9999_have_no_bounds() -> None:
    table = pa.table({"d": pa.array([1, 4_000_000], pa.int32()).cast(pa.date32())})
    found = stats_of(table)
    assert found == {"numRecords": 2, "nullCount": {"d": 0}}


def test_strings_are_cut_to_the_configured_length() -> None:
    table = pa.table({"s": ["b" * 40, "a" * 40]})
    found = stats_of(table)
    assert found["minValues"] == {"s": "a" * 32}
    assert found["maxValues"] == {"s": "b" * 32 + "\x7f"}
    short = stats_of(table, indexed=StatsConfig(string_prefix_length=2))
    assert (short["minValues"], short["maxValues"]) == ({"s": "aa"}, {"s": "bb\x7f"})


def test_the_first_32_leaves_have_statistics_and_partition_columns_do_not_count() -> None:
    table = pa.table({f"c{i}": [i] for i in range(40)})
    found = stats_of(table, partition_columns=["C0"])
    assert list(found["minValues"]) == [f"c{i}" for i in range(1, 33)]
    assert stats_of(table, indexed=StatsConfig(num_indexed_cols=0))["nullCount"] == {}
    assert len(stats_of(table, indexed=StatsConfig(num_indexed_cols=-1))["nullCount"]) == 40


def test_listed_columns_win_over_the_count_and_a_struct_stands_for_its_leaves() -> None:
    schema = StructType.from_json(
        b'{"type":"struct","fields":['
        b'{"name":"a","type":"long"},{"name":"b","type":"long"},'
        b'{"name":"s","type":{"type":"struct","fields":['
        b'{"name":"x","type":"long"},{"name":"y","type":"long"}]}}]}'
    )
    config = StatsConfig(num_indexed_cols=0, columns=[("B",), ("S",)])
    assert [path for path, _ in indexed_leaves(schema, (), config)] == [
        ("b",), ("s", "x"), ("s", "y"),
    ]  # fmt: skip


def test_the_configuration_comes_from_table_and_session() -> None:
    table = TableProperties({"delta.dataSkippingNumIndexedCols": "5"})
    conf = {"spark.databricks.io.skipping.stringPrefixLength": "9"}
    assert StatsConfig.from_properties(table, conf) == StatsConfig(
        num_indexed_cols=5, string_prefix_length=9
    )
    assert (
        StatsConfig.from_properties(table, {"spark.databricks.delta.stats.collect": "false"})
        is None
    )
    own = TableProperties({"delta.dataSkippingStringPrefixLength": "4"})
    config = StatsConfig.from_properties(own, conf)
    assert config is not None
    assert config.string_prefix_length == 4


def spark_footer(low: float, high: float) -> Any:
    """What pyarrow shows of a footer by parquet-mr; its NaN bounds can't be made with pyarrow."""
    stats = SimpleNamespace(
        has_null_count=True, null_count=0, has_min_max=True, min_raw=low, max_raw=high
    )
    column = SimpleNamespace(statistics=stats, physical_type="DOUBLE")
    group = SimpleNamespace(num_rows=2, column=lambda _: column)
    schema = SimpleNamespace(to_arrow_schema=lambda: pa.schema([("x", pa.float64())]))
    return SimpleNamespace(
        num_rows=2, num_row_groups=1, row_group=lambda _: group, schema=schema,
        created_by="parquet-mr version 1.17.0", metadata={},
    )  # fmt: skip


def test_bounds_by_spark_are_taken_unless_they_show_a_nan() -> None:
    schema = StructType((StructField("x", PrimitiveType("double")),))
    good = orjson.loads(stats_from_footer(spark_footer(1.0, 2.0), schema))
    assert (good["minValues"], good["maxValues"]) == ({"x": 1.0}, {"x": 2.0})
    bad = orjson.loads(stats_from_footer(spark_footer(1.0, math.nan), schema))
    assert bad.keys() == {"numRecords", "nullCount"}


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
            st.one_of(st.none(), st.text(max_size=40).filter(lambda s: "\x00" not in s)),
            st.one_of(st.none(), st.datetimes(timezones=st.just(UTC))),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 5),
)
@settings(deadline=None)
def test_bounds_hold_for_every_row(rows: list[Any], group: int) -> None:
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "n": pa.array(columns[0], pa.int64()),
            "s": pa.array(columns[1], pa.string()),
            "t": pa.array(columns[2], pa.timestamp("us", "UTC")),
        }
    )
    meta = footer(table, row_group_size=group)
    found = orjson.loads(stats_from_footer(meta, from_arrow_schema(table.schema)))
    low, high = found["minValues"], found["maxValues"]
    for n, s, t in rows:
        assert n is None or low["n"] <= n <= high["n"]
        if s is not None:
            assert "s" not in low or low["s"] <= s
            assert "s" not in high or s <= high["s"]
        if t is not None:
            assert datetime.fromisoformat(low["t"]) <= t
            assert (t - datetime.fromisoformat(high["t"])).total_seconds() < 0.001
    for name, index in (("n", 0), ("s", 1), ("t", 2)):
        assert found["nullCount"][name] == sum(row[index] is None for row in rows)
