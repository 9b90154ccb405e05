"""Simple conditions of pyarrow become ours, and mean what pyarrow means by them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, scan, write_arrow
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.arrow.shown import plain_condition
from lakelog.core.expressions.filter import normalize_filter
from support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

DAY = dt.date(2026, 1, 2)
ZONED = dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)
MOMENT = ZONED.replace(tzinfo=None)
DECIMAL = pa.decimal128(5, 2)
ROWS = pa.table(
    {
        "n": pa.array([1, 2, None, -3, 9], pa.int32()),
        "s": ["a", None, 'q"x\\', "and", "1"],
        "day": [DAY, None, dt.date(1, 1, 1), DAY, dt.date(9999, 12, 31)],
        "t": pa.array([ZONED, None, ZONED, None, ZONED], pa.timestamp("us", "UTC")),
        "u": pa.array([MOMENT, None, MOMENT, None, MOMENT], pa.timestamp("us")),
        "x": [1.0, float("nan"), None, -1.5, 2.0],
        "y": pa.array([0.1, float("nan"), None, -0.0, 2.0], pa.float32()),
        "m": pa.array([Decimal("1.50"), None, Decimal(0), Decimal("-1.50"), Decimal(9)], DECIMAL),
        "b": [b"a", b"1", None, b"", b"6162"],
        "(n > 1)": [True, False, None, True, False],
        "and": [1, 2, 3, 4, 5],
    }
)
SCHEMA = from_arrow_schema(ROWS.schema)
n, s, day = pc.field("n"), pc.field("s"), pc.field("day")
if_else: Any = vars(pc)["if_else"]  # not known to type checkers
OPERATORS = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]


@st.composite
def parts(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(["n", "s", "day", "t", "u", "x", "y", "m", "and"]))
    column, values = pc.field(name), [v for v in ROWS[name].to_pylist() if v is not None]
    kind = ROWS.schema.field(name).type
    in_types = draw(st.booleans()) or name == "m"  # DuckDB gives values so
    match draw(st.integers(0, 4)):
        case 0:
            return column.is_null()
        case 1:
            return column.is_valid()
        case 2 | 3 as which:
            members = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
            found = column.isin(pa.array(members, kind) if in_types else members)
            if which == 2:
                return found
            return if_else(column.is_valid(), found, pa.scalar(None, pa.bool_()))
    value = draw(st.sampled_from(values))
    given = pa.scalar(value, kind) if in_types else value
    return getattr(column, draw(st.sampled_from(OPERATORS)))(given)


CONDITIONS = st.recursive(
    parts(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=4,
)


@settings(max_examples=examples(40), deadline=None)
@given(CONDITIONS)
def test_a_condition_has_the_rows_that_pyarrow_gives_it(condition: Any) -> None:
    _compare(condition)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_to_pyarrow_no_number_is_greater_than_nan(name: str, operator: str) -> None:
    for value in (1.0, -0.0, float("nan"), float("inf")):
        for each in (value, pa.scalar(value, ROWS.schema.field(name).type)):
            condition = getattr(pc.field(name), operator)(each)
            _compare(condition)
            _compare(~condition)


def _compare(condition: Any) -> None:
    plain = plain_condition(condition, SCHEMA)
    found = normalize_filter(plain if plain is not None else condition, SCHEMA)
    assert found is not None
    rows = ROWS.filter(evaluate_mask(found, ROWS, SCHEMA))
    expected = ds.dataset(ROWS).to_table(filter=condition)
    assert repr(rows.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize(
    "condition",
    [
        n > 1,
        (n > 1) & (s == "a"),
        ((n >= -3) | ~(s != "1")) & day.is_valid(),
        day == DAY,
        pc.field("t") < ZONED,
        pc.field("u") < MOMENT,
        n.isin([1, 2]),
        n == pa.scalar(1, pa.int32()),
        ~(n.isin(pa.array([1, 2], pa.int32())) | (n > pa.scalar(5, pa.int32()))),
        if_else(n.is_valid(), n.isin(pa.array([1], pa.int32())), pa.scalar(None, pa.bool_())),
        day.isin([DAY]),
        day.is_null(),
        pc.field("x") > 1.5,
        pc.field("x") != -1e300,
        pc.field("y") <= pa.scalar(0.1, pa.float32()),
        pc.field("m") >= pa.scalar(Decimal("1.50"), pa.decimal128(5, 2)),
        reduce(lambda left, right: left & right, [n != each for each in range(20)]),
    ],
    ids=str,
)
def test_what_is_converted(condition: Any) -> None:
    assert plain_condition(condition, SCHEMA) is not None


@pytest.mark.parametrize(
    "condition",
    [
        s == 'q"x\\',
        s == b"a",
        pc.field("b") == b"1",
        pc.field("x") > float("nan"),
        pc.field("x") > 1,
        pc.field("x").isin([1.5]),
        pc.field("x").is_null(nan_is_null=True),
        pc.field("(n > 1)"),
        n + 1 > 2,
        n > pc.field("and"),
        n.isin([1, None]),
        n == pa.scalar(None, pa.int32()),
        pc.field("N") > 1,
        n.isin(list(range(500))),
        reduce(lambda left, right: left & right, [n != each for each in range(200)]),
    ],
    ids=range(15),
)
def test_what_is_left_as_it_is(condition: Any) -> None:
    assert plain_condition(condition, SCHEMA) is None


def test_files_are_skipped_by_a_condition_of_pyarrow(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for start in (0, 10):
        write_arrow(uri, {"n": [start, start + 1], "p": [start] * 2}, mode="append")
    first, _ = sorted(
        DeltaLog.for_table(uri).snapshot.files(), key=lambda each: each.modification_time
    )
    (tmp_path / "t" / first.path).unlink()
    found = scan(uri, where=(pc.field("n") > 5) & (pc.field("p") == 10))
    assert found.to_arrow()["n"].to_pylist() == [10, 11]
    assert repr(found).endswith("where n > 5 AND p = 10)")
    assert found.count() == 2
