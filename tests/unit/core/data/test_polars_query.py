"""A LazyFrame over a scan gives what Polars gives for all rows, and reads less."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import Scan, delete_rows, scan, write_arrow
from lakelog.core.data.polars_query import pushed_condition
from support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

FIRST = dt.date(2024, 1, 1)


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
        }
        if at:
            write_arrow(uri, data, mode="append")
        else:
            write_arrow(uri, data, properties=properties)
    delete_rows(uri, "a = 1")
    return scan(uri)


COMPARED = st.one_of(
    st.tuples(st.just("a"), st.one_of(st.integers(-3, 30), st.sampled_from([1.5, 2.0]))),
    st.tuples(st.just("s"), st.sampled_from(["x0", "x2", "", "y"])),
    st.tuples(st.just("d"), st.dates(FIRST, dt.date(2024, 1, 6))),
    st.tuples(st.just("f"), st.sampled_from([0.0, -0.0, -1.5, float("nan"), float("inf")])),
)
OPERATORS = ["eq", "ne", "lt", "le", "gt", "ge"]


@st.composite
def conditions(draw: st.DrawFn) -> pl.Expr:
    kind = draw(st.sampled_from(["compared", "turned", "null", "other", "and", "or", "not"]))
    if kind in ("and", "or"):
        one, other = draw(conditions()), draw(conditions())
        return one & other if kind == "and" else one | other
    if kind == "not":
        return ~draw(conditions())
    name, value = draw(COMPARED)
    if kind == "null":
        return pl.col(name).is_null() if draw(st.booleans()) else pl.col(name).is_not_null()
    if kind == "other":
        return pl.col("s").is_in(["x0", "y"]) if draw(st.booleans()) else pl.col("a") % 2 == 0
    sides: tuple[Any, Any] = (pl.col(name), pl.lit(value))
    left, right = sides if kind == "compared" else sides[::-1]
    found: pl.Expr = getattr(left, draw(st.sampled_from(OPERATORS)))(right)
    return found


@settings(max_examples=examples(60), deadline=None)
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
    seen: list[Scan] = []
    narrowed = Scan.narrowed

    def noted(self: Scan, *args: Any) -> Scan:
        seen.append(found := narrowed(self, *args))
        return found

    monkeypatch.setattr(Scan, "narrowed", noted)
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
    assert pushed_condition(both | (pl.col("b") == "x")) is not None
    assert pushed_condition((pl.col("a") % 2 == 0) | (pl.col("b") == "x")) is None


def test_a_scan_with_a_limit_keeps_it_and_can_be_looped_over(rows: Scan) -> None:
    few = rows.limit(3)
    above = pl.col("a") > few.to_arrow()["a"].to_pylist()[0]
    assert few.to_polars(lazy=True).filter(above).collect().height == 2
    assert sum(batch.num_rows for batch in few) == 3
    assert [batch.num_columns for batch in few] == [4] * len(list(few))
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
