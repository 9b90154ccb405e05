"""What UPDATE sets columns to: text is SQL, everything else is taken as it is or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelog.core import DeltaLog, create_table, lit, update_rows, write_arrow
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "i": pa.int32(),
        "f": pa.float32(),
        "day": pa.date32(),
        "ts": pa.timestamp("us", "UTC"),
        "ntz": pa.timestamp("us"),
        "name": pa.string(),
        "dec": pa.decimal128(10, 2),
        "st": pa.struct({"a": pa.int64(), "b": pa.string()}),
    }
)
ROW: dict[str, Any] = {
    "n": 10,
    "i": 3,
    "f": 1.5,
    "day": date(2024, 1, 1),
    "ts": NOON,
    "ntz": NOON.replace(tzinfo=None),
    "name": "Ann",
    "dec": Decimal("1.25"),
    "st": {"a": 1, "b": "x"},
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.Table.from_pylist([ROW], schema=SCHEMA), mode="append")
    return uri


def row(uri: str) -> dict[str, Any]:
    (found,) = DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist()
    return dict(found)


LOSSY: list[tuple[str, Any]] = [
    ("n", 1.999),
    ("n", Decimal("1.5")),
    ("n", True),
    ("i", 1 << 31),
    ("f", 1e300),
    ("dec", 0.125),
    ("dec", Decimal("0.125")),
    ("day", NOON),
    ("day", NOON.replace(tzinfo=None)),
    ("ntz", NOON),
    ("name", b"x"),
    ("name", 5),
    ("st", {"typo": 1, "a": 1, "b": "x"}),
]


@pytest.mark.parametrize(("column", "value"), LOSSY, ids=repr)
@pytest.mark.parametrize("form", [lambda v: v, lit, pa.scalar], ids=["plain", "lit", "scalar"])
def test_what_a_column_does_not_hold_exactly_is_refused(
    uri: str, column: str, value: Any, form: Any
) -> None:
    with pytest.raises(DeltaAnalysisError, match=f"column {column} of type .* can't be set to"):
        update_rows(uri, {column: form(value)})
    assert DeltaLog.for_table(uri).snapshot.version == 0
    assert row(uri) == ROW


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("n", pc.field("f")),
        ("i", pc.field("n") * 1_000_000_000),
        ("dec", pc.field("dec") * Decimal("0.01")),
        ("day", pc.field("ntz")),
        ("ntz", pc.field("ts")),
        ("st", pc.make_struct(1, field_names=["typo"])),  # pyright: ignore[reportAttributeAccessIssue]
        ("st", pc.make_struct(pc.field("n"), field_names=["a"])),  # pyright: ignore[reportAttributeAccessIssue]
        ("name", pc.field("n")),
    ],
    ids=str,
)
def test_so_is_what_an_expression_gives(uri: str, column: str, value: Any) -> None:
    with pytest.raises(DeltaAnalysisError, match=f"column {column} of type .* can't be set to"):
        update_rows(uri, {column: value})
    assert row(uri) == ROW


@pytest.mark.parametrize(
    ("column", "sql", "expected"),
    [
        ("name", "upper(name)", "ANN"),
        ("name", "'upper(name)'", "upper(name)"),
        ("name", "concat(name, '-', n)", "Ann-10"),
        ("name", "NULL", None),
        ("name", "5", "5"),
        ("n", "n + i", 13),
        ("N", "5", 5),
        ("n", "CASE WHEN n > 5 THEN i ELSE n END", 3),
        ("n", "f", 1),
        ("n", "-1.999", -1),
        ("n", "dec", 1),
        ("f", "2.5", 2.5),
        ("day", "DATE '2024-02-03'", date(2024, 2, 3)),
        ("day", "ts", date(2024, 1, 1)),
        ("dec", "i", Decimal(3)),
        ("st", "st", ROW["st"]),
    ],
)
def test_text_is_sql(uri: str, column: str, sql: str, expected: Any) -> None:
    update_rows(uri, {column: sql})
    assert row(uri) == {**ROW, column.lower(): expected}


@pytest.mark.parametrize(
    "kind",
    [
        "variant",
        "struct<x: bigint NOT NULL>",
        "struct<v: variant>",
        "struct<s: struct<x: int NOT NULL, y: string> >",
        "array<bigint>",
        "map<string, bigint>",
    ],
)
def test_null_is_a_value_of_every_type(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "n")
    create_table(path, f"id bigint, c {kind}")
    write_arrow(path, pa.table({"id": [1, 2]}), mode="append")
    update_rows(path, {"c": "NULL", "id": "id + 1"})
    found = DeltaLog.for_table(path).snapshot.to_arrow()
    assert sorted(found["id"].to_pylist()) == [2, 3]
    assert found["c"].null_count == 2


def test_several_of_one_update_see_the_old_row_and_one_time(uri: str) -> None:
    update_rows(uri, {"n": "i", "i": "n", "ts": "current_timestamp()", "ntz": "now()"})
    found = row(uri)
    assert (found["n"], found["i"]) == (3, 10)
    assert found["ts"].replace(tzinfo=None) == found["ntz"] > ROW["ntz"]


@pytest.mark.parametrize("text", ["upper(name)", "name", "it's", "NULL", "", "1; DROP"])
def test_lit_and_arrows_scalars_are_the_text_itself(uri: str, text: str) -> None:
    for value in (lit(text), pa.scalar(text), pc.scalar(text)):
        update_rows(uri, {"name": lit("before")})
        update_rows(uri, {"name": value})
        assert row(uri)["name"] == text


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("Bob", r"unknown column Bob.*lit\('Bob'\)"),
        ("Bob and Ann", r"lit\('Bob and Ann'\)"),
        ("it's", r"can't parse.*lit\("),
        ("", r"can't be set to the SQL ''"),
        ("SELECT 1", "not an expression"),
        ("base64(name)", "only Spark evaluates"),
        ("named_struct('a', 1)", "only Spark evaluates"),
    ],
)
def test_sql_that_is_none_here_is_refused_before_any_row_is_read(
    uri: str, sql: str, message: str
) -> None:
    with pytest.raises(InvalidPredicateError, match=message):
        update_rows(uri, {"name": sql}, "n = 99")


def test_sql_without_a_value_for_some_row_changes_nothing(uri: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="no result for some row"):
        update_rows(uri, {"n": "n div (i - 3)"})
    assert row(uri) == ROW


def test_times_without_a_zone_are_of_the_session(uri: str) -> None:
    conf = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    expected = datetime(2039, 12, 31, 15, tzinfo=UTC)
    for value in (date(2040, 1, 1), datetime(2040, 1, 1)):  # noqa: DTZ001  # the case
        update_rows(uri, {"ts": value}, conf=conf)
        assert row(uri)["ts"] == expected
