"""Columns of nulls that nobody gave a type: kept as void, and no row is ever lost for them."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, delete_rows, update_rows, write_arrow
from lakelog.core.alter import add_columns
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError, SchemaMismatchError
from lakelog.core.expressions.tree import Column, Comparison
from lakelog.core.schema.column_paths import walk
from support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.schema import StructType

ROWS = 3
VOID = pa.nulls(ROWS)
TYPED: dict[str, Any] = {
    "a": pa.array([1, 2, 3]),
    "b": pa.array(["x", None, "z"]),
    "s": pa.array([{"k": 1, "v": "t"}, None, {"k": 3, "v": None}]),
}
HALF = pa.array([{"k": 1, "v": None}, None, {"k": 3, "v": None}])
HOLLOW = pa.array([{"v": None}, None, {"v": None}])
FORMS: dict[str, list[Any]] = {
    "a": [TYPED["a"], VOID],
    "b": [TYPED["b"], VOID],
    "s": [TYPED["s"], HALF, HOLLOW, VOID],
}
WAYS: list[dict[str, Any]] = [
    {},
    {"mode": "overwrite"},
    {"schema_mode": "merge"},
    {"mode": "overwrite", "schema_mode": "merge"},
    {"mode": "overwrite", "schema_mode": "overwrite"},
]

drawn = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(forms) for name, forms in FORMS.items()}
)


def table(columns: dict[str, Any]) -> pa.Table:
    if columns:
        return pa.table(columns)
    rows = pa.array([{}] * ROWS, pa.struct([]))
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])


def paths(schema: StructType) -> set[tuple[str, ...]]:
    return {path for path, _ in walk(schema)}


@settings(max_examples=examples(24), deadline=None)
@given(drawn, drawn, st.sampled_from(WAYS))
def test_what_is_committed_has_every_row_and_every_column(
    first: dict[str, Any], second: dict[str, Any], way: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri, rows = f"{folder}/t", 0
        for columns, how in ((first, {}), (second, way)):
            data = table(columns)
            try:
                version = write_arrow(uri, data, **{"mode": "append", **how})
            except DeltaAnalysisError:
                if not rows:
                    return
                continue
            rows = ROWS + (rows if how.get("mode") != "overwrite" else 0)
            snapshot = DeltaLog.for_table(uri).snapshot
            assert snapshot.version == version
            assert snapshot.to_arrow().num_rows == rows
            assert paths(snapshot.schema) >= paths(from_arrow_schema(data.schema))


BASE = pa.table({"a": TYPED["a"], "b": TYPED["b"]})


@pytest.mark.parametrize("data", [table({}), table({"x": VOID}), BASE.select([])], ids=range(3))
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("exists", [False, True])
def test_data_of_which_no_file_could_hold_a_row_is_refused(
    tmp_path: Path, data: pa.Table, way: dict[str, Any], exists: bool
) -> None:
    uri = str(tmp_path / "t")
    if exists:
        write_arrow(uri, BASE, mode="append")
    with pytest.raises(DeltaAnalysisError, match=r"no columns|void|not in the table"):
        write_arrow(uri, data, **{"mode": "append", **way})
    if exists:
        assert DeltaLog.for_table(uri).snapshot.to_arrow() == BASE
    else:
        assert not (tmp_path / "t").exists()


def test_an_untyped_column_of_a_new_table_is_void_until_it_gets_a_type(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    untyped = pa.table({"a": TYPED["a"], "x": VOID, "s": HALF})
    write_arrow(uri, untyped, mode="append")
    assert str(DeltaLog.for_table(uri).snapshot.schema) == (
        "struct<a:bigint,x:void,s:struct<k:bigint,v:void>>"
    )
    write_arrow(uri, untyped, mode="append")
    update_rows(uri, {"a": "a + 10"}, "a = 1")
    delete_rows(uri, "a = 2")
    typed = pa.table({"a": [7], "x": ["t"], "s": [{"k": 1, "v": 1.5}]})
    with pytest.raises(SchemaMismatchError, match=r"x +void +string +<- types differ"):
        write_arrow(uri, typed, mode="append")
    write_arrow(uri, typed, schema_mode="merge", mode="append")
    rows = DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist()
    assert sorted((row["a"], row["x"]) for row in rows) == [
        (3, None),
        (3, None),
        (7, "t"),
        (11, None),
        (11, None),
    ]
    assert {"k": 1, "v": 1.5} in [row["s"] for row in rows]


@pytest.mark.parametrize("kind", ["void", "variant"])
@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">=", "<=>"])
def test_columns_without_an_order_are_not_compared(tmp_path: Path, kind: str, op: str) -> None:
    path = str(tmp_path)
    write_arrow(
        path,
        pa.table({"id": [1], "n": pa.nulls(1)}) if kind == "void" else pa.table({"id": [1]}),
        mode="append",
    )
    if kind == "variant":
        add_columns(path, {"n": "variant"})
    snapshot = DeltaLog.for_table(path).snapshot
    for each in (f"n {op} n", Comparison(op, Column(("n",)), Column(("n",)))):
        with pytest.raises(InvalidPredicateError):
            snapshot.to_arrow(where=each)
    assert snapshot.to_arrow(where="n IS NULL").num_rows == 1


def test_an_untyped_column_that_the_table_lacks_is_reported_like_any_other(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, BASE, mode="append")
    with pytest.raises(SchemaMismatchError, match=r"x +- +void +<- not in the table"):
        write_arrow(uri, BASE.append_column("x", VOID), mode="append")
    write_arrow(uri, BASE.append_column("x", VOID), schema_mode="merge", mode="append")
    assert str(DeltaLog.for_table(uri).snapshot.schema) == "struct<a:bigint,b:string,x:void>"
