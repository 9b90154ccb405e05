"""A LazyFrame over a scan gives what Polars gives for all rows, and reads less."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import Scan, delete_rows, scan, write_arrow
from lakelog.core.data.polars_query import pushed_condition
from support.examples import examples
from support.narrowed_scans import narrowed_scans

if TYPE_CHECKING:
    from pathlib import Path

FIRST = dt.date(2024, 1, 1)
START = dt.datetime.fromisoformat("2024-01-01 12:00:00")
DECIMAL, ZONED, NAIVE = pa.decimal128(5, 2), pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Scan:
    uri = str(tmp_path_factory.mktemp("lazy") / "t")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    for at in range(3):
        data = {
            "a": [10 * at + each for each in range(5)],
            "s": [f"x{each}" for each in range(4)] + [None],
            "d": [FIRST + dt.timedelta(days=each) for each in range(5)],
            "f": [0.0, -1.5, float("nan"), None, 10.0 * at],
            "g": pa.array([0.1, -0.0, float("nan"), None, 1.5 * at], pa.float32()),
            "m": pa.array([Decimal("0.10"), Decimal(2), None, Decimal(at), None], DECIMAL),
            "i": pa.array([-1, 0, None, 100 + at, 1], pa.int8()),
            "t": pa.array([START + dt.timedelta(hours=each + at) for each in range(5)], ZONED),
            "n": pa.array([START + dt.timedelta(hours=each + at) for each in range(5)], NAIVE),
            "b": [True, False, None, True, at == 1],
        }
        if at:
            write_arrow(uri, pa.table(data), mode="append")
        else:
            write_arrow(uri, pa.table(data), properties=properties)
    delete_rows(uri, "a = 1")
    return scan(uri)


def _moment(zone: str | None) -> Any:
    """A time so many hours after the first, in one of Polars' units."""

    def made(hours: int) -> pl.Expr:
        unit: Any = ["ms", "us", "ns"][hours % 3]
        moment = START + dt.timedelta(hours=hours)
        return pl.lit(moment).cast(pl.Datetime(unit)).dt.replace_time_zone(zone)

    return made


COMPARED = st.one_of(
    st.tuples(st.just("a"), st.one_of(st.integers(-3, 30), st.sampled_from([1.5, 2.0]))),
    st.tuples(st.just("s"), st.sampled_from(["x0", "x2", "", "y"])),
    st.tuples(st.just("d"), st.dates(FIRST, dt.date(2024, 1, 6))),
    st.tuples(st.just("f"), st.sampled_from([0.0, -0.0, -1.5, float("nan"), float("inf"), 2])),
    st.tuples(st.just("g"), st.sampled_from([0.1, -0.0, 1.5, float("nan"), 3])),
    st.tuples(st.just("m"), st.sampled_from([Decimal("0.1"), Decimal("0.105"), 2, 0.1])),
    st.tuples(st.just("i"), st.sampled_from([0, 1, 101, 300, 1.5, -129])),
    st.tuples(st.just("t"), st.integers(0, 6).map(_moment("UTC"))),
    st.tuples(st.just("n"), st.integers(0, 6).map(_moment(None))),
    st.tuples(st.just("b"), st.booleans()),
)


def _literal(value: Any) -> pl.Expr:
    return value if isinstance(value, pl.Expr) else pl.lit(value)


OPERATORS = ["eq", "ne", "lt", "le", "gt", "ge"]


@st.composite
def conditions(draw: st.DrawFn) -> pl.Expr:
    kind = draw(
        st.sampled_from(["compared", "turned", "null", "between", "other", "and", "or", "not"])
    )
    if kind in ("and", "or"):
        one, other = draw(conditions()), draw(conditions())
        return one & other if kind == "and" else one | other
    if kind == "not":
        return ~draw(conditions())
    name, value = draw(COMPARED)
    if kind == "null":
        return pl.col(name).is_null() if draw(st.booleans()) else pl.col(name).is_not_null()
    if kind == "other":
        odd = [
            pl.col("s").is_in(["x0", "y"]),
            pl.col("a") % 2 == 0,
            pl.col("b"),
            pl.col("f").is_nan(),
        ]
        return draw(st.sampled_from([*odd, pl.col("a").eq_missing(1), pl.col("i") < pl.col("a")]))
    if kind == "between" and name != "b":
        other = draw(COMPARED.filter(lambda each: each[0] == name))[1]
        closed: Any = draw(st.sampled_from(["both", "left", "right", "none"]))
        return pl.col(name).is_between(_literal(value), _literal(other), closed=closed)
    sides: tuple[Any, Any] = (pl.col(name), _literal(value))
    left, right = sides if kind == "compared" else sides[::-1]
    found: pl.Expr = getattr(left, draw(st.sampled_from(OPERATORS)))(right)
    return found


@settings(max_examples=examples(24), deadline=None)
@given(conditions(), st.sampled_from([None, ["a"], ["s", "f"]]), st.sampled_from([None, 0, 2]))
def test_a_query_has_the_rows_that_it_has_of_all_in_memory(
    rows: Scan, condition: pl.Expr, columns: list[str] | None, most: int | None
) -> None:
    def asked(frame: pl.LazyFrame) -> pl.DataFrame:
        found = frame.filter(condition)
        found = found if columns is None else found.select(columns)
        return (found if most is None else found.head(most)).collect()

    assert asked(rows.to_polars(lazy=True)).equals(asked(rows.to_polars().lazy()))


def test_columns_files_and_rows_that_are_not_asked_for_are_not_read(
    rows: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = narrowed_scans(monkeypatch)
    lazy = rows.to_polars(lazy=True)
    assert seen == []
    assert lazy.filter((pl.col("a") >= 20) & (pl.col("a") % 2 == 0)).select("a").collect().height
    (found,) = seen
    assert found.schema.names == ["a"]
    assert found.count() == 5
    assert lazy.select(pl.len()).collect().item() == 14
    assert rows.head().num_rows == 5


def _uri(rows: Scan) -> str:
    return rows._snapshot.table


def test_what_is_not_understood_is_left_to_polars() -> None:
    for odd in (None, pl.col("a").is_in([1]), pl.col("a") + 1 > 2, pl.col("b"), object()):
        assert pushed_condition(odd) is None
    both = (pl.col("a") > 1) & (pl.col("a") % 2 == 0)
    assert pushed_condition(both) == pushed_condition(pl.col("a") > 1) is not None
    for odd in (pl.col("a").is_in([1]), pl.col("s").str.len_bytes() > 1, pl.col("g") == 0.1):
        assert pushed_condition((pl.col("a") > 1) & odd, {"g"}) == pushed_condition(both)
        assert pushed_condition((pl.col("a") > 1) | odd, {"g"}) is None
    assert pushed_condition(both | (pl.col("b") == "x")) is not None
    assert pushed_condition((pl.col("a") % 2 == 0) | (pl.col("b") == "x")) is None


def test_times_and_ranges_leave_out_files(rows: Scan) -> None:
    zoned = START.replace(tzinfo=dt.UTC)
    for column, start in (("t", zoned), ("n", START)):
        after = pl.col(column) > start + dt.timedelta(hours=5)
        inside = pl.col("a").is_between(21, 23, closed="left")
        for condition in (after, inside):
            pushed = pushed_condition(condition, {"g"})
            assert pushed is not None
            assert rows.narrowed(["a"], pushed).count() == rows.to_polars().filter(condition).height
    for nanos in (1, 1000):
        pushed = pushed_condition(pl.col("n") > pl.lit(nanos, pl.Datetime("ns")))
        assert (pushed is None) == (nanos == 1)


def test_a_scan_with_a_limit_keeps_it_and_can_be_looped_over(rows: Scan) -> None:
    few = rows.limit(3)
    above = pl.col("a") > few.to_arrow()["a"].to_pylist()[0]
    assert few.to_polars(lazy=True).filter(above).collect().height == 2
    assert sum(batch.num_rows for batch in few) == 3
    assert [batch.num_columns for batch in few] == [10] * len(list(few))
    assert scan(_uri(rows), where="isnan(f)").count() == 3


@pytest.mark.parametrize("kind", [pa.float32(), pa.decimal128(5, 2)])
def test_a_value_that_polars_rounds_to_the_type_of_a_column_leaves_out_no_row(
    tmp_path: Path, kind: Any
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.table({"v": pa.array([0.1, 0.25, None]).cast(kind, safe=False)}))
    for condition in (pl.col("v") == 0.1, pl.col("v") <= 0.1):
        whole = scan(uri).to_polars().filter(condition)
        assert whole.height == 1
        assert scan(uri).to_polars(lazy=True).filter(condition).collect().equals(whole)
