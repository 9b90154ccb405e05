"""Columns that `write_arrow` fills: defaults, identities, generated ones."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, Operation, create_table, lit, merge, update_rows, write_arrow
from lakelog.core.actions import Protocol
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    MetadataChangedException,
    UnsupportedFeatureError,
)
from lakelog.core.features.identity_columns import IDENTITY_TAG, identity_columns
from lakelog.core.rows.filling import fill_rows
from lakelog.core.schema import (
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
    identity_column,
)
from support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

LONG, STRING, DATE = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("date")
INT, TIMESTAMP = PrimitiveType("integer"), PrimitiveType("timestamp")
DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
NOON = datetime.datetime(2024, 5, 6, 23, 30, tzinfo=datetime.UTC)
_paths = itertools.count()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def schema(*fields: StructField) -> StructType:
    return StructType(fields)


def rows(uri: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist()
    return sorted(found, key=str)


def mark(uri: str, column: str = "id") -> int | None:
    return identity_columns(DeltaLog.for_table(uri).snapshot.schema)[column].high_water_mark


# Generated columns -----------------------------------------------------------------------------

EVENTS = schema(
    StructField("seen", TIMESTAMP),
    StructField("n", INT),
    generated_column("day", DATE, "CAST(seen AS DATE)"),
    generated_column("twice", INT, "n * 2"),
)


def test_a_generated_column_that_the_data_lacks_is_computed(uri: str) -> None:
    create_table(uri, EVENTS, partition_by=["day"])
    write_arrow(
        uri, pa.table({"n": [3, None], "seen": [NOON, None]}, _types("n", "seen")), mode="append"
    )
    assert rows(uri) == [
        {"seen": None, "n": None, "day": None, "twice": None},
        {"seen": NOON, "n": 3, "day": datetime.date(2024, 5, 6), "twice": 6},
    ]
    partitions = [file.partition_values for file in DeltaLog.for_table(uri).snapshot.files()]
    assert {"day": "2024-05-06"} in partitions


def _types(*names: str) -> pa.Schema:
    known = {"n": pa.int32(), "seen": pa.timestamp("us", "UTC"), "twice": pa.int32()}
    return pa.schema([(name, known[name]) for name in names])


def test_the_day_of_a_timestamp_is_that_of_the_session_s_zone(uri: str) -> None:
    create_table(uri, EVENTS)
    conf = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    write_arrow(uri, pa.table({"seen": [NOON]}, _types("seen")), conf=conf, mode="append")
    assert rows(uri)[0]["day"] == datetime.date(2024, 5, 7)


@pytest.mark.parametrize(("given_value", "passes"), [(6, True), (7, False), (None, False)])
def test_a_generated_column_that_the_data_has_must_be_right(
    uri: str, given_value: int | None, passes: bool
) -> None:
    create_table(uri, EVENTS)
    data = pa.table({"n": [1, 3], "twice": [2, given_value]}, _types("n", "twice"))
    if passes:
        write_arrow(uri, data, mode="append")
        assert [row["twice"] for row in rows(uri)] == [2, 6]
        return
    with pytest.raises(ConstraintViolationError) as caught:
        write_arrow(uri, data, mode="append")
    text = str(caught.value)
    assert text.startswith("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated")
    assert "(twice <=> n * 2) violated by 1 of 2 rows" in text
    assert f"twice={given_value!r}" in text
    assert "gives 6" in text
    assert DeltaLog.for_table(uri).snapshot.version == 0


def test_null_is_right_where_the_expression_gives_null(uri: str) -> None:
    create_table(uri, EVENTS)
    write_arrow(uri, pa.table({"n": [None], "twice": [None]}, _types("n", "twice")), mode="append")
    assert rows(uri)[0]["twice"] is None


def test_an_expression_that_only_spark_evaluates_is_refused_by_name(uri: str) -> None:
    create_table(uri, schema(StructField("s", STRING), generated_column("h", STRING, "base64(s)")))
    for data in ({"s": ["a"]}, {"s": ["a"], "h": ["b"]}):
        with pytest.raises(DeltaAnalysisError, match=r"column h \(base64\(s\)\).*lakelog.spark"):
            write_arrow(uri, pa.table(data), mode="append")


def test_a_generated_column_that_is_not_null_refuses_null(uri: str) -> None:
    create_table(
        uri, schema(StructField("n", INT), generated_column("m", INT, "n + 1", nullable=False))
    )
    with pytest.raises(ConstraintViolationError, match=r"NOT_NULL.*column: m"):
        write_arrow(uri, pa.table({"n": [1, None]}, _types("n")), mode="append")
    write_arrow(uri, pa.table({"n": [1]}, _types("n")), mode="append")
    assert rows(uri) == [{"n": 1, "m": 2}]


def test_an_overflow_is_an_error_and_no_value(uri: str) -> None:
    create_table(uri, schema(StructField("n", INT), generated_column("m", INT, "n * 2")))
    with pytest.raises(DeltaAnalysisError, match=r"'n \* 2'.*overflow"):
        write_arrow(uri, pa.table({"n": [1 << 30]}, _types("n")), mode="append")


# Identity columns ------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "step"), [(1, 1), (10, 3), (0, -2), (-5, 7)])
def test_an_identity_goes_on_from_write_to_write(uri: str, start: int, step: int) -> None:
    create_table(
        uri, schema(identity_column("id", start=start, step=step), StructField("v", STRING))
    )
    assert mark(uri) is None
    write_arrow(uri, pa.table({"v": ["a", "b"]}), mode="append")
    write_arrow(uri, pa.table({"v": ["c"]}), mode="append")
    found = {row["v"]: row["id"] for row in rows(uri)}
    assert found == {"a": start, "b": start + step, "c": start + 2 * step}
    assert mark(uri) == start + 2 * step
    assert DeltaLog.for_table(uri).history(1)[0].commit_info["tags"] == {IDENTITY_TAG: "true"}


def test_an_identity_that_is_always_refuses_values(uri: str) -> None:
    create_table(uri, schema(identity_column("id"), StructField("v", STRING)))
    with pytest.raises(DeltaAnalysisError, match=r"EXPLICIT_INSERT_NOT_SUPPORTED.*column id"):
        write_arrow(uri, pa.table({"ID": [5], "v": ["a"]}), mode="append")


def test_values_that_a_writer_brings_do_not_move_the_mark(uri: str) -> None:
    create_table(uri, schema(identity_column("id", by_default=True), StructField("v", STRING)))
    write_arrow(uri, pa.table({"id": [50, None], "v": ["a", "b"]}), mode="append")
    assert mark(uri) is None
    assert "tags" not in DeltaLog.for_table(uri).history(1)[0].commit_info
    write_arrow(uri, pa.table({"v": ["c"]}), mode="append")
    assert {row["v"]: row["id"] for row in rows(uri)} == {"a": 50, "b": None, "c": 1}


def test_a_write_of_no_rows_gives_out_no_number(uri: str) -> None:
    create_table(uri, schema(identity_column("id"), StructField("v", STRING)))
    write_arrow(uri, pa.table({"v": pa.array([], pa.string())}), mode="append")
    assert mark(uri) is None


@pytest.mark.parametrize(("start", "step"), [((1 << 63) - 2, 1), (-(1 << 63) + 1, -1)])
def test_numbers_beyond_a_bigint_are_refused(uri: str, start: int, step: int) -> None:
    create_table(
        uri, schema(identity_column("id", start=start, step=step), StructField("v", STRING))
    )
    write_arrow(uri, pa.table({"v": ["a", "b"]}), mode="append")
    with pytest.raises(DeltaAnalysisError, match="has run out of numbers"):
        write_arrow(uri, pa.table({"v": ["c"]}), mode="append")
    assert mark(uri) == start + step


def test_two_writers_of_numbers_conflict_and_others_go_by(uri: str) -> None:
    fields = (identity_column("id", by_default=True), StructField("v", STRING))
    create_table(uri, schema(*fields))
    log = DeltaLog.for_table(uri)
    numbers, plain = log.start_transaction(), log.start_transaction()
    write_arrow(uri, pa.table({"v": ["a"]}), mode="append")
    numbers.changes.advance_identity_columns({"id": 1})
    with pytest.raises(MetadataChangedException):
        numbers.commit([], _write())
    assert plain.commit([], _write()) == 2
    assert mark(uri) == 1
    # What the hooks see of the table is what it is.
    assert DeltaLog.for_table(uri).snapshot.metadata == log.update().metadata


def _write() -> Any:
    return Operation.write("Append")


def test_a_mark_that_moves_with_another_change_is_no_mere_move(uri: str) -> None:
    create_table(uri, schema(identity_column("id"), StructField("v", STRING)))
    log = DeltaLog.for_table(uri)
    plain = log.start_transaction()
    write_arrow(uri, pa.table({"v": ["a"], "w": [1]}), schema_mode="merge", mode="append")
    assert "tags" not in log.history(1)[0].commit_info
    with pytest.raises(MetadataChangedException):
        plain.commit([], _write())


@settings(max_examples=examples(15), deadline=None)
@given(
    writes=st.lists(st.integers(0, 5), max_size=4),
    start=st.integers(-(1 << 40), 1 << 40),
    step=st.integers(-1000, 1000).filter(bool),
)
def test_numbers_are_unique_and_on_the_lattice(
    tmp_path_factory: pytest.TempPathFactory, writes: list[int], start: int, step: int
) -> None:
    uri = str(tmp_path_factory.getbasetemp() / f"identity-{next(_paths)}")
    create_table(uri, schema(identity_column("id", start=start, step=step), StructField("v", INT)))
    for count in writes:
        write_arrow(uri, pa.table({"v": pa.array(range(count), pa.int32())}), mode="append")
    total = sum(writes)
    assert sorted(r["id"] for r in rows(uri)) == sorted(start + k * step for k in range(total))
    assert mark(uri) == (start + (total - 1) * step if total else None)


# Defaults --------------------------------------------------------------------------------------


def test_a_default_fills_what_is_missing_and_leaves_null_alone(uri: str) -> None:
    create_table(
        uri,
        schema(
            StructField("a", INT),
            column_with_default("b", LONG, "5"),
            column_with_default("c", STRING, "concat('x', 'y')"),
            column_with_default("d", DecimalType(10, 2), "1.5"),
            column_with_default("e", INT, "7", nullable=False),
            column_with_default("f", DATE, "DATE '2024-02-29'"),
            column_with_default("g", TIMESTAMP, "current_timestamp()"),
            generated_column("h", LONG, "b + 1L"),
        ),
        properties=DEFAULTS,
    )
    write_arrow(uri, pa.table({"a": pa.array([1, 2], pa.int32())}), mode="append")
    (first, _) = rows(uri)
    assert isinstance(first.pop("g"), datetime.datetime)
    assert {k: str(v) for k, v in first.items()} == {
        "a": "1",
        "b": "5",
        "c": "xy",
        "d": "1.50",
        "e": "7",
        "f": "2024-02-29",
        "h": "6",
    }
    write_arrow(uri, pa.table({"b": pa.array([None], pa.int64())}), mode="append")
    assert [row["b"] for row in rows(uri) if row["a"] is None] == [None]
    assert "allowColumnDefaults" in (
        DeltaLog.for_table(uri).snapshot.protocol.writer_features or ()
    )


def test_a_default_that_only_spark_evaluates_is_refused_by_name(uri: str) -> None:
    create_table(
        uri,
        schema(StructField("a", INT), column_with_default("b", STRING, "base64('x')")),
        properties=DEFAULTS,
    )
    with pytest.raises(DeltaAnalysisError, match=r"DEFAULT b \(base64\('x'\)\).*lakelog.spark"):
        write_arrow(uri, pa.table({"a": pa.array([1], pa.int32())}), mode="append")
    write_arrow(uri, pa.table({"b": ["given"]}), mode="append")
    assert rows(uri) == [{"a": None, "b": "given"}]


def test_a_field_within_a_struct_that_is_generated_can_t_be_written(uri: str) -> None:
    inner = StructType((StructField("x", INT), generated_column("y", INT, "1")))
    bad = schema(StructField("s", inner))
    with pytest.raises(DeltaAnalysisError, match=r"field s\.y is generated"):
        create_table(uri, bad)
    # A client that knew no better made the table.
    with pytest.raises(UnsupportedFeatureError, match=r"s\.y is a generated or identity column"):
        fill_rows(
            pa.table({"s": [{"x": 1}]}),
            bad,
            Protocol(min_reader_version=1, min_writer_version=2),
            uri,
        )


# Updates ---------------------------------------------------------------------------------------


def test_an_update_computes_what_depends_on_it_and_leaves_the_rest(uri: str) -> None:
    hashed = generated_column("h", STRING, "base64(s)")
    create_table(
        uri,
        schema(
            StructField("n", INT), generated_column("m", INT, "N + 1"), StructField("s", STRING)
        ),
    )
    write_arrow(uri, pa.table({"n": [1, 5]}, _types("n")), mode="append")
    update_rows(uri, {"n": pc.field("n") * 10}, "m = 2")
    assert [(r["n"], r["m"]) for r in rows(uri)] == [(10, 11), (5, 6)]
    with pytest.raises(ConstraintViolationError, match=r"m <=> N \+ 1"):
        update_rows(uri, {"m": 7}, "n = 5")
    update_rows(uri, {"m": 7, "n": 6}, "n = 5")
    new = StructType((*DeltaLog.for_table(uri).snapshot.schema, hashed))
    txn = DeltaLog.for_table(uri).start_transaction()
    txn.commit([replace(txn.metadata, schema_string=new.to_json())], Operation.manual())
    update_rows(uri, {"n": 0}, "n = 6")
    with pytest.raises(DeltaAnalysisError, match=r"column h \(base64"):
        update_rows(uri, {"s": lit("x")}, "n = 0")
    assert [(r["n"], r["m"], r["h"]) for r in rows(uri)] == [(0, 1, None), (10, 11, None)]


def test_an_identity_is_not_updated(uri: str) -> None:
    create_table(uri, schema(identity_column("id", by_default=True), StructField("v", STRING)))
    write_arrow(uri, pa.table({"v": ["a"]}), mode="append")
    with pytest.raises(DeltaAnalysisError, match="IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
        update_rows(uri, {"ID": 5})
    update_rows(uri, {"v": lit("b")})
    assert rows(uri) == [{"id": 1, "v": "b"}]


# What is given is given -------------------------------------------------------------------------

FILLED = schema(
    StructField("a", LONG),
    column_with_default("d", STRING, "'unknown'"),
    identity_column("i", by_default=True),
    identity_column("always"),
    generated_column("g", LONG, "a + 1"),
)
NULLS: dict[str, Any] = {
    "rows": lambda name: [{"a": 3, name: None}],
    "columns": lambda name: {"a": [3], name: [None]},
    "untyped": lambda name: pa.table({"a": [3], name: pa.nulls(1)}),
    "dictionary": lambda name: pa.table({"a": [3], name: pa.nulls(1).dictionary_encode()}),
    "stream": lambda name: pa.table({"a": [3], name: pa.nulls(1)}).to_reader(),
    "generator": lambda name: iter([pa.record_batch({"a": [3], name: pa.nulls(1)})] * 1),
    "pandas": lambda name: pd.DataFrame({"a": [3], name: [None]}),
    "another case": lambda name: [{"a": 3, name.upper(): None}],
}


def _merged(uri: str, data: Any, column: str) -> None:
    rows = merge(uri, data, "target.a = source.a")
    rows.when_not_matched_insert({"a": "source.a", column: f"source.{column}"}).execute()


def _merged_all(uri: str, data: Any, column: str) -> None:
    rows = merge(uri, data, "target.a = source.a", with_schema_evolution=True)
    rows.when_not_matched_insert_all().execute()


GIVEN_TO: dict[str, Any] = {
    "write": lambda uri, data, _: write_arrow(uri, data, mode="append"),
    "overwrite": lambda uri, data, _: write_arrow(uri, data, mode="overwrite"),
    "group": lambda uri, data, _: write_arrow(
        uri, data, mode="append", conf={"spark.lakelog.commit.group": "true"}
    ),
    "merge": _merged,
    "merge of all": _merged_all,
}


@pytest.mark.parametrize("door", GIVEN_TO)
@pytest.mark.parametrize("column", ["d", "i", "always", "g"])
def test_a_null_that_is_given_is_no_value_that_is_missing(
    door: str, column: str, tmp_path: Path
) -> None:
    typed = pa.table({"a": [3], column: pa.nulls(1, pa.string() if column == "d" else pa.int64())})

    def outcome(data: Any) -> Any:
        uri = str(tmp_path / f"t{next(_paths)}")
        create_table(uri, FILLED, properties=DEFAULTS)
        try:
            GIVEN_TO[door](uri, data, column)
        except (ConstraintViolationError, DeltaAnalysisError) as exc:
            return type(exc), str(exc).replace(uri, "")
        return rows(uri)

    expected = outcome(typed)
    if column in ("d", "i"):
        assert expected == [{**expected[0], "a": 3, column: None}]
    else:
        assert ("ALWAYS" if column == "always" else "violated by") in expected[1]
    assert {name: outcome(make(column)) for name, make in NULLS.items()} == dict.fromkeys(
        NULLS, expected
    )
