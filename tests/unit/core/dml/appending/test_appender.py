"""Appending rows as they come: what an appender promises, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    Clock,
    DeltaConf,
    DeltaLog,
    SystemClock,
    UnfitRow,
    appender,
    create_table,
    delete_rows,
    optimize,
    read_arrow,
    vacuum,
    write_arrow,
)
from lakelog.core.alter import add_columns, add_constraint, drop_constraint, set_properties
from lakelog.core.dml.appending.compacting import TAGS, Compactor
from lakelog.core.dml.appending.given import Fitted
from lakelog.core.dml.arrow_write import append_rows
from lakelog.core.dml.table_write import WriteRequest
from lakelog.core.errors import (
    AppenderFullError,
    AppenderStoppedError,
    CommitOutcomeUnknownError,
    ConstraintViolationError,
    DeltaAnalysisError,
    InvalidCommittedVersionError,
    PostCommitError,
    SchemaMismatchError,
    TableNotFoundError,
)
from lakelog.core.schema import (
    ArrayType,
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    identity_column,
)
from lakelog.logstores import LocalLogStore, LogStore
from support.faults import Fault, FaultyLogStore
from support.manual_clock import ManualClock
from support.telemetry import heard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.core.actions import AddFile

NEVER = "24h"
COMMITTING = "lakelog.core.dml.appending.committing"
MARKED = WriteRequest(mode="append", file_tags=TAGS)
COMPACTING = "lakelog.core.dml.appending.compacting"


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, name string, at timestamp")
    return uri


def log_on(store: LogStore, tmp_path: Path, clock: Clock | None = None) -> DeltaLog:
    return DeltaLog(str(tmp_path / "t"), store, DeltaConf(), clock or SystemClock())


def ids(table: str) -> list[int]:
    return sorted(read_arrow(table)["id"].to_pylist())


def files(table: str) -> list[str]:
    return [str(each) for each in DeltaLog.for_table(table).snapshot.file_table["path"]]


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": each} for each in numbers]


def test_rows_of_one_interval_are_one_version(table: str) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        tickets = [a.append(rows(each)) for each in range(50)]
        assert not any(each.done() for each in tickets)
        assert a.flush() == 1
        assert {each.result() for each in tickets} == {1}
        assert [each.seq for each in tickets] == list(range(50))
        assert (a.last_seq, a.metrics.rows, a.metrics.commits) == (49, 50, 1)
        assert (a.metrics.pending, a.metrics.pending_bytes) == (0, 0)
    assert ids(table) == list(range(50))


def test_leaving_the_block_commits_what_waits(table: str) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        a.append(rows(1))
    assert ids(table) == [1]


def test_what_was_taken_is_committed_where_the_block_fails(table: str) -> None:
    def work() -> None:
        with appender(table, app_id="a", every=NEVER) as a:
            a.append(rows(1))
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert ids(table) == [1]


def test_an_interval_without_length_commits_at_once(table: str) -> None:
    with appender(table, app_id="a", every=0) as a:
        assert a.append(rows(1)).result() == 1
        assert a.append(rows(2)).result() == 2


def test_rows_are_due_when_the_first_of_them_has_waited_long_enough(table: str) -> None:
    from lakelog.core.dml.appending.intake import Intake

    clock = ManualClock()
    intake = Intake(
        table=table,
        app_id="a",
        clock=clock,
        every=1.0,
        save_every=None,
        max_bytes=1 << 20,
        acknowledged=-1,
        version=0,
    )
    intake.put(Fitted(pa.table({"id": [1]}), StructType()), None, None)
    clock.advance(0.7)
    intake.put(Fitted(pa.table({"id": [2]}), StructType()), None, None)
    assert intake.take(waits=False) == []
    clock.advance(0.3)
    assert [each.seq for each in intake.take(waits=False)] == [0, 1]


def test_half_of_the_memory_is_committed_before_its_time(table: str) -> None:
    with appender(table, app_id="a", every=NEVER, max_bytes=8000) as a:
        tickets = [a.append(rows(each)) for each in range(4)]
        assert tickets[3].result(60) == 1


@pytest.mark.parametrize(
    "given",
    [
        pa.table({"ID": pa.array([7], pa.int32())}),
        pa.record_batch({"id": [7]}),
        {"Id": [7]},
        [{"id": 7}],
        iter([pa.record_batch({"id": [7]})]),
    ],
)
def test_rows_come_in_the_forms_of_write_arrow(table: str, given: Any) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        a.append(rows(1))
        a.append(given)
    assert ids(table) == [1, 7]


def test_another_appender_goes_on_where_the_last_one_ended(table: str) -> None:
    with appender(table, app_id="a") as a:
        assert a.last_seq == -1
        a.append(rows(10, 11), seq=5)
    with appender(table, app_id="a") as b:
        assert b.last_seq == 5
        assert b.append(rows(10, 11), seq=5).result() == 1
        assert b.append(rows(12)).seq == 6
    with appender(table, app_id="another") as c:
        assert c.last_seq == -1
    assert ids(table) == [10, 11, 12]


def test_a_repeated_number_is_the_same_append(table: str) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        waiting = a.append(rows(1), seq=1)
        assert a.append(rows(1), seq=1) is waiting
        a.flush()
        assert a.append(rows(1), seq=1) is waiting
    assert ids(table) == [1]


@pytest.mark.parametrize(
    ("seq", "number", "says"), [(3, 9, "with other rows"), (2, 2, "goes backwards")]
)
def test_a_number_is_no_way_back(table: str, seq: int, number: int, says: str) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        a.append(rows(1), seq=1)
        a.append(rows(3), seq=3)
        for _ in range(2):
            with pytest.raises(DeltaAnalysisError, match=says):
                a.append(rows(number), seq=seq)
            a.flush()
    assert ids(table) == [1, 3]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([{"id": "x"}], DeltaAnalysisError),
        ([{"other": 1}], DeltaAnalysisError),
        (pa.table({"id": ["x"]}), SchemaMismatchError),
        (pa.table({"other": [1]}), SchemaMismatchError),
        (5, DeltaAnalysisError),
        ({"id": [1, 2], "name": ["x"]}, DeltaAnalysisError),
        ([{"id": 1.5}], DeltaAnalysisError),
        (pa.Table.from_struct_array(pa.array([{}, {}], pa.struct([]))), DeltaAnalysisError),
    ],
)
def test_rows_that_do_not_fit_are_refused_at_once(
    table: str, given: Any, error: type[Exception]
) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        with pytest.raises(error):
            a.append(given, seq=1)
        a.append(rows(1), seq=1)
    assert ids(table) == [1]


def test_memory_that_is_used_again_changes_no_rows_that_wait(table: str) -> None:
    numbers = np.zeros(2, dtype="int64")
    frame = pd.DataFrame({"id": numbers}, copy=False)
    with appender(table, app_id="a", every=NEVER) as a:
        for each in range(3):
            numbers[:] = 10 * each
            a.append({"id": numbers})
            numbers[:] += 1
            a.append(pa.table({"id": numbers}))
            frame.iloc[:, 0] = 10 * each + 2
            a.append(frame)
    assert ids(table) == sorted(2 * [0, 1, 2, 10, 11, 12, 20, 21, 22])


def test_a_row_of_no_values_is_a_row_of_nulls(table: str, tmp_path: Path) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        a.append([{}])
        a.append([{}, {"id": 1}])
        a.append([])
        a.flush()
        assert (a.metrics.rows, a.last_seq) == (3, 2)
    assert read_arrow(table)["id"].to_pylist() == [None, None, 1]
    filled = str(tmp_path / "filled")
    long = PrimitiveType("long")
    defaults = {"delta.feature.allowColumnDefaults": "supported"}
    create_table(filled, StructType((column_with_default("id", long, "7"),)), properties=defaults)
    with (
        appender(filled, app_id="a") as a,
        pytest.raises(DeltaAnalysisError, match="no columns"),
    ):
        a.append([{}])


def test_rows_against_a_rule_stop_the_appender_after_those_before_them(table: str) -> None:
    add_constraint(table, "positive", "id > 0")
    a = appender(table, app_id="a", every=NEVER)
    before, bad, after = (a.append(rows(*each)) for each in ([1, 2], [3, -1], [4]))
    with pytest.raises(
        AppenderStoppedError, match="at row 1, counted from 0, of the append with seq 1"
    ) as caught:
        a.close()
    assert (caught.value.fields["failed_seq"], caught.value.fields["failed_row"]) == (1, 1)
    assert (caught.value.acknowledged, caught.value.pending) == (0, 2)
    assert isinstance(caught.value.__cause__, ConstraintViolationError)
    assert before.result() == 2
    for each in (bad, after):
        with pytest.raises(AppenderStoppedError):
            each.result()
    with pytest.raises(AppenderStoppedError):
        a.append(rows(5))
    assert ids(table) == [1, 2]


def test_dead_letters_are_the_rows_that_do_not_fit(table: str, tmp_path: Path) -> None:
    add_constraint(table, "positive", "id > 0")
    file = tmp_path / "dead.jsonl"
    with appender(table, app_id="a", every=NEVER, dead_letter=file) as a:
        a.append([{"id": 1}, {"id": "x"}, {"id": 2}, {"wrong": 1}], seq=1)
        a.append([{"id": -5}, {"id": 3}], seq=2)
        a.append([{"id": -6}], seq=3)
        a.append({"id": ["y"]}, seq=4)
        a.flush()
        assert (a.metrics.rejected, a.last_seq, a.metrics.rows) == (5, 4, 3)
        assert [each.seq for each in a.rejected_sample] == [1, 1, 4, 2, 3]
    assert ids(table) == [1, 2, 3]
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["seq"] for each in found] == [1, 1, 4, 2, 3]
    assert found[0]["row"] == {"id": "x"}
    assert "int64" in found[0]["reason"]
    assert "positive" in found[3]["reason"]


def test_a_producer_puts_aside_what_it_can_not_read(table: str) -> None:
    dead: list[UnfitRow] = []
    with appender(table, app_id="a", every=NEVER, dead_letter=dead.extend) as a:
        a.reject({"line": "nothing"}, "no JSON", seq=4)
        a.append(rows(1), seq=4)
        assert a.metrics.rejected == 1
    assert dead == [UnfitRow(4, {"line": "nothing"}, "no JSON")]
    with (
        appender(table, app_id="b") as b,
        pytest.raises(DeltaAnalysisError, match="no dead_letter"),
    ):
        b.reject({}, "no JSON", seq=1)


def test_an_append_of_dead_letters_alone_is_settled(table: str) -> None:
    dead: list[UnfitRow] = []
    with appender(table, app_id="a", every=NEVER, dead_letter=dead.extend) as a:
        assert a.append([{"id": "x"}], seq=1).seq == 1
        assert a.flush() == 1
    assert [each.row for each in dead] == [{"id": "x"}]
    with appender(table, app_id="a") as b:
        assert b.last_seq == 1


def test_dead_letters_that_can_not_be_put_aside_are_not_taken(table: str, tmp_path: Path) -> None:
    with appender(table, app_id="a", every=NEVER, dead_letter=tmp_path / "no" / "file") as a:
        with pytest.raises(FileNotFoundError):
            a.append([{"id": "x"}], seq=1)
        a.append(rows(1), seq=1)
    assert ids(table) == [1]


def test_a_line_of_dead_letters_that_was_cut_spoils_no_other(table: str, tmp_path: Path) -> None:
    file = tmp_path / "dead.jsonl"
    file.write_text('{"seq": 0, "rea')
    with appender(table, app_id="a", every=NEVER, dead_letter=file) as a:
        for each in "xy":
            a.append([{"id": each}])
    cut, *found = file.read_text().splitlines()
    assert cut == '{"seq": 0, "rea'
    assert [json.loads(each)["row"] for each in found] == [{"id": "x"}, {"id": "y"}]


def test_dead_letters_that_come_back_to_their_appender_take_no_number_twice(table: str) -> None:
    def come_back(_: object) -> None:
        a.append(rows(-1))

    with appender(table, app_id="a", every=NEVER, dead_letter=come_back) as a:
        with pytest.raises(DeltaAnalysisError, match="an appender of its own"):
            a.append([{"id": "x"}, {"id": 5}])
        assert a.append(rows(6)).seq == 1
    assert ids(table) == [-1, 6]


def test_a_merging_appender_adds_columns(table: str) -> None:
    with appender(table, app_id="a", every=NEVER, schema_mode="merge") as a:
        a.append([{"id": 1, "extra": 1.5}])
        a.append(pa.table({"id": [2], "more": ["x"]}))
        a.append([{"id": 3}])
    found = read_arrow(table).sort_by("id").select(["id", "extra", "more"]).to_pylist()
    assert found == [
        {"id": 1, "extra": 1.5, "more": None},
        {"id": 2, "extra": None, "more": "x"},
        {"id": 3, "extra": None, "more": None},
    ]


def test_new_columns_of_two_types_are_an_error_of_the_later_rows(table: str) -> None:
    a = appender(table, app_id="a", every=NEVER, schema_mode="merge")
    first = a.append([{"id": 1, "extra": 1}])
    a.append([{"id": 2, "extra": "text"}])
    with pytest.raises(AppenderStoppedError) as caught:
        a.close()
    assert isinstance(caught.value.__cause__, SchemaMismatchError)
    assert caught.value.failed_seq == 1
    assert first.result() == 1
    assert ids(table) == [1]


def test_numbers_that_no_type_of_both_rows_holds_are_no_reason_to_lose_the_first(
    table: str,
) -> None:
    a = appender(table, app_id="a", every=NEVER, schema_mode="merge")
    first = a.append([{"id": 1, "extra": 2**53 + 1}])
    a.append([{"id": 2, "extra": 1.5}])
    with pytest.raises(AppenderStoppedError) as caught:
        a.close()
    assert caught.value.failed_seq == 1
    assert first.result() == 1
    assert read_arrow(table)["extra"].to_pylist() == [2**53 + 1]


def test_defaults_and_numbers_are_filled_in_whatever_columns_rows_have(tmp_path: Path) -> None:
    uri = str(tmp_path / "numbered")
    fields = (identity_column("n"), StructField("id", PrimitiveType("long")))
    create_table(uri, StructType(fields))
    with appender(uri, app_id="a", every=NEVER) as a:
        for each in range(3):
            a.append(rows(each))
        a.flush()
        a.append(rows(3))
    assert read_arrow(uri).sort_by("n")["n"].to_pylist() == [1, 2, 3, 4]


def test_a_default_is_for_rows_that_lack_the_column_whoever_they_come_with(tmp_path: Path) -> None:
    uri = str(tmp_path / "filled")
    fields = (
        StructField("id", PrimitiveType("long")),
        column_with_default("source", PrimitiveType("string"), "'unknown'"),
    )
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    create_table(uri, StructType(fields), properties=properties)
    with appender(uri, app_id="a", every=NEVER) as a:
        a.append([{"id": 1}])
        a.append([{"id": 2, "source": "s"}])
        a.append([{"id": 3, "source": None}])
        a.append([{"id": 4}])
    assert read_arrow(uri).sort_by("id")["source"].to_pylist() == ["unknown", "s", None, "unknown"]


def marked(table: str) -> list[AddFile]:
    """Files that appenders have, or have put together."""
    return [each for each in DeltaLog.for_table(table).snapshot.files() if each.tags]


def test_small_files_are_put_together_as_they_come(table: str) -> None:
    write_arrow(table, rows(-1), mode="append")
    with appender(table, app_id="other", every=NEVER) as other:
        other.append(rows(-2))
    foreign = files(table)
    with appender(table, app_id="a", every=NEVER, compact=True) as a:
        for number in range(40):
            a.append(rows(number))
            a.flush()
    assert a.metrics.compacted >= 32
    assert ids(table) == list(range(-2, 40))
    assert {*files(table)} - {each.path for each in marked(table)} == {*foreign}
    # Of the least size there are fewer than four, but for what was compacted once more.
    assert len(marked(table)) < 4
    history = DeltaLog.for_table(table).history()
    assert 2 <= sum(each.operation == "OPTIMIZE" for each in history) <= 5


def test_no_thread_to_compact_with_stops_no_commit(
    table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "lakelog-appender-compaction":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with appender(table, app_id="a", every=NEVER, compact=True) as a:
        for number in range(17):
            a.append(rows(number))
            a.flush()
    assert ids(table) == list(range(17))
    assert len(marked(table)) == 17
    assert "left to the next one" in caplog.text


def test_partitions_are_put_together_by_themselves(tmp_path: Path) -> None:
    uri = str(tmp_path / "parted")
    create_table(uri, "id bigint, part string", partition_by=["part"])
    with appender(uri, app_id="a", every=NEVER, compact=True) as a:
        for number in range(16):
            a.append([{"id": number, "part": "x"}, {"id": number, "part": "y"}])
            a.flush()
        a.append([{"id": 16, "part": "z"}])
    assert a.metrics.compacted == 32
    assert len(files(uri)) == 3
    assert read_arrow(uri).num_rows == 33


def append_marked(log: DeltaLog, number: int) -> None:
    """As an appender does that compacts, but nobody does it."""
    append_rows(log.start_transaction(), pa.table({"id": [number]}), MARKED)


def compacted_by(looks: Compactor, least: int, *, only_as_last: bool = False) -> int:
    """How many files are missing then, with nothing of it in another thread."""
    return looks._look(least, only_as_last=only_as_last)


def test_appenders_put_the_files_of_each_other_together(table: str) -> None:
    number = 0
    for app in ("a", "b", "c", "d", "e"):
        with appender(table, app_id=app, every=NEVER, compact=True) as a:
            for _ in range(3):
                a.append(rows(number))
                a.flush()
                number += 1
    # Each closes as the last: the second has six files, the third and fourth the rest.
    assert ids(table) == list(range(15))
    assert len(marked(table)) < 4


def test_who_is_not_the_last_leaves_the_end_to_others(table: str) -> None:
    first = appender(table, app_id="first", every=NEVER, compact=True)
    last = appender(table, app_id="last", every=NEVER, compact=True)
    for number in range(6):
        first.append(rows(number))
        first.flush()
    last.append(rows(6))
    last.flush()
    first.close()
    assert (len(marked(table)), first.metrics.compacted) == (7, 0)
    last.close()
    assert (len(marked(table)), last.metrics.compacted) == (1, 7)
    assert ids(table) == list(range(7))


def test_an_appender_that_took_nothing_looks_for_nothing(table: str) -> None:
    with appender(table, app_id="a", every=NEVER, compact=True) as a:
        pass
    assert a._compactor is not None
    assert a._compactor._thread is None


def test_appenders_look_at_different_times(table: str) -> None:
    log = DeltaLog.for_table(table)
    firsts = {Compactor(log, f"app {number}")._left for number in range(200)}
    assert firsts == {*range(1, 17)}


def test_the_next_look_comes_once_there_can_be_enough(table: str) -> None:
    log = DeltaLog.for_table(table)
    assert compacted_by(Compactor(log, "a"), 16) == 16
    for number in range(15):
        append_marked(log, number)
    looks = Compactor(log, "a")
    assert compacted_by(looks, 16) == 1
    append_marked(log, 15)
    assert compacted_by(looks, 16) == 15
    assert looks.files == 16
    assert ids(table) == list(range(16))


def test_what_was_put_together_is_put_together_again(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with appender(table, app_id="one", every=NEVER, compact=True) as a:
        a.append(rows(0))
    least = marked(table)[0].size + 20
    monkeypatch.setattr(f"{COMPACTING}._SIZES", (least, 3 * least))
    monkeypatch.setattr(f"{COMPACTING}._TOGETHER", 4)
    log = DeltaLog.for_table(table)
    for number in range(1, 16):
        append_marked(log, number)
    looks = Compactor(log, "a")
    compacted_by(looks, 4)
    assert ids(table) == list(range(16))
    assert looks.files > 16
    assert len(marked(table)) == 1


@pytest.mark.parametrize(
    "condition", ["id = 7", "name = 'n 11'", "id > 3 and name < 'n 12'", "name is null", "id < 0"]
)
def test_one_row_of_what_was_put_together_is_found(
    table: str, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    monkeypatch.setattr(f"{COMPACTING}._GROUP_ROWS", 5)
    log, names = DeltaLog.for_table(table), [None, *(f"n {each}" for each in range(1, 48))]
    for number in range(16):
        ids = [number + 16 * each for each in range(3)]
        rows = {"id": ids, "name": [names[each] for each in ids]}
        append_rows(log.start_transaction(), pa.table(rows), MARKED)
    expected = read_arrow(log, where=condition).to_pylist()
    compacted_by(Compactor(log, "a"), 16)
    (only,) = files(table)
    assert pq.ParquetFile(f"{table}/{only}").num_row_groups > 5
    found = read_arrow(log, where=condition).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == sorted(expected, key=lambda row: row["id"])
    assert [row["id"] for row in read_arrow(log).to_pylist()[:3]] == [0, 16, 32]


def test_clustered_tables_are_left_to_optimize(tmp_path: Path) -> None:
    uri = str(tmp_path / "clustered")
    create_table(uri, "id bigint", cluster_by=["id"])
    with appender(uri, app_id="a", every=NEVER, compact=True) as a:
        for number in range(17):
            a.append([{"id": number}])
            a.flush()
    assert a.metrics.compacted == 0
    assert len(files(uri)) == 17


def test_whoever_changes_a_small_file_wins(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_table(str(tmp_path / "t"), "id bigint")
    store = FaultyLogStore(LocalLogStore())
    log = log_on(store, tmp_path)

    def rival(_: str) -> None:
        store.before_write = None
        delete_rows(str(tmp_path / "t"), "id = 3")

    for number in range(16):
        append_marked(log, number)
    looks = Compactor(log, "a")
    store.before_write = rival
    with caplog.at_level(logging.INFO, "lakelog"):
        compacted_by(looks, 16)
    assert "left 16 small files to the next one, or to OPTIMIZE" in caplog.text
    assert looks.files == 0
    assert ids(log.table) == [each for each in range(16) if each != 3]


def test_compaction_that_fails_stops_no_appender(
    table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: Any) -> None:
        raise OSError("injected")

    monkeypatch.setattr(Compactor, "_compact", failing)
    with appender(table, app_id="a", every=NEVER, compact=True) as a:
        for number in range(20):
            a.append(rows(number))
            a.flush()
    assert "could not compact 20 small files" in caplog.text
    assert ids(table) == list(range(20))


def test_a_fork_has_no_part_in_its_parents_appender(table: str) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        a.append(rows(1))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                a.close()
                for call in (a.flush, lambda: a.append(rows(2))):
                    with pytest.raises(DeltaAnalysisError, match="is a fork"):
                        call()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ids(table) == [1]


def test_batches_are_spans_and_their_rows_are_counted(table: str) -> None:
    add_constraint(table, "positive", "id > 0")
    with heard() as hears:
        with appender(table, app_id="a", every=NEVER, dead_letter=lambda _: None) as a:
            a.append([{"id": 1}, {"id": "x"}])
            a.append(rows(2, -3))
        assert "lakelog.append > lakelog.commit" in hears.tree()
        assert hears.counts("lakelog.append.rows") == {(): 2}
        assert hears.counts("lakelog.append.rejected") == {(): 2}


def test_back_pressure_says_what_is_acknowledged(tmp_path: Path) -> None:
    store = FaultyLogStore(LocalLogStore())
    create_table(str(tmp_path / "t"), "id bigint")
    log = log_on(store, tmp_path)
    held = threading.Event()
    with appender(log, app_id="a", every=0, max_bytes=3000) as a:
        a.append(rows(0)).result()
        store.before_write = lambda _: held.wait(60)
        try:
            a.append(rows(1))
            a.append(rows(2))
            with pytest.raises(AppenderFullError, match="up to seq 0") as caught:
                a.append(rows(3), timeout=0)
            assert isinstance(caught.value, TimeoutError)
            assert (caught.value.acknowledged, caught.value.pending) == (0, 2)
            with pytest.raises(TimeoutError):
                a.flush(0)
        finally:
            held.set()
        a.append(rows(3), timeout=60)
    assert ids(log.table) == [0, 1, 2, 3]


def test_a_storage_that_fails_for_long_stops_the_appender(tmp_path: Path) -> None:
    create_table(str(tmp_path / "t"), "id bigint")
    store, clock = FaultyLogStore(LocalLogStore()), ManualClock()
    log = log_on(store, tmp_path, clock)
    a = appender(log, app_id="a", every=NEVER, patience="1m")
    first = a.append(rows(0))
    a.flush()
    store.writes.extend([Fault.OSERROR] * 10_000)
    a.append(rows(1))
    with pytest.raises(AppenderStoppedError, match="up to seq 0") as caught:
        a.close()
    assert isinstance(caught.value.__cause__, OSError)
    assert clock.monotonic() >= 60
    assert first.result() == 1
    assert ids(log.table) == [0]


def test_two_appenders_of_one_app_do_not_double_rows(table: str) -> None:
    one, other = (appender(table, app_id="a", every=NEVER) for _ in range(2))
    one.append(rows(1), seq=1)
    one.flush()
    other.append(rows(1), seq=1)
    with pytest.raises(AppenderStoppedError, match="another appender has the same app_id"):
        other.close()
    one.append(rows(2), seq=2)
    one.close()
    assert ids(table) == [1, 2]


def test_a_rival_of_the_same_app_is_seen_as_a_conflict(tmp_path: Path) -> None:
    create_table(str(tmp_path / "t"), "id bigint")
    store = FaultyLogStore(LocalLogStore())
    log = log_on(store, tmp_path)

    def rival(_: str) -> None:
        store.before_write = None
        write_arrow(str(tmp_path / "t"), rows(9), mode="append", app_id="a", app_version=9)

    a = appender(log, app_id="a", every=NEVER)
    store.before_write = rival
    a.append(rows(1), seq=1)
    with pytest.raises(AppenderStoppedError, match="has recorded seq 9"):
        a.close()
    assert ids(log.table) == [9]


def test_a_table_that_is_dropped_is_not_made_again(table: str) -> None:
    a = appender(table, app_id="a", every=NEVER)
    shutil.rmtree(table)
    a.append(rows(1))
    with pytest.raises(AppenderStoppedError) as caught:
        a.close()
    assert isinstance(caught.value.__cause__, TableNotFoundError)


def test_a_table_that_was_made_again_is_another(table: str) -> None:
    a = appender(table, app_id="a", every=NEVER)
    a.append(rows(1))
    shutil.rmtree(table)
    create_table(table, "id bigint")
    with pytest.raises(AppenderStoppedError, match="dropped"):
        a.close()
    assert ids(table) == []


def test_what_others_do_to_the_table_is_no_reason_to_stop(table: str) -> None:
    with appender(table, app_id="a", every=NEVER) as a:
        for number, change in enumerate(
            [
                lambda: add_columns(table, "more int"),
                lambda: set_properties(table, {"delta.checkpointInterval": "2"}),
                lambda: add_constraint(table, "few", "id < 100"),
                lambda: drop_constraint(table, "few"),
                lambda: optimize(table),
                lambda: vacuum(table),
                lambda: delete_rows(table, "id = 0"),
                lambda: write_arrow(table, rows(50), mode="append"),
            ]
        ):
            a.append(rows(number))
            change()
            a.flush()
    assert ids(table) == [1, 2, 3, 4, 5, 6, 7, 50]


def test_a_column_that_is_dropped_meanwhile_refuses_its_rows(table: str) -> None:
    a = appender(table, app_id="a", every=NEVER)
    a.append([{"id": 1}])
    a.append([{"id": 2, "name": "x"}])
    a.append([{"id": 3}])
    write_arrow(table, pa.table({"id": [0]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(AppenderStoppedError) as caught:
        a.close()
    assert caught.value.failed_seq == 1
    assert ids(table) == [0, 1]


def test_threads_share_an_appender(table: str) -> None:
    with appender(table, app_id="a", every=0.001, max_bytes=20_000) as a:

        def work(first: int) -> None:
            for number in range(first, first + 50):
                a.append(rows(number))

        threads = [threading.Thread(target=work, args=(100 * each,)) for each in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert ids(table) == sorted(100 * one + other for one in range(8) for other in range(50))


def test_coroutines_append(table: str) -> None:
    async def work() -> None:
        async with appender(table, app_id="a", every=0, max_bytes=3000) as a:
            tickets = [await a.append(rows(each), seq=each) for each in range(20)]
            for each in tickets:
                assert await each >= 1
            assert (a.last_seq, a.metrics.rows) == (19, 20)
            assert await a.flush() >= 1

    asyncio.run(work())
    assert ids(table) == list(range(20))


def test_a_stream_that_waits_for_room_is_read_once(table: str) -> None:
    def batches(first: int) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": pa.array(range(first, first + 100), pa.int64())})

    async def work() -> None:
        async with appender(table, app_id="a", every=0, max_bytes=1) as a:
            for each in range(0, 800, 200):
                await a.append(batches(each))
                schema = pa.schema([("id", pa.int64())])
                reader = pa.RecordBatchReader.from_batches(schema, batches(each + 100))
                await a.append(reader)

    asyncio.run(work())
    assert ids(table) == list(range(800))


@pytest.mark.parametrize(
    "given",
    [
        {"every": "soon"},
        {"every": -1},
        {"patience": "1 week"},
        {"max_bytes": 0},
        {"app_id": ""},
        {"app_id": 5},
        {"schema_mode": "overwrite"},
        {"compact": "yes"},
        {"save_every": "soon"},
        {"every": "１s"},
        {"dead_letter": 5},
        {"dead_letter": b"file"},
        {"dead_letter": ""},
        {"dead_letter": "."},
    ],
)
def test_arguments_are_checked(table: str, given: dict[str, Any]) -> None:
    with pytest.raises(DeltaAnalysisError, match=next(iter(given))):
        appender(table, **{"app_id": "a", **given})


@pytest.mark.parametrize("every", ["1500ms", "1.5s", timedelta(seconds=1.5), 1.5])
def test_intervals_are_written_in_several_ways(table: str, every: Any) -> None:
    with appender(table, app_id="a", every=every) as a:
        assert a._intake.every == 1.5


def test_the_limit_of_an_interval_is_said(table: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="less than 1,000,000 seconds"):
        appender(table, app_id="a", every="300h")


def test_a_table_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        appender(str(tmp_path / "no"), app_id="a")


def test_a_closed_appender_takes_no_rows(table: str) -> None:
    a = appender(table, app_id="a")
    a.close()
    a.close()
    with pytest.raises(DeltaAnalysisError, match="is closed"):
        a.append(rows(1))


@pytest.mark.parametrize("save_every", [None, "1h", 0])
def test_what_is_aborted_is_not_committed(table: str, save_every: Any) -> None:
    saves = save_every == 0
    with appender(table, app_id="a", every="1h", save_every=save_every) as a:
        done = a.append([{"id": 1}])
        a.flush()
        dropped = a.append([{"id": 2}])
        if saves:
            dropped.wait_saved(60)
        a.abort()
        a.abort()
        with pytest.raises(DeltaAnalysisError, match="is closed"):
            a.append([{"id": 3}])
        with pytest.raises(AppenderStoppedError, match=f"{int(not saves)} after that were dropped"):
            dropped.result(0)
        assert done.result(0) == a.flush()
        assert (a.last_seq, a.metrics.pending, a.metrics.pending_bytes) == (int(saves), 0, 0)
    assert read_arrow(table)["id"].to_pylist() == [1]
    with appender(table, app_id="a") as a:
        assert a.last_seq == int(saves)
    assert sorted(read_arrow(table)["id"].to_pylist()) == [1, 2][: 1 + saves]


def test_the_commit_that_an_abort_meets_comes_to_its_end(tmp_path: Path) -> None:
    store = FaultyLogStore(LocalLogStore({}))
    log = log_on(store, tmp_path)
    create_table(log, "id bigint")
    begun, go_on = threading.Event(), threading.Event()

    def meets(_path: str) -> None:
        begun.set()
        assert go_on.wait(60)

    store.before_write = meets
    a = appender(log, app_id="a", every=0)
    first = a.append([{"id": 1}])
    assert begun.wait(60)
    second = a.append([{"id": 2}])
    with pytest.raises(TimeoutError):
        a.abort(0)
    assert second.done()
    assert not first.done()
    go_on.set()
    a.abort()
    assert (first.result(0), a.last_seq) == (log.update().version, 0)
    assert read_arrow(log)["id"].to_pylist() == [1]


_NANOSECOND = pa.array([1], pa.timestamp("ns", "UTC"))


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        pa.table({"at": _NANOSECOND}),
        pa.table({"AT": pa.array([1 << 62], pa.timestamp("s", "UTC"))}),
        pa.table({"all": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), _NANOSECOND)}),
        pa.table({"s": pa.StructArray.from_arrays([_NANOSECOND], ["at"])}),
        pd.DataFrame({"at": [pd.Timestamp(1, tz="UTC")]}),
        pa.table({"new": _NANOSECOND}),
        {"new": np.array([1], "datetime64[ns]")},
        {"number": [5]},
        [{"number": 5}],
        [{"number": None}],
        pa.table({"Number": [5]}),
    ],
    ids=lambda given: str(getattr(given, "schema", given))[:30],
)
def test_what_the_table_would_never_take_is_not_saved(
    tmp_path: Path, given: Any, merges: bool
) -> None:
    table, time = str(tmp_path / "t"), PrimitiveType("timestamp")
    fields = [StructField("id", PrimitiveType("long")), StructField("at", time)]
    fields += [StructField("all", ArrayType(time, contains_null=True))]
    fields += [StructField("s", StructType((StructField("at", time),)))]
    create_table(table, StructType((*fields, identity_column("number"))))
    mode: Any = "merge" if merges else None
    with appender(table, app_id="a", save_every=0, schema_mode=mode) as a:
        with pytest.raises(DeltaAnalysisError):
            a.append(given, seq=0)
        a.append(rows(1), seq=0).wait_saved(60)
        milliseconds = pa.array([1], pa.timestamp("ms", "UTC"))
        a.append(pa.table({"id": [2], "at": milliseconds}), seq=1).wait_saved(60)
    assert ids(table) == [1, 2]
    appender(table, app_id="a").close()


def test_after_the_last_number_there_is_none(table: str) -> None:
    with appender(table, app_id="a") as a:
        a.append([{"id": 1}], seq=(1 << 63) - 1)
        with pytest.raises(DeltaAnalysisError, match="another app_id"):
            a.append([{"id": 2}])
    assert read_arrow(table)["id"].to_pylist() == [1]


@pytest.mark.parametrize("given", [{"id": 1}, {"name": "abc"}, {"name": b"a"}, {"name": {"a": 1}}])
@pytest.mark.parametrize("dead_letter", [None, lambda _: None])
def test_a_dict_that_is_meant_for_a_row_is_no_columns(
    table: str, given: Any, dead_letter: Any
) -> None:
    says = "one row is a list of one dict"
    with appender(table, app_id="a", dead_letter=dead_letter) as a:
        with pytest.raises(DeltaAnalysisError, match=says):
            a.append(given)
        assert a.metrics.rejected == 0
    with pytest.raises(DeltaAnalysisError, match=says):
        write_arrow(table, given, mode="append")
    with pytest.raises(DeltaAnalysisError, match=says):
        write_arrow(f"{table}-2", given)


def test_texts_of_times_are_times(tmp_path: Path) -> None:
    table, dead = str(tmp_path / "t"), list[UnfitRow]()
    create_table(
        table,
        "id bigint, t timestamp, n timestamp_ntz, d date, "
        "s struct<t: timestamp, d: array<date>>, m map<date, timestamp>",
    )
    noon, day = "2026-01-31T12:00:00", "2026-01-31"
    good: list[dict[str, Any]] = [
        {"t": f"{noon}Z"},
        {"t": "2026-01-31T14:00:00.000+02:00"},
        {"t": noon, "n": f"{noon}.000001", "d": day},
        {"s": {"t": f"{noon}Z", "d": [day, None]}},
        {"s": (f"{noon}Z", (day,))},
        {"m": {day: f"{noon}Z"}},
        {"m": [(day, None)]},
    ]
    bad: list[dict[str, Any]] = [
        {"t": "noon"},
        {"t": f"{noon}.0000001Z"},
        {"n": f"{noon}Z"},
        {"d": noon},
        {"d": "2026-02-30"},
        {"s": {"d": ["today"]}},
        {"m": {"today": None}},
    ]
    with appender(table, app_id="a", dead_letter=dead.extend) as a:
        a.append([{"id": at, **each} for at, each in enumerate(good)])
        a.append(bad)
    assert [each.row for each in dead] == bad
    assert all("ISO 8601" in each.reason or "time zone" in each.reason for each in dead)
    rows = read_arrow(table).sort_by("id").to_pylist()
    there = [{name: each for name, each in row.items() if each is not None} for row in rows]
    utc = datetime(2026, 1, 31, 12, tzinfo=UTC)
    local = utc.replace(tzinfo=None)
    date = local.date()
    assert there == [
        {"id": 0, "t": utc},
        {"id": 1, "t": utc},
        {"id": 2, "t": utc, "n": local.replace(microsecond=1), "d": date},
        {"id": 3, "s": {"t": utc, "d": [date, None]}},
        {"id": 4, "s": {"t": utc, "d": [date]}},
        {"id": 5, "m": [(date, utc)]},
        {"id": 6, "m": [(date, None)]},
    ]


@pytest.mark.parametrize("fault", [each for each in Fault if "CRASH" not in each.name])
def test_a_reply_that_is_lost_or_wrong_is_no_reason_to_stop(tmp_path: Path, fault: Fault) -> None:
    create_table(str(tmp_path / "t"), "id bigint")
    store = FaultyLogStore(LocalLogStore())
    with appender(log_on(store, tmp_path, ManualClock()), app_id="a", every=NEVER) as a:
        for number in range(3):
            a.append(rows(number), seq=number)
            store.writes.append(fault)
            a.flush()
    store.deliver_late()
    assert ids(str(tmp_path / "t")) == [0, 1, 2]


@pytest.mark.parametrize("fault", [Fault.LANDS_UNKNOWN, Fault.LANDS_OSERROR, Fault.LATE_UNKNOWN])
def test_appenders_of_one_log_that_commit_as_a_group_lose_nothing(
    tmp_path: Path, fault: Fault
) -> None:
    create_table(str(tmp_path / "t"), "id bigint")
    store = FaultyLogStore(LocalLogStore())
    log = log_on(store, tmp_path)
    apps = [appender(log, app_id=f"app-{each}", every=NEVER) for each in range(4)]
    for number in range(10):
        for at, each in enumerate(apps):
            each.append(rows(100 * at + number), seq=number)
        store.writes.append(fault)
        threads = [threading.Thread(target=each.flush) for each in apps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for each in apps:
        each.close()
        assert each.last_seq == 9
    store.deliver_late()
    expected = [100 * at + number for at in range(4) for number in range(10)]
    assert ids(str(tmp_path / "t")) == expected


@pytest.mark.parametrize("number", [1, 4])
def test_a_commit_that_no_reader_finds_is_not_acknowledged(
    table: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def vanishing(*_: Any) -> int:
        raise InvalidCommittedVersionError("not there", table=table, version=1)

    monkeypatch.setattr(f"{COMMITTING}.append_rows", vanishing)
    a = appender(table, app_id="a", every=NEVER)
    tickets = [a.append(rows(each)) for each in range(number)]
    with pytest.raises(AppenderStoppedError, match="not there"):
        a.close()
    assert all(each.done() for each in tickets)
    assert a.last_seq == -1


@pytest.mark.parametrize("others", [0, 2])
def test_a_commit_whose_outcome_is_unknown_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint")

    def unknown(*given: Any) -> int:
        append_rows(*given)
        for each in range(others):
            write_arrow(uri, rows(-each), mode="append")
        raise CommitOutcomeUnknownError(uri, "injected")

    monkeypatch.setattr(f"{COMMITTING}.append_rows", unknown)
    log = log_on(LocalLogStore(), tmp_path, ManualClock())
    with appender(log, app_id="a", every=NEVER) as a:
        for number in range(2):
            ticket = a.append(rows(number + 1))
            a.flush()
            assert ticket.result() == 1 + number * (1 + others)
        assert a.metrics.retries == 2
    assert [each for each in ids(uri) if each > 0] == [1, 2]


def test_a_hook_that_fails_after_the_commit_does_not_repeat_it(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: Any) -> int:
        version = append_rows(*given).version
        raise PostCommitError("the hook failed", table=table, version=version)

    monkeypatch.setattr(f"{COMMITTING}.append_rows", failing)
    with appender(table, app_id="a", every=NEVER) as a:
        assert a.append(rows(1)).seq == 0
        assert a.flush() == 1
    assert ids(table) == [1]
