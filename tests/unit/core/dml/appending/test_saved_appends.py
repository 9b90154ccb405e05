"""Appends that are saved beside their table before their commit: what is safe, and for whom."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import (
    Appender,
    Clock,
    DeltaConf,
    DeltaLog,
    SystemClock,
    appender,
    create_table,
    read_arrow,
    vacuum,
    write_arrow,
)
from lakelog.core.alter import add_columns, add_constraint, set_properties
from lakelog.core.dml.appending import saving
from lakelog.core.dml.appending.segments import FOLDER, Segments
from lakelog.core.errors import AppenderStoppedError, DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType, column_with_default
from lakelog.logstores import Capabilities, LocalLogStore, LogStore
from support.faults import Fault, FaultyLogStore
from support.manual_clock import ManualClock
from support.telemetry import heard

if TYPE_CHECKING:
    from pathlib import Path

NEVER = "24h"


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, name string")
    return uri


def log_on(store: LogStore, table: str, clock: Clock | None = None) -> DeltaLog:
    return DeltaLog(table, store, DeltaConf(), clock or SystemClock())


def saving_appender(table: str | DeltaLog, app_id: str = "a", **more: Any) -> Appender:
    return appender(table, **{"app_id": app_id, "every": NEVER, "save_every": 0, **more})


def save(a: Appender, *numbers: int) -> None:
    for each in numbers:
        a.append([{"id": each}], seq=each).wait_saved(60)


def ids(table: str) -> list[int]:
    return sorted(read_arrow(table)["id"].to_pylist())


def crash(a: Appender) -> None:
    """What is in memory is gone; nothing is closed."""
    a._intake.stop(AppenderStoppedError("crashed"))
    for each in a._threads:
        each.join()


def segments(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "t" / FOLDER).rglob("*.segment"))


def test_what_is_saved_is_brought_in_by_the_next_appender(table: str) -> None:
    a = saving_appender(table)
    save(a, 0, 1, 2)
    assert (a.last_seq, ids(table)) == (2, [])
    crash(a)
    with appender(table, app_id="a") as b:
        assert b.last_seq == 2
        assert ids(table) == [0, 1, 2]
        assert b.append([{"id": 2}], seq=2).done()
    assert ids(table) == [0, 1, 2]


def test_rows_become_visible_by_their_commit(table: str, tmp_path: Path) -> None:
    with saving_appender(table) as a:
        tickets = [a.append([{"id": each}]) for each in range(5)]
        for each in tickets:
            each.wait_saved(60)
            assert not each.done()
        assert a.metrics.pending == 5
        version = a.flush()
        assert {each.result() for each in tickets} == {version}
        save(a, 5)
    assert ids(table) == list(range(6))
    # The take-over, and the end of the chain.
    assert len(segments(tmp_path)) <= 3


def test_without_saving_the_commit_is_what_saves(table: str) -> None:
    with appender(table, app_id="a", every=0) as a:
        ticket = a.append([{"id": 1}])
        ticket.wait_saved(60)
        assert ticket.result() == 1
        assert not (DeltaLog.for_table(table).snapshot.transactions.keys() - {"a"})


def test_coroutines_wait_until_rows_are_saved(table: str) -> None:
    async def work() -> None:
        async with saving_appender(table) as a:
            ticket = await a.append([{"id": 1}])
            await ticket.saved()
            assert not ticket.done()

    asyncio.run(work())
    assert ids(table) == [1]


def test_a_second_appender_takes_over_and_the_first_one_stops(table: str) -> None:
    a = saving_appender(table)
    save(a, 0, 1)
    b = saving_appender(table)
    assert b.last_seq == 1
    ticket = a.append([{"id": 2}], seq=2)
    with pytest.raises(AppenderStoppedError, match="has taken over all that was saved") as caught:
        ticket.wait_saved(60)
    assert (caught.value.acknowledged, caught.value.pending) == (1, 1)
    save(b, 2, 3)
    b.close()
    assert ids(table) == [0, 1, 2, 3]


def test_who_was_taken_over_commits_nothing(table: str) -> None:
    a = saving_appender(table)
    save(a, 0)
    b = saving_appender(table)
    with pytest.raises(AppenderStoppedError, match="another appender has the same app_id"):
        a.flush()
    b.close()
    assert ids(table) == [0]


def test_one_without_saving_is_taken_over_as_well(table: str) -> None:
    a = appender(table, app_id="a", every=NEVER)
    b = saving_appender(table)
    a.append([{"id": 7}], seq=0)
    with pytest.raises(AppenderStoppedError, match="another appender has the same app_id"):
        a.close()
    save(b, 0)
    c = appender(table, app_id="a")
    assert c.last_seq == 0
    with pytest.raises(AppenderStoppedError):
        save(b, 1)
    c.close()
    assert ids(table) == [0]


def test_who_comes_back_after_others_went_on_acknowledges_nothing(table: str) -> None:
    a = saving_appender(table)
    save(a, 0)
    for number in range(1, 4):
        with saving_appender(table) as b:
            for each in range(10 * number, 10 * number + 5):
                save(b, each)
                b.flush()
    with pytest.raises(AppenderStoppedError):
        save(a, 1)
    assert len(ids(table)) == 16


def test_a_take_over_that_was_overtaken_gives_up(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_in, others = saving._bring_in, list[Appender]()

    def overtaken(*given: Any) -> None:
        if not others:
            others.append(saving_appender(table, save_every=NEVER))
        bring_in(*given)

    def once(*given: Any) -> None:
        monkeypatch.setattr(saving, "_bring_in", bring_in)
        overtaken(*given)

    a = saving_appender(table)
    save(a, 0, 1)
    crash(a)
    monkeypatch.setattr(saving, "_bring_in", once)
    with pytest.raises(DeltaAnalysisError, match="has taken over"):
        saving_appender(table)
    (b,) = others
    save(b)
    b.append([{"id": 2}], seq=2)
    b.close()
    assert ids(table) == [0, 1, 2]


def test_one_that_commits_while_it_is_taken_over_doubles_nothing(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = saving_appender(table)
    save(a, 0, 1)
    saved = Segments.saved

    def late(self: Segments, *given: Any) -> Any:
        monkeypatch.setattr(Segments, "saved", saved)
        a.flush()
        return saved(self, *given)

    monkeypatch.setattr(Segments, "saved", late)
    b = saving_appender(table)
    assert b.last_seq == 1
    b.close()
    assert ids(table) == [0, 1]


def test_one_that_goes_past_the_end_while_it_is_looked_for_is_taken_over(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = saving_appender(table)
    save(a, 0)
    listed = Segments.listed

    def late(self: Segments) -> Any:
        found = listed(self)
        monkeypatch.setattr(Segments, "listed", listed)
        for each in range(1, 4):  # what was listed is deleted, and what came after it
            save(a, each)
            a.flush()
        return found

    monkeypatch.setattr(Segments, "listed", late)
    b = saving_appender(table)
    with pytest.raises(AppenderStoppedError):
        save(a, 4)
    save(b, 4)
    b.close()
    assert ids(table) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("fault", [each for each in Fault if "CRASH" not in each.name])
def test_a_reply_that_is_lost_or_wrong_saves_once(table: str, fault: Fault) -> None:
    store = FaultyLogStore(LocalLogStore())
    log = log_on(store, table, ManualClock())
    store.writes.append(fault)
    a = saving_appender(log)
    for number in range(3):
        store.writes.append(fault)
        save(a, number)
    crash(a)
    store.deliver_late()
    store.writes.append(fault)
    b = saving_appender(log)
    assert b.last_seq == 2
    b.close()
    assert ids(table) == [0, 1, 2]


def test_a_late_reply_of_one_that_was_taken_over_acknowledges_nothing(table: str) -> None:
    store = FaultyLogStore(LocalLogStore())
    a = saving_appender(log_on(store, table))
    save(a, 0)
    held, comes = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        comes.set()
        held.wait(60)

    store.before_write = wait
    ticket = a.append([{"id": 1}], seq=1)
    assert comes.wait(60)
    b = saving_appender(table)
    assert b.last_seq == 0
    held.set()
    with pytest.raises(AppenderStoppedError):
        ticket.wait_saved(60)
    b.close()
    assert ids(table) == [0]


def test_a_storage_that_fails_for_long_says_what_is_safe(table: str) -> None:
    store, clock = FaultyLogStore(LocalLogStore()), ManualClock()
    a = saving_appender(log_on(store, table, clock), patience="1m")
    save(a, 0, 1)
    store.writes.extend([Fault.OSERROR] * 10_000)
    ticket = a.append([{"id": 2}], seq=2)
    with pytest.raises(AppenderStoppedError, match="up to seq 1 are saved beside it") as caught:
        ticket.wait_saved(60)
    assert (caught.value.acknowledged, caught.value.pending) == (1, 1)
    with appender(table, app_id="a") as b:
        assert b.last_seq == 1
    assert ids(table) == [0, 1]


def test_who_was_idle_looks_for_a_take_over_first(table: str) -> None:
    clock = ManualClock()
    # Its interval is longer still: no commit finds out before.
    a = saving_appender(log_on(LocalLogStore(), table, clock), every=10 * 24 * 3600)
    save(a, 0)
    saving_appender(table).close()
    # As after a week, when the take-over was deleted.
    for each in a._segments.listed():
        LocalLogStore().delete_files([each.path])
    clock.advance(8 * 24 * 3600)
    with pytest.raises(AppenderStoppedError, match="has taken over"):
        save(a, 1)
    assert ids(table) == [0]


def test_old_files_are_deleted_by_who_takes_over(table: str, tmp_path: Path) -> None:
    for _ in range(3):
        saving_appender(table).close()
    assert len(segments(tmp_path)) == 3
    clock = ManualClock()
    clock.advance(SystemClock().now_ms() / 1000 + 8 * 24 * 3600)
    saving_appender(log_on(LocalLogStore(), table, clock)).close()
    assert segments(tmp_path) == ["00000000000000000003.segment"]


def test_positions_go_on_where_the_folder_was_deleted(table: str, tmp_path: Path) -> None:
    import shutil

    for number in range(3):
        with saving_appender(table) as a:
            save(a, number)
        shutil.rmtree(tmp_path / "t" / "_lakelog")
    assert ids(table) == [0, 1, 2]


def test_saved_rows_that_the_table_refuses_now_keep_the_appender_closed(table: str) -> None:
    a = saving_appender(table)
    save(a, 0, -1 % 3, 5)
    crash(a)
    add_constraint(table, "small", "id < 4")
    for _ in range(2):
        with pytest.raises(AppenderStoppedError, match="refuses rows with seq 5") as caught:
            saving_appender(table)
        assert (caught.value.acknowledged, caught.value.failed_seq) == (2, 5)
    dead: list[Any] = []
    with appender(table, app_id="a", dead_letter=dead.extend) as b:
        assert b.last_seq == 5
        assert b.metrics.rejected == 1
    assert [each.row["id"] for each in dead] == [5]
    assert ids(table) == [0, 2]


def test_saved_rows_come_to_a_table_that_was_changed(table: str) -> None:
    a = saving_appender(table)
    save(a, 0)
    add_columns(table, "more int")
    save(a, 1)
    crash(a)
    set_properties(table, {"delta.checkpointInterval": "2"})
    vacuum(
        table,
        retention_hours=0,
        conf={"spark.databricks.delta.retentionDurationCheck.enabled": "false"},
    )
    saving_appender(table).close()
    assert read_arrow(table).sort_by("id").to_pylist() == [
        {"id": each, "name": None, "more": None} for each in (0, 1)
    ]


def test_what_was_saved_for_a_table_is_not_for_the_one_in_its_place(
    table: str, tmp_path: Path
) -> None:
    import shutil

    a = saving_appender(table)
    save(a, 0)
    crash(a)
    shutil.rmtree(tmp_path / "t" / "_delta_log")
    create_table(table, "id bigint")
    with saving_appender(table) as b:
        assert b.last_seq == -1
        save(b, 9)
    assert ids(table) == [9]


def test_a_record_that_is_gone_is_no_reason_to_double_rows(table: str) -> None:
    set_properties(table, {"delta.setTransactionRetentionDuration": "interval 1 days"})
    a = saving_appender(table)
    save(a, 0)
    a.flush()
    save(a, 1)
    crash(a)
    clock = ManualClock()
    clock.advance(SystemClock().now_ms() / 1000 + 2 * 24 * 3600)
    with pytest.raises(AppenderStoppedError, match="record of the application is gone"):
        saving_appender(log_on(LocalLogStore(), table, clock))
    assert ids(table) == [0]


def test_rows_that_are_missing_are_not_passed_over(table: str, tmp_path: Path) -> None:
    a = saving_appender(table)
    save(a, 0, 1, 2)
    crash(a)
    folder = next((tmp_path / "t" / FOLDER).iterdir())
    (folder / "00000000000000000002.segment").unlink()
    with pytest.raises(AppenderStoppedError, match="before those of"):
        saving_appender(table)
    assert ids(table) == []


def test_a_large_append_is_safe_by_its_commit(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "_LARGEST", 10_000)
    a = saving_appender(table)
    save(a, 0)
    ticket = a.append(pa.table({"id": range(1, 3000)}), seq=1)
    ticket.wait_saved(60)
    assert ticket.done()
    save(a, 5000)
    crash(a)
    with appender(table, app_id="a") as b:
        assert b.last_seq == 5000
    assert ids(table) == [*range(3000), 5000]


def test_appends_of_several_forms_are_saved(tmp_path: Path) -> None:
    uri = str(tmp_path / "filled")
    fields = (
        StructField("id", PrimitiveType("long")),
        column_with_default("source", PrimitiveType("string"), "'unknown'"),
    )
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    create_table(uri, StructType(fields), properties=properties)
    options: dict[str, Any] = {"schema_mode": "merge", "dead_letter": lambda _: None}
    a = saving_appender(uri, save_every=NEVER, **options)
    a.append([{"id": 1}])
    a.append([{"id": 2, "source": "s"}])
    a.append([{"id": "x"}])
    a.append([{"id": 3, "extra": 1.5}])
    last = a.append(pa.table({"id": [4, 5], "source": ["s", None]}))
    a._intake._hurried = 4
    with a._intake._changed:
        a._intake._changed.notify_all()
    last.wait_saved(60)
    crash(a)
    with appender(uri, app_id="a", **options) as b:
        assert b.last_seq == 4
    found = read_arrow(uri).sort_by("id").to_pylist()
    assert [(each["id"], each["source"]) for each in found] == [
        (1, "unknown"),
        (2, "s"),
        (3, "unknown"),
        (4, "s"),
        (5, None),
    ]


def test_threads_and_a_bounded_memory(table: str) -> None:
    with saving_appender(table, every=0.01, save_every=0.001, max_bytes=20_000) as a:

        def work(first: int) -> None:
            for number in range(first, first + 40):
                a.append([{"id": number}])

        threads = [threading.Thread(target=work, args=(100 * each,)) for each in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert ids(table) == sorted(100 * one + other for one in range(8) for other in range(40))


def test_others_write_to_the_table_meanwhile(table: str) -> None:
    with saving_appender(table) as a:
        for number in range(5):
            save(a, number)
            write_arrow(table, [{"id": 100 + number}], mode="append")
            a.flush()
    assert ids(table) == [*range(5), *range(100, 105)]


def test_saving_is_a_span_and_its_time_is_measured(table: str) -> None:
    with heard() as hears:
        with saving_appender(table) as a:
            save(a, 0)
        assert "lakelog.append.save" in hears.tree()
        assert hears.counts("lakelog.append.save.duration") == {(): 1}


@pytest.mark.parametrize(
    ("unfit", "says"),
    [
        (replace(LocalLogStore().capabilities, partial_write_visible=True), "half written"),
        (replace(LocalLogStore().capabilities, consistent_listing=False), "late"),
    ],
)
def test_a_storage_must_be_fit_for_it(table: str, unfit: Capabilities, says: str) -> None:
    class Unfit(LocalLogStore):
        @property
        def capabilities(self) -> Capabilities:
            return unfit

    with pytest.raises(DeltaAnalysisError, match=says):
        saving_appender(log_on(Unfit(), table))


def test_saved_rows_that_are_damaged_are_named(table: str, tmp_path: Path) -> None:
    a = saving_appender(table)
    save(a, 0)
    crash(a)
    file = next((tmp_path / "t" / FOLDER).rglob("*1.segment"))
    file.write_text(file.read_text()[:-200] + "\n")
    with pytest.raises(AppenderStoppedError, match="are damaged"):
        saving_appender(table)


def test_a_newer_format_is_left_alone(table: str, tmp_path: Path) -> None:
    a = saving_appender(table)
    save(a, 0)
    crash(a)
    file = next((tmp_path / "t" / FOLDER).rglob("*1.segment"))
    file.write_text(file.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(DeltaAnalysisError, match="newer lakelog"):
        saving_appender(table)
