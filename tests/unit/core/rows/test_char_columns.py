"""`CHAR(n)` and `VARCHAR(n)` without Spark: as they are stored, read, compared and altered."""

from __future__ import annotations

import operator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    DeltaLog,
    Operation,
    create_table,
    delete_rows,
    lit,
    merge,
    restore,
    table_changes,
    update_rows,
    write_arrow,
)
from lakelog.core.alter import change_column
from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidPredicateError,
)
from lakelog.core.expressions.tree import Column, Comparison, Literal
from lakelog.core.schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.char_varchar import MARK, Limit, with_current_marks
from lakelog.core.schema.column_fills import DEFAULT, generated_column

TEXT, LONG = PrimitiveType("string"), PrimitiveType("long")
SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("c", TEXT, metadata={MARK: "char(3)"}),
        StructField("v", TEXT, metadata={MARK: "varchar(3)"}),
        StructField("p", TEXT, metadata={MARK: "char(2)"}),
    )
)
FEED = {"delta.enableChangeDataFeed": "true"}
OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COLUMNS = pytest.mark.parametrize("by", ["p", None])


def rows(*given: tuple[int, str | None, str | None, str | None]) -> pa.Table:
    arrays = zip(*given, strict=True)
    return pa.table(
        {
            name: pa.array(values, pa.int64() if name == "id" else pa.string())
            for name, values in zip(SCHEMA.names, arrays, strict=True)
        }
    )


def made(tmp_path: Path, by: str | None, **properties: str) -> str:
    uri = str(tmp_path / "t")
    create_table(uri, SCHEMA, partition_by=by or (), properties={**FEED, **properties})
    write_arrow(
        uri, rows((1, "a", "a", "x"), (2, "abc", None, "yy"), (3, None, "b ", None)), mode="append"
    )
    return uri


def stored(uri: str) -> list[dict[str, Any]]:
    """What the files have, and the log of their partitions."""
    found = []
    for file in DeltaLog.for_table(uri).snapshot.files():
        plain = pq.ParquetFile(Path(uri) / unquote(file.path)).read().to_pylist()
        found += [{**row, **file.partition_values} for row in plain]
    return sorted(found, key=lambda row: row["id"])


def read(uri: str, where: Any = None) -> list[dict[str, Any]]:
    scan = DeltaLog.for_table(uri).snapshot.scan(where=where)
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])


@COLUMNS
def test_every_writer_fills_up_char_and_leaves_varchar(tmp_path: Path, by: str | None) -> None:
    uri = made(tmp_path, by)
    update_rows(uri, {"c": lit("d"), "v": lit("d"), "p": lit("z")}, "id = 2")
    source = rows((3, "e", "e", "w"), (4, "f", "f", "w"))
    merge(
        uri, source, "target.id = source.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    expected = [
        {"id": 1, "c": "a  ", "v": "a", "p": "x "},
        {"id": 2, "c": "d  ", "v": "d", "p": "z "},
        {"id": 3, "c": "e  ", "v": "e", "p": "w "},
        {"id": 4, "c": "f  ", "v": "f", "p": "w "},
    ]
    assert read(uri) == expected
    assert [{name: row[name] for name in SCHEMA.names} for row in stored(uri)] == expected
    fed = table_changes(uri, 0).read_all()
    assert {len(text) for text in fed["c"].to_pylist() if text is not None} == {3}
    assert {len(text) for text in fed["p"].to_pylist() if text is not None} == {2}


def test_what_is_too_long_is_refused_spaces_included(tmp_path: Path) -> None:
    uri = made(tmp_path, "p")
    for row in (
        (5, "abcd", "a", "x"),
        (5, "a   ", "a", "x"),
        (5, "a", "abcd", "x"),
        (5, "a", "a", "xyz"),
    ):
        with pytest.raises(ConstraintViolationError, match="EXCEED_CHAR_VARCHAR_LIMIT"):
            write_arrow(uri, rows(row), mode="append")


def mark(uri: str, name: str, kind: str) -> None:
    """Make a string column one with a limit, as a later commit that knows of it would."""
    log = DeltaLog.for_table(uri)
    txn = log.start_transaction()
    assert txn.snapshot is not None
    schema = txn.snapshot.schema
    fields = [
        replace(each, metadata={**each.metadata, MARK: kind}) if each.name == name else each
        for each in schema
    ]
    text = StructType(tuple(fields)).to_json()
    txn.commit([replace(txn.snapshot.metadata, schema_string=text)], Operation("TEST", {}))


def unpadded(tmp_path: Path, by: str | None) -> str:
    """A table of a writer that did not fill up: it took the columns for plain strings."""
    uri = str(tmp_path / "t")
    plain = StructType(tuple(StructField(each.name, each.data_type) for each in SCHEMA))
    create_table(uri, plain, partition_by=by or ())
    write_arrow(
        uri, rows((1, "a", "a", "x"), (2, "abc", "b", "yy"), (3, None, None, None)), mode="append"
    )
    write_arrow(uri, rows((4, "a", "a", "x")), mode="append")
    for name, kind in (("c", "char(3)"), ("v", "varchar(3)"), ("p", "char(2)")):
        mark(uri, name, kind)
    return uri


@COLUMNS
@pytest.mark.parametrize("left_short", [False, True])
def test_a_char_is_compared_as_if_filled_up_whoever_wrote_it(tmp_path, by, left_short) -> None:
    uri = unpadded(tmp_path, by) if left_short else made(tmp_path, by)
    ones = [1, 4] if left_short else [1]
    for where in (
        "c = 'a'",
        "c = 'a  '",
        "c = 'a     '",
        "c LIKE 'a  '",
        "p = 'x'",
        ("p", "in", ["x", "q"]),
        [("c", "=", "a"), ("p", "=", "x")],
        "c IN ('a', 'zz') AND p <=> 'x'",
        "c < 'ab'",
        "NOT (c <> 'a')",
        "p <= 'x' AND p >= 'x'",
    ):
        found = read(uri, where)
        assert [row["id"] for row in found] == ones, where
        assert {(row["c"], row["p"]) for row in found} == {("a  ", "x ")}, where
    assert [row["id"] for row in read(uri, "v = 'a'")] == ones
    assert not read(uri, "v = 'a  '")
    assert not read(uri, "c LIKE 'a'")
    assert [row["id"] for row in read(uri, "p IS NULL")] == [3]
    if by is None:
        return
    write_arrow(uri, rows((9, "z", "z", "x")), mode="overwrite", replace_where="p = 'x'")
    assert [row["id"] for row in read(uri)] == [2, 3, 9]
    delete_rows(uri, "c = 'z' AND p = 'x'")
    assert [row["id"] for row in read(uri)] == [2, 3]


@pytest.mark.parametrize("left_short", [False, True])
def test_dynamic_overwrite_replaces_the_partition_of_the_value(tmp_path, left_short) -> None:
    uri = unpadded(tmp_path, "p") if left_short else made(tmp_path, "p")
    write_arrow(uri, rows((7, "n", "n", "x")), mode="overwrite", partition_overwrite_mode="dynamic")
    assert [row["id"] for row in read(uri)] == [2, 3, 7]


@pytest.mark.parametrize(
    ("column", "kind", "mark"),
    [
        ("v", "VARCHAR(5)", "varchar(5)"),
        ("v", "varchar(3)", "varchar(3)"),
        ("v", "string", None),
        ("v", TEXT, None),
        ("c", "VARCHAR(3)", "varchar(3)"),
        ("c", "VARCHAR(8)", "varchar(8)"),
        ("c", "STRING", None),
        ("c", "CHAR(3)", "char(3)"),
    ],
)
def test_a_limit_may_grow_or_go(tmp_path: Path, column: str, kind: Any, mark: str | None) -> None:
    uri = made(tmp_path, None)
    change_column(uri, column, data_type=kind)
    field = DeltaLog.for_table(uri).snapshot.schema.get(column)
    assert field is not None
    assert field.metadata.get(MARK) == mark
    if mark != "char(3)":
        longer = "abcde"[: 5 if mark is None else int(mark[8:-1])]
        write_arrow(uri, {"id": [8], column: [longer]}, mode="append")
        assert read(uri, "id = 8")[0][column] == longer
    restore(uri, 1)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("v", "VARCHAR(2)"),
        ("v", "CHAR(3)"),
        ("v", "CHAR(9)"),
        ("c", "CHAR(4)"),
        ("c", "VARCHAR(2)"),
        ("v", "int"),
        ("id", "VARCHAR(3)"),
    ],
)
def test_a_limit_that_old_values_may_not_keep_is_refused(tmp_path, column, kind) -> None:
    uri = made(tmp_path, None)
    with pytest.raises(DeltaAnalysisError, match="NOT_SUPPORTED"):
        change_column(uri, column, data_type=kind)


LONGER = ["a   ", "ab  ", "abc\t", "abcd", "abc ", "a  \t", "a  b"]
TEXTS = ["a", "ab", "a b", "abc", "a\t", "a\t\t", "\t", "", "b", "\u00e9", "~~~"]


def files_read(uri: str, where: Any) -> tuple[list[int], int]:
    snapshot = DeltaLog.for_table(uri).snapshot
    return [row["id"] for row in read(uri, where)], len(list(snapshot.files(where)))


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("kind", ["char(3)", "varchar(3)"])
def test_statistics_leave_out_files_and_no_row(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id LONG, c STRING")
    for at, pair in enumerate(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)):
        write_arrow(uri, {"id": [2 * at, 2 * at + 1], "c": list(pair)}, mode="append")
    mark(uri, "c", kind)
    every = {row["id"]: row["c"] for row in read(uri)}
    is_char = kind == "char(3)"
    for value in [*TEXTS, *LONGER]:
        width = max(3, len(value)) if is_char else 0
        for op, true in OPERATORS.items():
            expected = [i for i, c in every.items() if true(c.ljust(width), value.ljust(width))]
            assert files_read(uri, f"c {op} '{value}'")[0] == expected, (op, value)
            as_it_is = Comparison(
                op.replace("<>", "!="), Column(("c",)), Literal(value, exact=True)
            )
            expected = [i for i, c in every.items() if true(c, value)]
            assert files_read(uri, as_it_is)[0] == expected, (op, value)
            assert [row["id"] for row in read(uri, true(pc.field("c"), value))] == expected
        expected = [i for i, c in every.items() if value <= c <= value + "c"]
        assert files_read(uri, f"c BETWEEN '{value}' AND '{value}c'")[0] == expected, value
    for where in ("c = '~~~'", "c > 'b'", "c < '\t '"):
        assert files_read(uri, where)[1] < len(TEXTS), where


def test_a_merge_finds_a_char_by_the_text_as_it_was_given(tmp_path: Path) -> None:
    uri = made(tmp_path, None)
    source = rows((9, "a", "m", "x"))
    merge(uri, source, "target.c = source.c AND target.p = source.p").when_matched_update(
        {"v": "source.v"}
    ).when_not_matched_insert_all().execute()
    assert [(row["id"], row["v"]) for row in read(uri)] == [(1, "m"), (2, None), (3, "b ")]


def lettered(tmp_path: Path, rows: dict[str, list[Any]], by: str = "") -> str:
    uri = str(tmp_path / "two")
    create_table(
        uri, "id LONG, c CHAR(3), d CHAR(5), v VARCHAR(5)", partition_by=[by] if by else ()
    )
    write_arrow(uri, rows, mode="append")
    return uri


@pytest.mark.parametrize("by", ["", "c", "d"])
def test_what_is_compared_with_a_char_within_an_expression_is_filled_up(tmp_path, by) -> None:
    uri = lettered(
        tmp_path,
        {
            "id": [1, 2, 3, 4],
            "c": ["a", "b", "abc", None],
            "d": ["a", "x", "abc", "q"],
            "v": ["a", "b  ", "abc", "q"],
        },
        by,
    )
    for where, ids in {
        "c = d": [1, 3],
        "c <=> d": [1, 3],
        "d <> c": [2],
        "c >= d": [1, 3],
        "c = v": [2, 3],
        "v = c": [2, 3],
        "CASE WHEN c = 'a' THEN true ELSE false END": [1],
        "IF('a' = c, d = 'a', false)": [1],
        "c = concat('a', '')": [1],
        "(c = 'a') = true": [1],
        "c IN ('a', concat('b', ''))": [1, 2],
        "c IN (v, 'a')": [2, 3],
        "upper(c) = 'A'": [],
        "upper(c) = 'A  '": [1],
        "CAST(c AS STRING) = 'a'": [],
        "c BETWEEN 'a' AND 'a'": [],
        "NOT c BETWEEN 'a' AND 'b'": [2],
        "nullif(c, 'a') IS NULL": [4],
    }.items():
        try:
            assert [row["id"] for row in read(uri, where)] == ids, where
        except InvalidPredicateError:
            assert "nullif" in where or "AS STRING" in where, where
    update_rows(uri, {"v": "CASE WHEN c = 'a' THEN 'one' ELSE 'other' END"}, "c = d")
    assert [row["v"] for row in read(uri)] == ["one", "b  ", "other", "q"]


def test_polars_compares_as_polars_does_and_no_file_is_left_out_for_it(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    uri = lettered(tmp_path, {"id": [1], "c": ["a"], "d": ["a"], "v": ["a"]})
    frame = DeltaLog.for_table(uri).snapshot.scan().to_polars(lazy=True)
    for condition, count in {
        "=": (frame.filter(polars.col("c") == "a"), 0),
        "= filled up": (frame.filter(polars.col("c") == "a  "), 1),
        "!=": (frame.filter(polars.col("c") != "a"), 1),
        ">": (frame.filter(polars.col("c") > "a"), 1),
        "<": (frame.filter(polars.col("c") < "a      "), 1),
    }.values():
        assert condition.collect().height == count


@pytest.mark.parametrize("by", ["", "c"])
def test_a_clause_of_a_merge_compares_a_char_as_the_search_does(tmp_path: Path, by: str) -> None:
    uri = lettered(tmp_path, {"id": [1, 2], "c": ["a", "b"], "d": ["a", "b"], "v": ["", ""]}, by)
    source = pa.table(
        {"id": [1, 2, 3], "c": ["a", "z", "b    "], "k": ["a", "b", "q"], "v": ["n", "n", "n"]}
    )
    merge(uri, source, "target.id = source.id OR target.c = source.k").when_matched_update(
        {"v": "CASE WHEN target.c = source.c THEN 'same' ELSE 'other' END"},
        where="target.d <> source.c OR target.d = 'a'",
    ).execute()
    assert [row["v"] for row in read(uri)] == ["same", "other"]
    merge(uri, source, "target.c = source.c").when_matched_update({"v": "source.k"}).execute()
    assert [row["v"] for row in read(uri)] == ["a", "q"]
    merge(uri, source, "target.c > source.c AND source.id = 1").when_matched_delete().execute()
    assert [row["id"] for row in read(uri)] == [1]


def test_a_generated_column_sees_the_value_that_is_stored(tmp_path: Path) -> None:
    uri = str(tmp_path / "g")
    n = generated_column("n", "int", "length(c)")
    fields = (*SCHEMA.fields[:2], n)
    create_table(uri, StructType(fields))
    write_arrow(uri, {"id": [1], "c": ["a"]}, mode="append")
    write_arrow(
        uri, pa.table({"id": [2], "c": ["b"], "n": pa.array([3], pa.int32())}), mode="append"
    )
    update_rows(uri, {"c": lit("z")}, "id = 2")
    assert [(row["c"], row["n"]) for row in read(uri)] == [("a  ", 3), ("z  ", 3)]


def test_a_char_within_another_column_is_filled_up_where_it_is_read_and_written(tmp_path) -> None:
    uri = str(tmp_path / "n")
    inner = StructType((StructField("c", TEXT), StructField("new", TEXT)))
    marks = {"s": "struct<c:char(3)>", "l": "array<char(2)>", "m": "map<char(2),varchar(3)>"}
    kinds: dict[str, Any] = {"s": inner, "l": ArrayType(TEXT, True), "m": MapType(TEXT, TEXT, True)}
    row: dict[str, Any] = {"s": {"c": "a", "new": "x"}, "l": ["a", None], "m": [("k", "v")]}
    filled: dict[str, Any] = {"s": {"c": "a  ", "new": "x"}, "l": ["a ", None], "m": [("k ", "v")]}
    empty: dict[str, Any] = {"s": {"c": None, "new": None}, "l": [], "m": []}
    none: dict[str, Any] = dict.fromkeys(kinds)
    fields = (StructField("id", LONG), *(StructField(n, k) for n, k in kinds.items()))
    create_table(uri, StructType(fields))

    def rows_of(first: int) -> pa.Table:
        given = [{"id": first + i, **each} for i, each in enumerate((none, row, empty))]
        return pa.Table.from_pylist(given, schema=to_arrow_schema(StructType(fields)))

    write_arrow(uri, rows_of(0), mode="append")
    mark(uri, "s", marks.pop("s"))
    write_arrow(uri, rows_of(3), mode="append")
    assert stored(uri)[4]["s"] == filled["s"]
    for name, kind in marks.items():
        mark(uri, name, kind)
    expected = [{"id": i, **each} for i, each in enumerate((none, filled, empty) * 2)]
    assert read(uri) == expected
    delete_rows(uri, "id = 0")
    assert read(uri) == expected[1:]
    assert [row["id"] for row in read(uri, "s.c = 'a  '")] == [1, 4]


@pytest.mark.parametrize("kind", ["CHAR(3)", "VARCHAR(3)"])
def test_a_default_that_is_too_long_is_refused(tmp_path: Path, kind: str) -> None:
    has_defaults = {"delta.feature.allowColumnDefaults": "supported"}
    field = StructField("c", TEXT, metadata={MARK: kind.lower()})
    schema = StructType((field,))
    for sql in ("'abcd'", "concat('ab', 'cd')", "12345"):
        long = replace(field, metadata={**field.metadata, DEFAULT: sql})
        with pytest.raises(DeltaAnalysisError, match="EXCEED_LIMIT_LENGTH"):
            create_table(str(tmp_path / "t"), StructType((long,)), properties=has_defaults)
    uri = str(tmp_path / "t")
    create_table(uri, schema, properties=has_defaults)
    change_column(uri, "c", default="'ab'")
    with pytest.raises(DeltaAnalysisError, match="EXCEED_LIMIT_LENGTH"):
        change_column(uri, "c", default="'abcd'")


def test_a_range_of_texts_holds_them_when_they_are_filled_up() -> None:
    texts = [*TEXTS, *LONGER, "abc\t", "abc \t", "\t\t\t\t"]
    limit = Limit(pads=True, length=3)
    for least in texts:
        for greatest in texts:
            low, high = limit.range_of(least, greatest)
            for text in texts:
                if least <= text <= greatest:
                    assert low <= text.rstrip(" ").ljust(3) <= high, (least, text, greatest)


def test_a_mark_tells_of_the_type_that_a_column_has_now() -> None:
    grown = StructType((StructField("C", TEXT), StructField("z", LONG)))
    renamed = StructType((StructField("other", TEXT),))
    fields = (
        StructField("s", grown, metadata={MARK: "struct<c:char(3)>", "comment": "x"}),
        StructField("a", ArrayType(renamed, True), metadata={MARK: "array<struct<c:char(3)>>"}),
        StructField("m", MapType(TEXT, LONG, True), metadata={MARK: "map<varchar(2),bigint>"}),
        StructField("c", TEXT, metadata={MARK: "char(3)"}),
        StructField("n", TEXT, metadata={MARK: "struct<c:char(3)>"}),
    )
    found = with_current_marks(StructType(fields))
    assert [each.metadata[MARK].replace("`", "") for each in found] == [
        "struct<C:char(3),z:bigint>",
        "array<struct<other:char(3)>>",
        "map<varchar(2),bigint>",
        "char(3)",
        "string",
    ]
    assert found.fields[0].metadata["comment"] == "x"
    assert with_current_marks(SCHEMA) is SCHEMA
