"""Appends that wait or are saved while columns of their table are renamed, dropped and added."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import Appender, appender, create_table, read_arrow, write_arrow
from lakelog.core.alter import (
    add_columns,
    change_column,
    drop_columns,
    rename_column,
    set_properties,
)
from lakelog.core.dml.appending.given import have_same_columns
from lakelog.core.errors import AppenderStoppedError
from lakelog.core.schema import PrimitiveType, StructField, StructType, identity_column
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

MAPPED = {"delta.columnMapping.mode": "name"}
UPGRADE = {**MAPPED, "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}


@pytest.fixture(params=["saved", "in memory"])
def saves(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "saved")


def opened(table: str, saves: bool, **more: Any) -> Appender:
    return appender(table, app_id="a", every="24h", save_every=0 if saves else None, **more)


def brought_in(table: str, a: Appender, saves: bool, **more: Any) -> None:
    """What was given comes into the table, by the next appender if it was saved."""
    if not saves:
        a.close()
        return
    a._intake.stop(AppenderStoppedError("crashed"))
    for each in a._threads:
        each.join()
    appender(table, app_id="a", **more).close()


def given(a: Appender, saves: bool, *rows: dict[str, Any]) -> None:
    ticket = a.append(list(rows))
    if saves:
        ticket.wait_saved(60)


def found(table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_arrow(table).to_pylist()
    return rows


@pytest.mark.parametrize("merges", [False, True])
def test_rows_come_to_the_column_that_they_were_given_for(
    tmp_path: Path, saves: bool, merges: bool
) -> None:
    table, more = str(tmp_path / "t"), {"schema_mode": "merge"} if merges else {}
    create_table(table, "x int, z int", properties=MAPPED)
    a = opened(table, saves, **more)
    given(a, saves, {"x": 1, "z": 2})
    rename_column(table, "x", "y")
    add_columns(table, "x int")
    brought_in(table, a, saves, **more)
    assert found(table) == [{"y": 1, "z": 2, "x": None}]


def test_names_may_be_exchanged(tmp_path: Path, saves: bool) -> None:
    table = str(tmp_path / "t")
    create_table(table, "a int, b int", properties=MAPPED)
    a = opened(table, saves)
    given(a, saves, {"a": 1, "b": 2})
    for one, other in (("a", "c"), ("b", "a"), ("c", "b")):
        rename_column(table, one, other)
    brought_in(table, a, saves)
    assert found(table) == [{"b": 1, "a": 2}]


def test_fields_within_columns_too(tmp_path: Path, saves: bool) -> None:
    table = str(tmp_path / "t")
    kinds = "s struct<x: int>, l array<struct<x: int>>, m map<string, struct<x: int>>"
    create_table(table, kinds, properties=MAPPED)
    a = opened(table, saves)
    given(a, saves, {"s": {"x": 1}, "l": [{"x": 2}, None], "m": {"k": {"x": 3}}}, {"s": None})
    for path in (["s"], ["l", "element"], ["m", "value"]):
        rename_column(table, [*path, "x"], "y")
        add_columns(table, "x int", parent=path)
    brought_in(table, a, saves)
    first, second = sorted(found(table), key=lambda row: row["s"] is None)
    one = {"y": 1, "x": None}
    assert first == {"s": one, "l": [{**one, "y": 2}, None], "m": [("k", {**one, "y": 3})]}
    assert second == {"s": None, "l": None, "m": None}


def test_a_table_may_begin_to_map_its_columns(tmp_path: Path, saves: bool) -> None:
    table = str(tmp_path / "t")
    create_table(table, "x int")
    a = opened(table, saves)
    given(a, saves, {"x": 1})
    set_properties(table, UPGRADE)
    rename_column(table, "x", "y")
    add_columns(table, "x int")
    brought_in(table, a, saves)
    assert found(table) == [{"y": 1, "x": None}]


def test_a_column_that_was_dropped_is_not_the_one_in_its_place(tmp_path: Path, saves: bool) -> None:
    table, dead = str(tmp_path / "t"), list[Any]()
    create_table(table, "x int, z int", properties=MAPPED)
    a = opened(table, saves)
    given(a, saves, {"z": 1})
    given(a, saves, {"x": 2, "z": 2})
    drop_columns(table, "x")
    add_columns(table, "x int")
    with pytest.raises(AppenderStoppedError, match="column x, which was dropped") as caught:
        brought_in(table, a, saves)
    assert caught.value.fields["failed_seq"] == 1
    assert found(table) == [{"z": 1, "x": None}]
    if saves:
        with appender(table, app_id="a", dead_letter=dead.extend) as b:
            assert b.last_seq == 1
        assert [each.row for each in dead] == [{"x": 2, "z": 2}]


def test_days_come_to_a_column_that_was_widened_to_times(tmp_path: Path, saves: bool) -> None:
    table, ntz = str(tmp_path / "t"), "delta.feature.timestampNtz"
    own = {"delta.enableTypeWidening": "true", ntz: "supported"}
    create_table(table, "d date, n int, s struct<d: date>, l array<date>", properties=own)
    a = opened(table, saves)
    day = datetime.date(2026, 1, 31)
    given(a, saves, {"d": day, "n": 1, "s": {"d": day}, "l": [day, None]}, {"n": 2})
    for path in ("d", "s.d", "l.element"):
        change_column(table, path, data_type="timestamp_ntz")
    change_column(table, "n", data_type="double")
    brought_in(table, a, saves)
    midnight = datetime.datetime.combine(day, datetime.time())
    assert found(table) == [
        {"d": midnight, "n": 1.0, "s": {"d": midnight}, "l": [midnight, None]},
        {"d": None, "n": 2.0, "s": None, "l": None},
    ]


def test_what_came_before_and_after_a_change_is_told_apart(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    create_table(table, "x int", properties=MAPPED)
    with appender(table, app_id="a", every="24h") as a:
        a.append([{"x": 1}])
        rename_column(table, "x", "y")
        add_columns(table, "x int")
        a._log.update()
        a.append([{"x": 2}])
        a.append([{"x": 3, "y": 4}])
        a.flush()
    assert sorted(map(str, found(table))) == [
        "{'y': 1, 'x': None}",
        "{'y': 4, 'x': 3}",
        "{'y': None, 'x': 2}",
    ]


def test_other_changes_keep_appends_together(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    fields = (identity_column("id"), StructField("x", PrimitiveType("integer")))
    create_table(table, StructType(fields))
    with appender(table, app_id="a", every="24h") as a:
        a.append([{"x": 1}])
        write_arrow(
            table, [{"x": 0}], schema="x int", mode="append"
        )  # which moves the identity's mark
        set_properties(table, {"delta.checkpointInterval": "3"})
        a._log.update()
        a.append([{"x": 2}])
        a.flush()
        assert a.metrics.commits == 1


def test_columns_are_the_same_whatever_else_is_said_of_them() -> None:
    one = StructType((StructField("x", PrimitiveType("integer")),))
    noted = StructType((StructField("x", PrimitiveType("integer"), metadata={"comment": "c"}),))
    other = StructType((StructField("x", PrimitiveType("long")),))
    assert have_same_columns(one, noted)
    assert not have_same_columns(one, other)


def test_a_record_that_the_table_forgot_is_told_with_what_it_was(tmp_path: Path) -> None:
    from lakelog.core import DeltaConf, DeltaLog
    from lakelog.logstores import LocalLogStore

    table, clock = str(tmp_path / "t"), ManualClock()
    properties = {"delta.setTransactionRetentionDuration": "interval 1 days"}
    log = DeltaLog(table, LocalLogStore(), DeltaConf(), clock)
    create_table(log, "id bigint", properties=properties)
    a = appender(log, app_id="a", every="24h")
    a.append([{"id": 5}], seq=5)
    a.flush()
    clock.advance(2 * 24 * 3600)
    a.append([{"id": 6}], seq=6)
    with pytest.raises(AppenderStoppedError, match="append what is after seq 5, whatever") as told:
        a.close()
    assert told.value.acknowledged == 5
    assert "after its last_seq" not in str(told.value)
    assert read_arrow(table)["id"].to_pylist() == [5]
