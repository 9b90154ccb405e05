from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.actions import AddFile
from lakelog.core.actions.file_table import from_add_files
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.arrow.partitions import partition_schema_of, serialize_value
from lakelog.core.expressions import prune as pruning
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.prune import keep_files, matches_partitions
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
)
from lakelog.core.schema import StructType
from lakelog.core.stats import bounds as stat_bounds
from lakelog.core.stats.collect import StatsConfig, stats_from_footer
from support.examples import examples

pq: Any = pyarrow.parquet
SCHEMA = StructType.from_json(
    b'{"type":"struct","fields":['
    b'{"name":"p","type":"integer"},{"name":"q","type":"date"},{"name":"n","type":"integer"},'
    b'{"name":"l","type":"long"},{"name":"s","type":"string"},{"name":"d","type":"date"},'
    b'{"name":"t","type":"timestamp"},{"name":"u","type":"timestamp_ntz"},'
    b'{"name":"c","type":"decimal(10,2)"},{"name":"e","type":"decimal(38,3)"},'
    b'{"name":"x","type":"double"},{"name":"f","type":"float"},{"name":"b","type":"boolean"},'
    b'{"name":"st","type":{"type":"struct","fields":[{"name":"a","type":"long"}]}}]}'
)
PARTITIONS = ["p", "q"]
START = datetime(2020, 1, 1, tzinfo=UTC)
FLOATS = [-math.inf, -1.5, -0.0, 0.0, 0.1, 2.0, math.inf, math.nan]
MOMENTS = [timedelta(microseconds=i) for i in (-1001, -1, 0, 1, 999, 1000, 1500)]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "p": st.integers(-1, 2),
    "q": st.integers(0, 2).map(lambda i: date(2020, 1, 1) + timedelta(days=i)),
    "n": st.integers(-3, 3),
    "l": st.sampled_from([-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    "s": st.sampled_from(
        ["", "a", "ab", "a" * 33, "a" * 32 + "\U0010ffff", "b", "é", "\U0001f600"]
    ),
    "d": st.integers(-2, 2).map(lambda i: date(2020, 1, 2) + timedelta(days=i)),
    "t": st.sampled_from([START + m for m in MOMENTS]),
    "u": st.sampled_from([START.replace(tzinfo=None) + m for m in MOMENTS]),
    "c": st.sampled_from([Decimal("-1.5"), Decimal("0"), Decimal("0.25"), Decimal("99999999.99")]),
    "e": st.sampled_from(
        [Decimal(1), Decimal("12345678901234567890.123"), Decimal("12345678901234567890.124")]
    ),
    "x": st.sampled_from(FLOATS),
    "f": st.sampled_from([*FLOATS[:4], 0.10000000149011612, *FLOATS[5:]]),
    "b": st.booleans(),
}


@st.composite
def leaf(draw: st.DrawFn) -> Expression:
    kind = draw(
        st.sampled_from(["compare"] * 4 + ["in", "null", "starts", "struct", "opaque", "other"])
    )
    op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]))
    name = draw(st.sampled_from(sorted(VALUES)))
    column = Column((name,))
    values = st.one_of(VALUES[name], st.none()).map(Literal)
    match kind:
        case "compare":
            return Comparison(op, column, draw(values))
        case "in":
            return In(column, tuple(draw(st.lists(values, max_size=3))))
        case "null":
            return IsNull(column)
        case "starts":
            prefixes = ["", "a", "b", "a" * 32, "a" * 33, "\U0001f600"]
            return StartsWith(Column(("s",)), draw(st.sampled_from(prefixes)))
        case "struct":
            return Comparison(op, Column(("st", "a")), Literal(draw(st.integers(-1, 1))))
        case "opaque":
            return Opaque("anything")
    other = draw(st.sampled_from([Decimal("0.1"), 0.1, 2**40, Decimal("-1.5"), 2.0**53, 1]))
    names = ["n", "l", "c", "x", "f", "p"]
    return Comparison(op, Column((draw(st.sampled_from(names)),)), Literal(other))


TREES = st.recursive(
    leaf(),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: And(tuple(p))),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: Or(tuple(p))),
    ),
    max_leaves=5,
)
ROW = st.fixed_dictionaries(
    {
        **{name: st.one_of(st.none(), v) for name, v in VALUES.items() if name not in PARTITIONS},
        "st": st.one_of(
            st.none(), st.fixed_dictionaries({"a": st.one_of(st.none(), st.integers(-1, 1))})
        ),
    }
)
FILE = st.tuples(
    st.fixed_dictionaries({n: st.one_of(st.none(), VALUES[n]) for n in PARTITIONS}),
    st.lists(ROW, min_size=1, max_size=4),
    st.sampled_from(["whole", "whole", "whole", "none", "torn", "foreign", "micros"]),
)


def stats_text(rows: pa.Table, style: str) -> str | None:
    """Statistics as this project writes them, and as they may be found."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, store_schema=False)
    nans: dict[tuple[str, ...], int | None] = {
        (name,): rows[name].null_count
        for name in ("x", "f")
        if any(v is not None and math.isnan(v) for v in rows[name].to_pylist())
    }
    text = stats_from_footer(
        pq.read_metadata(sink), SCHEMA, partition_columns=PARTITIONS, indexed=StatsConfig(),
        nan_columns={} if style == "foreign" else nans,
    )  # fmt: skip
    match style:
        case "none":
            return None
        case "torn":
            return text[:-3]
        case "micros":
            # Other writers do not cut timestamps.
            found = orjson.loads(text)
            for name in ("t", "u"):
                known = [v for v in rows[name].to_pylist() if v is not None]
                if known and "minValues" in found:
                    found["minValues"][name] = min(known).isoformat()
                    found["maxValues"][name] = max(known).isoformat()
            return orjson.dumps(found).decode()
    return text


def without_opaque(expr: Expression) -> Expression:
    """The filter at its most lenient for a brute force check: opaque parts made true."""

    def lenient(part: Expression, truth: bool) -> Expression:
        match part:
            case And(parts):
                return And(tuple(lenient(p, truth) for p in parts))
            case Or(parts):
                return Or(tuple(lenient(p, truth) for p in parts))
            case Not(inner):
                return Not(lenient(inner, not truth))
            case Opaque():
                return Literal(truth)
        return part

    return lenient(expr, True)


@pytest.mark.parametrize("fast", [False, True])
@given(tree=TREES, files=st.lists(FILE, min_size=1, max_size=4))
@settings(deadline=None, max_examples=examples(48))
def test_no_file_with_a_matching_row_is_dropped(
    fast: bool, tree: Expression, files: list[Any]
) -> None:
    inside = StructType(tuple(f for f in SCHEMA if f.name not in PARTITIONS))
    whole = partition_schema_of(SCHEMA, PARTITIONS)
    bound = normalize_filter(tree, SCHEMA)
    assert bound is not None
    adds, matching = [], []
    for values, rows, style in files:
        stored = pa.Table.from_pylist(rows, schema=to_arrow_schema(inside))
        adds.append(
            AddFile(
                path="f", size=1, modification_time=1, data_change=True,
                partition_values={
                    f.name: serialize_value(values[f.name], f.data_type) for f in whole
                },
                stats=stats_text(stored, style),
            )
        )  # fmt: skip
        seen = pa.Table.from_pylist([{**values, **r} for r in rows], schema=to_arrow_schema(SCHEMA))
        matching.append(True in evaluate_mask(without_opaque(bound), seen, SCHEMA).to_pylist())
    threshold = stat_bounds._FAST_ROWS
    stat_bounds._FAST_ROWS = 1 if fast else threshold
    try:
        kept = keep_files(from_add_files(adds), bound, SCHEMA, PARTITIONS).to_pylist()
    finally:
        stat_bounds._FAST_ROWS = threshold
    assert all(k for k, m in zip(kept, matching, strict=True) if m)
    by_partition = matches_partitions(adds, bound, whole)
    assert all(k for k, m in zip(by_partition, matching, strict=True) if m)


def file(stats: Any = None, **values: str | None) -> AddFile:
    text = stats if isinstance(stats, str) or stats is None else orjson.dumps(stats).decode()
    return AddFile(
        path="f", size=1, modification_time=1, data_change=True, partition_values=values, stats=text
    )


def kept(sql: str, *files: AddFile) -> list[bool]:
    expr = normalize_filter(sql, SCHEMA)
    return list(keep_files(from_add_files(files), expr, SCHEMA, PARTITIONS).to_pylist())


def test_partition_values_prune_exactly() -> None:
    files = [file(p="1", q="2020-01-01"), file(p="2", q=None), file(p=None, q="")]
    assert kept("p = 1", *files) == [True, False, False]
    assert kept("NOT (p = 1)", *files) == [False, True, False]
    assert kept("q IS NULL", *files) == [False, True, True]
    assert kept("p = 1 OR q <=> NULL", *files) == [True, True, True]
    assert kept("p = 1 AND upper(s) = 'A'", *files) == [True, False, False]
    assert kept("p = 1 OR upper(s) = 'A'", *files) == [True] * 3
    assert kept("false", *files) == [False] * 3
    assert keep_files(from_add_files(files), None, SCHEMA, PARTITIONS).to_pylist() == [True] * 3


def test_a_partition_value_that_cannot_be_read_keeps_its_file() -> None:
    assert kept("p = 1", file(p="one", q=None), file(p="2", q=None)) == [True, False]
    assert kept("p IS NULL", file(p="one", q=None)) == [True]


def test_statistics_prune() -> None:
    low = {"numRecords": 9, "minValues": {"n": 1, "s": "a"}, "maxValues": {"n": 3, "s": "c"},
           "nullCount": {"n": 0, "s": 9}}  # fmt: skip
    high = {"numRecords": 9, "minValues": {"n": 5}, "maxValues": {"n": 5}, "nullCount": {"n": 1}}
    files = [file(low), file(high), file()]
    assert kept("n = 4", *files) == [False, False, True]
    assert kept("n > 3", *files) == [False, True, True]
    assert kept("n >= 3.5", *files) == [False, True, True]
    assert kept("n < 1.5", *files) == [True, False, True]
    assert kept("n != 5", *files) == [True, False, True]
    assert kept("n IN (2, 9)", *files) == [True, False, True]
    assert kept("n IS NULL", *files) == [False, True, True]
    assert kept("s = 'b'", *files) == [False, True, True]
    assert kept("s IS NOT NULL", *files) == [False, True, True]
    assert kept("NOT (n < 4 OR n > 4)", *files) == [False, False, True]


def test_prefixes_prune_by_the_bounds_of_strings() -> None:
    files = [file({"numRecords": 1, "minValues": {"s": "b"}, "maxValues": {"s": "d"}})]
    found = {
        p: kept(f"s LIKE '{p}%'", *files)[0] for p in ("a", "b", "ba", "c", "d", "da", "e", "")
    }
    assert found == {"a": False, "b": True, "ba": True, "c": True, "d": True, "da": False,
                     "e": False, "": True}  # fmt: skip


def test_nested_columns_prune() -> None:
    stats = {"numRecords": 2, "minValues": {"st": {"a": 1}}, "maxValues": {"st": {"a": 2}}}
    assert kept("st.a > 2", file(stats)) == [False]
    assert kept("st.a > 1", file(stats)) == [True]


def test_an_upper_bound_of_floats_says_nothing_of_nan() -> None:
    stats = {"numRecords": 2, "minValues": {"x": 1.0}, "maxValues": {"x": 2.0}}
    assert kept("x > 5", file(stats)) == [True]
    assert kept("x = double('NaN')", file(stats)) == [True]
    assert kept("x < 0.5", file(stats)) == [False]
    assert kept("x = 3", file(stats)) == [False]


def test_the_maximum_of_timestamps_covers_its_millisecond() -> None:
    stats = {"numRecords": 1, "minValues": {"t": "2020-01-01T00:00:00.000Z"},
             "maxValues": {"t": "2020-01-01T00:00:00.000Z"}}  # fmt: skip
    assert kept("t = '2020-01-01 00:00:00.000999'", file(stats)) == [True]
    assert kept("t = '2020-01-01 00:00:00.001'", file(stats)) == [False]
    assert kept("t < '2020-01-01'", file(stats)) == [False]


def test_wide_bounds_count_nulls_only_as_none_or_all() -> None:
    def wide(nulls: int) -> AddFile:
        return file({"numRecords": 4, "nullCount": {"n": nulls}, "tightBounds": False})

    assert kept("n IS NULL", wide(0), wide(2), wide(4)) == [False, True, True]
    assert kept("n = 1", wide(0), wide(2), wide(4)) == [True, True, False]


@pytest.mark.parametrize(
    "stats",
    [
        "",
        "{",
        "[]",
        '"x"',
        '{"numRecords":"many","minValues":7,"maxValues":[],"nullCount":null}',
        {"minValues": {"n": "5"}, "maxValues": {"n": "5"}},
        {"minValues": {"n": 5.5}, "maxValues": {"n": 5.5}},
        {"minValues": {"n": True}, "maxValues": {"n": True}},
        '{"minValues":{"n":1e40},"maxValues":{"n":1000000000000000000000000}}',
        {"minValues": {"d": "soon"}, "maxValues": {"d": 5}},
        {"minValues": {"t": "2020"}, "maxValues": {"t": {}}},
        {"minValues": {"x": "NaN"}, "maxValues": {"x": "NaN"}},
        {"minValues": {"e": "1"}, "maxValues": {"e": {}}},
        {"numRecords": -1, "nullCount": {"n": -1}},
        {"minValues": {"st": 5}},
    ],
)
@pytest.mark.parametrize("fast", [False, True])
def test_malformed_statistics_keep_their_file_and_spoil_no_other(
    stats: Any, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stat_bounds, "_FAST_ROWS", 1 if fast else 10**9)
    good = {"numRecords": 1, "minValues": {"n": 1}, "maxValues": {"n": 1}}
    files = [file(stats), file(good)]
    assert kept("n = 0", *files) == [True, False]
    for sql in ("d = '2020-01-01'", "t = '2020-01-01'", "x < 0", "e = 0", "st.a = 1", "n IS NULL"):
        assert kept(sql, *files)[0]


def test_decimals_that_passed_through_a_double_keep_their_file() -> None:
    value = "12345678901234567890.123"
    bound = '{"e":1.2345678901234567e19}'
    blurred = f'{{"numRecords":1,"minValues":{bound},"maxValues":{bound}}}'
    assert kept(f"e = {value}BD", file(blurred)) == [True]
    assert kept("e = 12345678901235BD", file(blurred)) == [False]


def test_many_files_are_judged_at_once_like_one_by_one() -> None:
    files = [
        file({"numRecords": 5, "minValues": {"l": i, "s": f"{i:05}", "t": "2020-01-01T00:00:00Z"},
              "maxValues": {"l": i + 1, "s": f"{i:05}z", "t": "2020-01-02T00:00:00Z"}},
             p=str(i % 3), q=None)
        for i in range(3000)
    ]  # fmt: skip
    assert sum(kept("l = 7 AND s >= '00006' AND t > '2019-01-01'", *files)) == 2
    assert sum(kept("p = 1 AND l = 7", *files)) == 1


def test_conflict_detection_looks_at_partition_values_alone() -> None:
    adds = [file(p="1", q=None), file(p="2", q=None)]
    schema = partition_schema_of(SCHEMA, PARTITIONS)

    def matches(sql: str) -> list[bool]:
        return matches_partitions(adds, normalize_filter(sql, SCHEMA), schema)

    assert matches("p = 1 AND n > 10") == [True, False]
    assert matches("p = 1 OR n > 10") == [True, True]
    assert matches("NOT (p = 1 OR n > 10)") == [False, True]
    assert matches("p = 1 AND rand() > 0.5") == [True, False]
    assert matches("NOT (p = 1 AND rand() > 0.5)") == [True, True]
    assert matches_partitions(adds, None, schema) == [True, True]
    assert matches_partitions([], None, schema) == []


def test_negation_includes_the_bound_itself() -> None:
    stats = {"numRecords": 1, "minValues": {"n": 1}, "maxValues": {"n": 3}}
    assert kept("NOT (n < 3)", file(stats)) == [True]
    assert kept("NOT (n > 1)", file(stats)) == [True]
    assert kept("NOT (n <= 3)", file(stats)) == [False]


def test_equal_bounds_exclude_inequality_only_where_bounds_are_exact() -> None:
    long = "a" * 32
    same = {"n": 1, "s": "a", "t": "2020-01-01T00:00:00.000Z", "x": 1.0}
    stats = file({"numRecords": 2, "minValues": same, "maxValues": same})
    assert kept("n != 1", stats) == [False]
    assert kept("s != 'a'", stats) == [False]
    assert kept("t != '2020-01-01'", stats) == [True]
    assert kept("x != 1", stats) == [True]
    cut = file({"numRecords": 2, "minValues": {"s": long}, "maxValues": {"s": long}})
    assert kept(f"s != '{long}'", cut) == [True]


@pytest.mark.parametrize("fast", [False, True])
def test_a_float_printed_short_is_the_float_not_the_double(
    fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stat_bounds, "_FAST_ROWS", 1 if fast else 10**9)
    stats = file({"numRecords": 1, "minValues": {"f": 0.1}, "maxValues": {"f": 0.1}})
    assert kept("f = 0.1F", stats) == [True]
    assert kept("f = 0.1", stats) == [False]


def test_a_large_table_is_asked_in_slices_and_answers_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds = [{"minValues": {"n": n}, "maxValues": {"n": n + 2}} for n in range(7)]
    files = [file({"numRecords": 1, **each}, p="1") for each in bounds]
    conditions = ("n > 4", "n = 99", "n IS NULL", "p = 1", "p = 2", "n < 4 OR p = 2")
    whole = [kept(each, *files) for each in conditions]
    assert any(True in each for each in whole)
    assert any(False in each for each in whole)
    monkeypatch.setattr(pruning, "_FILES_AT_ONCE", 3)
    assert [kept(each, *files) for each in conditions] == whole
