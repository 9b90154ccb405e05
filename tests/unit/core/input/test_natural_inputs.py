"""What is natural to give is taken, what is not is refused in words, never with a raw error."""

from __future__ import annotations

import contextlib
import datetime as dt
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import (
    DeltaLog,
    appender,
    convert_to_delta,
    create_table,
    delete_rows,
    read_arrow,
    update_rows,
    write_arrow,
)
from lakelog.core.alter import add_columns, change_column, set_properties
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError, DeltaError
from lakelog.core.input.given_rows import arrow_table
from lakelog.core.input.given_types import schema_from, type_from
from lakelog.core.schema import (
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
)
from lakelog.core.schema.char_varchar import MARK
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Exported:
    """What another library has of Arrow."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __arrow_c_schema__(self) -> object:
        return self._own.__arrow_c_schema__()


LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
SCHEMA = StructType((StructField("id", LONG), StructField("s", TEXT)))
SAME: dict[str, Any] = {
    "ours": SCHEMA,
    "Arrow's": pa.schema([("id", pa.int64()), ("s", pa.string())]),
    "names and SQL": {"id": "bigint", "s": "STRING"},
    "names and the log's": {"id": "long", "s": "string"},
    "names and Arrow": {"id": pa.int64(), "s": pa.large_string()},
    "another library's": Exported(pa.schema([("id", pa.int64()), ("s", pa.string())])),
    "another library's fields": [
        Exported(pa.field("id", pa.int64())),
        Exported(pa.field("s", pa.string())),
    ],
    "names and another library's": {"id": Exported(pa.int64()), "s": Exported(pa.string())},
    "names and ours": {"id": LONG, "s": TEXT},
    "SQL": "id BIGINT, s string",
    "fields": [StructField("id", LONG), pa.field("s", pa.string())],
    "fields with text": [StructField("id", "bigint"), StructField("s", "string")],  # type: ignore[arg-type]
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    write_arrow(path, pa.table({"id": [1, 2], "s": ["x", "y"]}), mode="append")
    return path


@pytest.mark.parametrize("kind", ["bigint", pa.int64(), LONG], ids=["SQL", "Arrow", "ours"])
@pytest.mark.parametrize("whole", [True, False])
def test_columns_that_fill_themselves_take_any_form_of_type(
    kind: Any, whole: bool, tmp_path: Path
) -> None:
    fields = (
        StructField("id", LONG),
        generated_column("g", kind, "id * 2"),
        column_with_default("d", kind, "7"),
    )
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    uri = str(tmp_path / "t")
    create_table(uri, StructType(fields) if whole else fields, properties=properties)
    write_arrow(uri, {"id": [1]}, mode="append")
    assert read_arrow(uri).to_pylist() == [{"id": 1, "g": 2, "d": 7}]
    assert {each.data_type for each in DeltaLog.for_table(uri).snapshot.schema} == {LONG}


@pytest.mark.parametrize("given", SAME.values(), ids=SAME)
def test_a_schema_is_taken_in_every_form_at_every_door(given: Any, tmp_path: Path) -> None:
    made = str(tmp_path / "made")
    create_table(made, given)
    assert DeltaLog.for_table(made).snapshot.schema == SCHEMA
    grown = str(tmp_path / "grown")
    create_table(grown, {"first": "int"})
    add_columns(grown, given)
    assert DeltaLog.for_table(grown).snapshot.schema.fields[1:] == SCHEMA.fields
    folder = tmp_path / "id=1" / "s=x"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"v": [1]}), folder / "a.parquet")
    for each in (made, grown):
        (tmp_path / each.rpartition("/")[2]).rename(tmp_path / ("_" + each.rpartition("/")[2]))
    convert_to_delta(str(tmp_path), given)
    assert DeltaLog.for_table(str(tmp_path)).snapshot.partition_columns == ["id", "s"]


def test_an_arrow_type_alone_is_no_schema() -> None:
    for kind in (pa.int64(), pa.field("id", pa.int64()), Exported(pa.int64())):
        with pytest.raises(DeltaAnalysisError, match="the schema must be a StructType"):
            schema_from(kind)


@pytest.mark.parametrize(
    "text",
    [
        *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string"),
        *("binary", "date", "timestamp", "timestamp_ntz", "variant", "void", "decimal(9,2)"),
        *("array<int>", "map<string,array<decimal(38,0)>>", "struct<a:int,b:struct<c:date>>"),
    ],
)
def test_a_type_is_read_as_it_is_shown(text: str) -> None:
    kind = type_from(text)
    assert str(kind) == text
    assert type_from(text.upper()) == kind or text.startswith("struct")


def test_columns_of_text_have_not_null_and_comments() -> None:
    found = schema_from("`a b` int NOT NULL, s struct<x: bigint COMMENT 'in'> COMMENT 'out'")
    assert [each.nullable for each in found] == [False, True]
    assert found.fields[1].metadata == {"comment": "out"}
    inner = found.fields[1].data_type
    assert isinstance(inner, StructType)
    assert inner.fields[0].metadata == {"comment": "in"}


ROWS: dict[str, Any] = {
    "columns": {"id": [3], "s": ["z"]},
    "rows": [{"id": 3, "s": "z"}],
    "pandas": pd.DataFrame({"id": [3], "s": ["z"]}, index=[7]),
    "record batch": pa.record_batch({"id": [3], "s": ["z"]}),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_are_taken_in_every_form(rows: Any, table: str) -> None:
    write_arrow(table, rows, mode="append")
    found = DeltaLog.for_table(table).snapshot.to_arrow(where=("id", "=", 3))
    assert found.to_pylist() == [{"id": 3, "s": "z"}]


@settings(max_examples=examples(24), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)), min_size=1))
def test_a_list_of_dicts_has_the_keys_of_all(rows: list[dict[str, int]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    found = arrow_table(rows)
    assert found.column_names == names
    assert not names or found.to_pylist() == [{n: row.get(n) for n in names} for row in rows]


EVEN, NANOS = (pd.Timestamp(f"2020-01-01 00:00:00.123456{each}") for each in ("", "789"))
IN_ROWS: dict[str, Callable[[Any], Any]] = {
    "columns": lambda value: {"t": [value]},
    "rows": lambda value: [{"id": 1}, {"t": value}],
    "deep": lambda value: [{"t": [{"a": (value,)}]}],
    "series": lambda value: {"t": pd.Series([value], dtype=object)},
    "frame": lambda value: pd.DataFrame({"t": pd.Series([value], dtype=object)}),
}


@pytest.mark.parametrize("form", IN_ROWS.values(), ids=IN_ROWS)
def test_nanoseconds_of_rows_are_refused(form: Callable[[Any], Any]) -> None:
    assert "123456" in str(arrow_table(form(EVEN)).to_pylist())
    with pytest.raises(DeltaError, match=r"column t: .*has nanoseconds"):
        arrow_table(form(NANOS))


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_so_are_those_of_filters_and_new_values(
    kind: str, zone: str | None, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    create_table(path, {"t": kind})
    nanos = NANOS.tz_localize(zone)
    for op, value in [("=", nanos), ("<", nanos), ("in", [nanos])]:
        with pytest.raises(DeltaError, match="column t"):
            DeltaLog.for_table(path).snapshot.to_arrow(where=[("t", op, value)])
    with pytest.raises(DeltaError, match="nanoseconds"):
        update_rows(path, {"t": nanos})


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(2, name="k"),
        pd.Index([0, 1], name="k"),
        pd.MultiIndex.from_arrays([[0, 1], [5, 6]], names=["k", None]),
    ],
    ids=["range", "values", "levels"],
)
def test_an_index_with_a_name_is_a_column(index: Any) -> None:
    frame = pd.DataFrame({"v": [1, 2]}, index=index)
    assert arrow_table(frame).to_pylist() == [{"v": 1, "k": 0}, {"v": 2, "k": 1}]
    with pytest.raises(DeltaError, match="name of a column and of the index"):
        arrow_table(frame.rename(columns={"v": "k"}))


def test_a_bool_is_a_filter_a_property_and_a_conf(table: str) -> None:
    assert DeltaLog.for_table(table).snapshot.to_arrow(where=True).num_rows == 2
    assert DeltaLog.for_table(table).snapshot.to_arrow(where=False).num_rows == 0
    assert delete_rows(table, False).version is None
    set_properties(table, {"delta.appendOnly": True, "mine": 7})
    assert DeltaLog.for_table(table).snapshot.metadata.configuration == {
        "delta.appendOnly": "true",
        "mine": "7",
    }
    conf: Any = {"spark.databricks.delta.stats.collect": False}
    write_arrow(table, ROWS["rows"], conf=conf, mode="append")
    assert None in [each.stats for each in DeltaLog.for_table(table).snapshot.files()]


ODD: list[Any] = [
    *(3, 2.5, object(), b"x", {"a"}, dt.date(2024, 1, 1), pa.scalar(1), pa.array([1]), int),
    *(
        [3],
        [None],
        {"id": 3},
        {3: "int"},
        [("id", "int")],
        "no such type",
        "",
        "id nothing",
        ("a",),
    ),
    *(["id", 3], {"id": None}, [object()], pc.field("id") == 1, float("nan"), [[3]], True),
]


@pytest.mark.parametrize(
    "door",
    [
        pytest.param(lambda path, odd: create_table(f"{path}/new", odd), id="create_table"),
        pytest.param(add_columns, id="add_columns"),
        pytest.param(
            lambda path, odd: change_column(path, "id", data_type=odd), id="change_column"
        ),
        pytest.param(lambda path, odd: convert_to_delta(f"{path}/no", odd), id="convert_to_delta"),
        pytest.param(partial(write_arrow, mode="append"), id="write_arrow"),
        pytest.param(
            lambda path, odd: write_arrow(path, ROWS["rows"], partition_by=odd, mode="append"),
            id="partition_by",
        ),
        pytest.param(
            lambda path, odd: write_arrow(f"{path}/p", ROWS["rows"], properties=odd, mode="append"),
            id="properties",
        ),
        pytest.param(
            lambda path, odd: set_properties(path, {"delta.appendOnly": odd}), id="a property"
        ),
        pytest.param(
            lambda path, odd: DeltaLog.for_table(path, {"spark.lakelog.x": odd}), id="conf"
        ),
        pytest.param(
            lambda path, odd: DeltaLog.for_table(path).snapshot.to_arrow(where=odd), id="filter"
        ),
        pytest.param(delete_rows, id="delete_rows"),
    ],
)
def test_what_is_not_taken_is_refused_in_words(door: Callable[[str, Any], Any], table: str) -> None:
    for odd in ODD:
        with contextlib.suppress(DeltaError):
            door(table, odd)


OPTIONS = {
    "mergeSchema": "schema_mode",
    "overwriteSchema": "schema_mode",
    "partitionBy": "partition_by",
    "replaceWhere": "replace_where",
    "partitionOverwriteMode": "partition_overwrite_mode",
    "userMetadata": "user_metadata",
    "txnAppId": "app_id",
    "txnVersion": "app_version",
    "storage_options": "conf",
    "configuration": "properties",
    "schemaMode": "schema_mode",
    "other": "user_metadata",
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_spark_or_deltalake_is_reported_with_ours(name: str, table: str) -> None:
    anything: Any = {name: "x"}
    with pytest.raises(TypeError, match=rf"no argument '{name}'.*{OPTIONS[name]}"):
        write_arrow(table, ROWS["rows"], **anything)


TORN = ["id between 1", "id like", "not", "id = 1 and", "id in", "case when", "id >", "cast(id as"]


@pytest.mark.parametrize("text", [*TORN, *(f"({each}) or true" for each in TORN)])
def test_a_torn_filter_is_reported_without_names_of_the_parsers_classes(
    text: str, table: str
) -> None:
    with pytest.raises(DeltaError) as caught:
        DeltaLog.for_table(table).snapshot.to_arrow(where=text)
    assert "class" not in str(caught.value)
    assert "sqlglot" not in str(caught.value)


LENGTHS: list[tuple[Any, dict[str, str]]] = [
    ("a char(3), b varchar(2)", {"a": "char(3)", "b": "varchar(2)"}),
    ("a CHARACTER(3) NOT NULL, b string", {"a": "char(3)"}),
    ("a array<varchar(4)> COMMENT 'x'", {"a": "array<varchar(4)>"}),
    (
        "a struct<x: int, y: map<char(2), bigint>>",
        {"a": "struct<x:int,y:map<char(2),bigint>>"},
    ),
    ({"a": "varchar(9)", "b": pa.int64()}, {"a": "varchar(9)"}),
]


@pytest.mark.parametrize(("given", "marks"), LENGTHS)
def test_types_with_a_length_are_strings_with_a_mark(given: Any, marks: dict[str, str]) -> None:
    found = schema_from(given)
    assert {f.name: f.metadata[MARK] for f in found if MARK in f.metadata} == marks
    assert "char(" not in "".join(str(f.data_type) for f in found)


def test_a_length_of_a_column_list_is_kept_to(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "a char(3), b varchar(2)")
    write_arrow(uri, pa.table({"a": ["abc"], "b": ["xy"]}), mode="append")
    with pytest.raises(ConstraintViolationError, match="varchar"):
        write_arrow(uri, pa.table({"a": ["abc"], "b": ["xyz"]}), mode="append")


@pytest.mark.parametrize(
    ("text", "kind"), [("a int, b char", "CHAR"), ("a int, b geometry(4326)", "GEOMETRY")]
)
def test_a_type_that_delta_does_not_have_is_named_alone(text: str, kind: str) -> None:
    with pytest.raises(DeltaAnalysisError) as caught:
        schema_from(text)
    assert f"the column b can't be of type '{kind}" in str(caught.value)
    assert "a int" not in str(caught.value)


def test_a_length_is_no_type_of_its_own() -> None:
    with pytest.raises(DeltaAnalysisError, match=r"varchar\(3\)"):
        type_from("varchar(3)")


UTC_NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
CUT: list[tuple[str, Any, str]] = [
    ("bigint", 1.5, "1.5"),
    ("int", Decimal("1.5"), "1.5"),
    ("tinyint", np.float32(1.5), "1.5"),
    ("date", UTC_NOON, "2026"),
    ("timestamp", pd.Timestamp(1, unit="ns", tz="UTC"), "1970"),
    ("array<int>", [1, 1.5], "1.5"),
    ("map<string, int>", {"a": 1.5}, "1.5"),
    ("map<int, string>", [(1.5, "a")], "1.5"),
    ("struct<a: bigint>", {"a": 1, "b": 2}, "'b'"),
    ("struct<a: bigint>", {"A": 1}, "'A'"),
    ("array<struct<a: struct<b: date>>>", [{"a": {"b": UTC_NOON}}], "2026"),
    ("array<struct<a: struct<b: date>>>", [None, {"a": {"c": None}}], "'c'"),
]


@pytest.mark.parametrize(("kind", "value", "says"), CUT)
def test_values_that_a_type_would_cut_are_refused(
    tmp_path: Path, kind: str, value: Any, says: str
) -> None:
    uri = str(tmp_path / "t")
    rows = [{"x": None}, {"x": value}]
    with pytest.raises(DeltaAnalysisError, match=r"column x .* in row 1: ") as caught:
        write_arrow(uri, rows, schema={"x": kind})
    assert says in str(caught.value)
    create_table(uri, {"x": kind})
    with appender(uri, app_id="a", schema_mode="merge") as a:
        with pytest.raises(DeltaAnalysisError, match="column x"):
            a.append(rows)
        with pytest.raises(DeltaAnalysisError, match="column x"):
            a.append({"x": [None, value]})
    assert read_arrow(uri).num_rows == 0


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        ("bigint", 2.0, 2),
        ("bigint", Decimal(2), 2),
        ("bigint", np.int32(2), 2),
        ("date", UTC_NOON.replace(hour=0), dt.date(2026, 1, 31)),
        ("date", pd.Timestamp("2026-01-31"), dt.date(2026, 1, 31)),
        ("timestamp", pd.Timestamp(UTC_NOON), UTC_NOON),
        ("struct<a: bigint, b: int>", {"a": 1}, {"a": 1, "b": None}),
        ("struct<a: bigint>", (1,), {"a": 1}),
        ("array<int>", np.array([1, 2]), [1, 2]),
        ("map<int, string>", {1: None}, [(1, None)]),
    ],
)
def test_values_that_a_type_holds_are_taken(
    tmp_path: Path, kind: str, value: Any, held: Any
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, [{"x": value}, {"x": None}], schema={"x": kind})
    assert read_arrow(uri)["x"].to_pylist() == [held, None]
