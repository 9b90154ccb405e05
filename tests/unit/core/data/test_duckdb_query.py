"""A relation of DuckDB over a scan gives what DuckDB gives for all rows, and reads less."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import Scan, delete_rows, scan, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from support.examples import examples
from support.narrowed_scans import narrowed_scans

if TYPE_CHECKING:
    from pathlib import Path

FIRST = dt.date(2024, 1, 1)
MOMENT = dt.datetime.fromisoformat("2024-01-01 12:00:00")
KINDS = {
    "a": pa.int64(),
    "i": pa.int8(),
    "s": pa.string(),
    "p": pa.string(),
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "f": pa.float64(),
    "g": pa.float32(),
    "m": pa.decimal128(5, 2),
    "b": pa.bool_(),
    "y": pa.binary(),
    "k": pa.struct([("x", pa.int32()), ("z", pa.float64())]),
}


def _data(at: int) -> pa.Table:
    days = [dt.timedelta(days=each + at) for each in range(5)]
    nan = float("nan")
    columns = {
        "a": [10 * at + each for each in range(5)],
        "i": [-1, 0, 1, None, 100 + at],
        "s": [f"x{each}" for each in range(4)] + [None],
        "p": [None, "q'", "", "x0", "x0"][at : at + 1] * 5,
        "d": [FIRST + each for each in days],
        "t": [MOMENT.replace(tzinfo=dt.UTC) + each for each in days],
        "n": [*[MOMENT + each for each in days[:4]], None],
        "f": [0.0, -1.5, nan, None, 10.0 * at],
        "g": [0.1, -0.0, nan, None, 1.5 * at],
        "m": [Decimal("0.10"), Decimal("1.5"), Decimal(-2), None, Decimal(at)],
        "b": [True, False, None, True, at == 1],
        "y": [b"", b"x0", b"\x00", None, b"a"],
        "k": [{"x": 1, "z": nan}, {"x": None, "z": 1.5}, None, {"x": at, "z": None}, {"x": 2}],
    }
    arrays = [pa.array(columns[name], kind) for name, kind in KINDS.items()]
    return pa.table(arrays, names=list(KINDS))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Scan:
    uri = str(tmp_path_factory.mktemp("asked") / "t")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    write_arrow(uri, _data(0), partition_by=["p"], properties=properties)
    for at in (1, 2, 3):
        write_arrow(uri, _data(at), mode="append")
    delete_rows(uri, "a IN (1, 12, 34)")
    return scan(uri)


@pytest.fixture(scope="module")
def ours_and_theirs(rows: Scan) -> Any:
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    whole = rows.to_arrow()
    assert whole.num_rows == 17
    connection.register("ours", rows.to_duckdb(connection))
    connection.register("given", whole)
    connection.sql("CREATE TABLE theirs AS SELECT * FROM given")
    return connection


VALUES = {
    "a": st.integers(-3, 40).map(str) | st.sampled_from(["1.5", "2.0"]),
    "i": st.sampled_from(["0", "1", "-1", "101", "1000", "1.5"]),
    "s": st.sampled_from(["'x0'", "'x2'", "''", "'y'"]),
    "p": st.sampled_from(["'x0'", "'q'''", "''", "'y'"]),
    "d": st.dates(FIRST, dt.date(2024, 1, 9)).map(lambda day: f"DATE '{day}'"),
    "t": st.sampled_from(["TIMESTAMPTZ '2024-01-02 12:00:00+00'", "DATE '2024-01-03'"]),
    "n": st.sampled_from(["TIMESTAMP '2024-01-02 12:00:00'", "DATE '2024-01-03'"]),
    "f": st.sampled_from(["0.0", "-0.0", "-1.5", "'nan'::DOUBLE", "'inf'::DOUBLE", "10"]),
    "g": st.sampled_from(["0.1", "0.1::FLOAT", "-0.0", "'nan'::FLOAT", "1.5", "0"]),
    "m": st.sampled_from(["0.1", "1.50", "-2", "0.1::DOUBLE", "1000"]),
    "b": st.sampled_from(["true", "false"]),
    "y": st.sampled_from(["''::BLOB", "'x0'::BLOB", "'a'::BLOB"]),
    "k.x": st.integers(0, 3).map(str),
    "k.z": st.sampled_from(["1.5", "'nan'::DOUBLE"]),
}


@st.composite
def conditions(draw: st.DrawFn) -> str:
    kind = draw(
        st.sampled_from(["compared"] * 3 + ["null", "in", "between", "other", "and", "or", "not"])
    )
    if kind in ("and", "or"):
        return f"({draw(conditions())} {kind.upper()} {draw(conditions())})"
    if kind == "not":
        return f"NOT ({draw(conditions())})"
    name = draw(st.sampled_from(list(VALUES)))
    if kind == "null":
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == "in":
        members = draw(st.lists(VALUES[name], min_size=1, max_size=3))
        return f"{name} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(members)})"
    if kind == "between":
        return f"{name} BETWEEN {draw(VALUES[name])} AND {draw(VALUES[name])}"
    if kind == "other":
        odd = ["s LIKE 'x%'", "a % 2 = 0", "s = p", "isnan(f)", "b", "k IS NULL", "a + i > 5"]
        return draw(st.sampled_from(odd))
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]))
    return f"{name} {operator} {draw(VALUES[name])}"


@settings(max_examples=examples(40), deadline=None)
@given(conditions(), st.sampled_from(["*", "a", "s, f", "p, k", "count(*)", "g, g", "max(m)"]))
def test_a_query_has_the_rows_that_it_has_of_all_in_memory(
    ours_and_theirs: Any, condition: str, columns: str
) -> None:
    def asked(table: str) -> list[str]:
        found = ours_and_theirs.sql(f"SELECT {columns} FROM {table} WHERE {condition}")
        return sorted(map(repr, found.fetchall()))

    assert asked("ours") == asked("theirs")


def test_columns_files_and_rows_that_are_not_asked_for_are_not_read(
    rows: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = narrowed_scans(monkeypatch)
    lazy = rows.to_duckdb()
    assert seen == []
    assert lazy.filter("f > 15 AND i IN (102, 103) AND m >= 1").project("s").fetchall() == [(None,)]
    (found,) = seen
    assert sorted(found.schema.names) == ["f", "i", "m", "s"]
    assert found.count() == 1
    assert lazy.filter("p = 'x0'").limit(2).fetchall()
    assert seen[1].count() == 4


def test_a_limit_and_the_scan_s_own_columns_and_condition_hold(rows: Scan) -> None:
    few = scan(rows._snapshot.table, ["s", "a"], "a > 0").limit(3).to_duckdb()
    assert few.columns == ["s", "a"]
    assert len(few.fetchall()) == 3
    first = sorted(row[1] for row in few.fetchall())
    assert sorted(few.filter(f"a > {first[0]}").project("a").fetchall()) == [
        (first[1],),
        (first[2],),
    ]


def test_a_duckdb_that_would_lose_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb, "__version__", "1.5.6")
    uri = str(tmp_path / "t")
    write_arrow(uri, {"n": [1, 2], "x": [1.5, float("nan")], "k": [{"y": 1.5}, None]})
    assert scan(uri, "n").to_duckdb().filter("n > 1").fetchall() == [(2,)]
    for column in ("x", "k"):
        with pytest.raises(DeltaAnalysisError, match=rf"whose {column} is NaN .* duckdb>=2"):
            scan(uri, ["n", column]).to_duckdb()
