"""No reader loses a row by the statistics that we write, whatever the type and the value."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, QueryBuilder

from lakelog.core import DeltaLog
from lakelog.core.dml.arrow_write import write_arrow
from support.bounded_values import EDGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Check = tuple[str, Any]
"""A comparison, and the value that it is with."""

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda left, right: left == right,
    ">=": lambda left, right: left >= right,
    "<=": lambda left, right: left <= right,
}


def files(kind: str) -> list[pa.Table]:
    """One table a file: the column `v` beside one that has bounds whatever is in `v`."""
    arrow, contents = EDGES[kind]
    tables, number = [], 0
    for values in contents:
        ids = pa.array(range(number, number + len(values)), pa.int64())
        number += len(values)
        tables.append(pa.table({"v": pa.array(values, arrow), "id": ids}))
    return tables


def checks(kind: str) -> Iterator[Check]:
    values = [value for each in EDGES[kind][1] for value in each]
    yield from (("null", None), ("not null", None))
    for value in {repr(value): value for value in values if value is not None}.values():
        yield from ((operator, value) for operator in OPERATORS)


def expected(kind: str, check: Check) -> set[int]:
    """The ids of the rows that surely match. Of NaN readers think differently: none are expected
    but by Spark's tests."""
    operator, wanted = check
    values = [value for each in EDGES[kind][1] for value in each]
    if operator == "null":
        return {i for i, value in enumerate(values) if value is None}
    if operator == "not null":
        return {i for i, value in enumerate(values) if value is not None}
    compare = OPERATORS[operator]
    return {i for i, value in enumerate(values) if value is not None and compare(value, wanted)}


def expression(kind: str, check: Check) -> Any:
    operator, value = check
    column = ds.field("v")
    if operator in ("null", "not null"):
        return column.is_null() if operator == "null" else column.is_valid()
    return OPERATORS[operator](column, pa.scalar(value, EDGES[kind][0]))


def sql(kind: str, check: Check, dialect: str) -> str:
    operator, value = check
    if operator in ("null", "not null"):
        return f"v IS {operator}"
    return f"v {operator} {literal(kind, value, dialect)}"


def literal(kind: str, value: Any, dialect: str) -> str:
    if kind == "binary":
        return f"X'{value.hex()}'" if dialect != "duckdb" else f"unhex('{value.hex()}')"
    text = format(value, "f") if kind.startswith("decimal") else str(value).replace("'", "''")
    if kind.startswith("timestamp"):
        text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
        plain = kind.endswith("ntz")
        if dialect == "deltalake":
            zone = "None" if plain else 'Some("UTC")'
            return f"arrow_cast('{text}', 'Timestamp(Microsecond, {zone})')"
        suffix = "" if plain else "+00"
        name = kind if dialect == "spark" else "TIMESTAMP" + (not plain) * " WITH TIME ZONE"
        return f"CAST('{text}{suffix}' AS {name})"
    names = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
    names |= {"string": "VARCHAR" if dialect != "spark" else "STRING"}
    if dialect == "deltalake" and kind in ("float", "double"):
        return f"arrow_cast('{value!r}', 'Float{32 if kind == 'float' else 64}')"
    return f"CAST('{text}' AS {names.get(kind, kind)})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the tables, each of which all readers read."""
    return tmp_path_factory.mktemp("bounds")


@pytest.fixture(params=["commits", "checkpoint", "both", "parsed"])
def table(request: pytest.FixtureRequest, folder: Path) -> Callable[[str], str]:
    """Makes a table of a type; its statistics lie in commits or in a checkpoint's columns."""

    def make(kind: str) -> str:
        form = request.param
        path = str(folder / f"{[*EDGES].index(kind)}-{form}")
        if Path(path).exists():
            return path
        if form == "parsed" and kind == "boolean":
            form = "both"  # Out of the struct alone deltalake reads none, whoever wrote it.
        properties = {
            "delta.checkpoint.writeStatsAsJson": str(form != "parsed").lower(),
            "delta.checkpoint.writeStatsAsStruct": str(form in ("both", "parsed")).lower(),
        }
        first, *rest = files(kind)
        write_arrow(path, first, properties=properties, mode="append")
        for each in rest:
            write_arrow(path, each, mode="append")
        if form != "commits":
            DeltaLog.for_table(path).checkpoint()
        return path

    return make


@pytest.mark.one_day_in(2)
@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("kind", EDGES)
def test_deltalakes_readers_find_every_row(kind: str, table: Callable[[str], str]) -> None:
    found = DeltaTable(table(kind))
    dataset = found.to_pyarrow_dataset()
    session = QueryBuilder().register("t", found)
    for check in checks(kind):
        wanted = expected(kind, check)
        rows = dataset.to_table(filter=expression(kind, check))
        assert wanted <= set(rows["id"].to_pylist()), ("pyarrow", check)
        if kind != "binary":
            text = f"SELECT id FROM t WHERE {sql(kind, check, 'deltalake')}"
            rows = pa.table(session.execute(text).read_all())
            assert wanted <= set(rows["id"].to_pylist()), ("SQL", check)


@pytest.mark.one_day_in(2)
@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("kind", EDGES)
def test_duckdb_finds_every_row(kind: str, table: Callable[[str], str]) -> None:
    duckdb = pytest.importorskip("duckdb")
    session = duckdb.connect()
    session.execute("SET TimeZone = 'UTC'")
    session.register("t", DeltaTable(table(kind)).to_pyarrow_dataset())
    for check in checks(kind):
        text = f"SELECT id FROM t WHERE {sql(kind, check, 'duckdb')}"
        rows = session.execute(text).fetchall()
        assert expected(kind, check) <= {each[0] for each in rows}, check


@pytest.mark.one_day_in(2)
@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("kind", EDGES)
def test_polars_finds_every_row(kind: str, table: Callable[[str], str]) -> None:
    polars = pytest.importorskip("polars")
    path = table(kind)
    for check in checks(kind):
        operator, value = check
        column = polars.col("v")
        if operator in ("null", "not null"):
            wanted = column.is_null() if operator == "null" else column.is_not_null()
        else:
            wanted = OPERATORS[operator](column, polars.lit(value))
        rows = polars.scan_delta(path).filter(wanted).collect()
        assert expected(kind, check) <= set(rows["id"].to_list()), check


@pytest.mark.xdist_group("bounds")
@pytest.mark.parametrize("kind", EDGES)
def test_we_find_every_row(kind: str, table: Callable[[str], str]) -> None:
    snapshot = DeltaLog.for_table(table(kind)).snapshot
    for check in checks(kind):
        operator, value = check
        if operator in OPERATORS and not (isinstance(value, float) and math.isnan(value)):
            rows = snapshot.to_arrow(where=[("v", operator, value)])
            assert expected(kind, check) <= set(rows["id"].to_pylist()), check


def test_delta_spark_finds_every_row(delta_spark: Any, tmp_path: Path) -> None:
    """NaN included, which for Spark equals itself and is greater than every number."""
    for kind in ("boolean", "float", "double", "date", "timestamp", "string"):
        path = str(tmp_path / kind)
        for each in files(kind):
            write_arrow(path, each, mode="append")
        asked = [each for each in checks(kind) if each[0] == "="]
        texts = [
            f"SELECT {i} AS asked, id FROM delta.`{path}` WHERE {sql(kind, each, 'spark')}"
            for i, each in enumerate(asked)
        ]
        found = {(row["asked"], row["id"]) for row in delta_spark.sql(" UNION ALL ".join(texts))}
        values = [value for each in EDGES[kind][1] for value in each]
        nans = {i for i, value in enumerate(values) if value is not None and value != value}
        for i, (_, value) in enumerate(asked):
            wanted = nans if value != value else expected(kind, ("=", value))
            assert wanted <= {row for number, row in found if number == i}, (kind, value)
