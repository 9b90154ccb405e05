"""`CHAR(n)` and `VARCHAR(n)` without Spark: as they are stored, read, compared and altered."""

from __future__ import annotations

import operator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    DeltaLog,
    Operation,
    change_column,
    create_table,
    delete_rows,
    lit,
    merge,
    restore,
    table_changes,
    update_rows,
    write_arrow,
)
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.char_varchar import MARK

TEXT = PrimitiveType("string")
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


TEXTS = ["a", "ab", "a b", "abc", "a\t", "a\t\t", "\t", "", "b", "\u00e9", "~~~"]


def files_read(uri: str, where: str) -> tuple[list[int], int]:
    snapshot = DeltaLog.for_table(uri).snapshot
    return [row["id"] for row in read(uri, where)], len(list(snapshot.files(where)))


@pytest.mark.parametrize("kind", ["char(3)", "varchar(3)"])
def test_statistics_leave_out_files_and_no_row(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id LONG, c STRING")
    for at, pair in enumerate(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)):
        write_arrow(uri, {"id": [2 * at, 2 * at + 1], "c": list(pair)}, mode="append")
    mark(uri, "c", kind)
    every = {row["id"]: row["c"] for row in read(uri)}
    width = 3 if kind == "char(3)" else 0
    for value in TEXTS:
        for op, true in OPERATORS.items():
            expected = [i for i, text in every.items() if true(text, value.ljust(width))]
            found, _ = files_read(uri, f"c {op} '{value}'")
            assert found == expected, (op, value)
    for where in ("c = '~~~'", "c > 'b'", "c < '\t '"):
        assert files_read(uri, where)[1] < len(TEXTS), where


def test_a_merge_finds_a_char_by_the_text_as_it_was_given(tmp_path: Path) -> None:
    uri = made(tmp_path, None)
    source = rows((9, "a", "m", "x"))
    merge(uri, source, "target.c = source.c AND target.p = source.p").when_matched_update(
        {"v": "source.v"}
    ).when_not_matched_insert_all().execute()
    assert [(row["id"], row["v"]) for row in read(uri)] == [(1, "m"), (2, None), (3, "b ")]
