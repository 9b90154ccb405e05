from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from lakelog.core import (
    DeltaLog,
    Operation,
    delete_rows,
    merge,
    optimize,
    read_arrow,
    scan,
    write_arrow,
)
from lakelog.core.alter import set_properties
from lakelog.core.errors import ConcurrentAppendException, DeltaAnalysisError
from lakelog.core.telemetry import catalogue, later, otel, switch
from lakelog.core.telemetry.losses import tell_lost
from lakelog.core.telemetry.switch import UNSEEN, observed, observing
from support.tables import add_file, new_table, schema_json
from support.telemetry import Heard, forget_providers, heard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.core.telemetry.switch import Seen


@pytest.fixture
def hears() -> Iterator[Heard]:
    with heard() as found:
        yield found


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [1, 2, 3]}, conf={"spark.lakelog.telemetry": "off"})
    return uri


def test_a_commits_span_is_a_child_of_the_commands_and_attempts_of_the_commits(
    hears: Heard, table: str
) -> None:
    with trace.get_tracer("job").start_as_current_span("job"):
        write_arrow(table, {"id": [4]}, mode="append")
    assert hears.tree() == [
        "lakelog.command > lakelog.commit",
        "job > lakelog.command",
        "job",
    ]
    (command,), (commit,) = hears.named("lakelog.command"), hears.named("lakelog.commit")
    assert command.attributes is not None
    assert commit.attributes is not None
    assert dict(command.attributes) == {
        "lakelog.table": table,
        "lakelog.command": "write",
    }
    assert commit.attributes["lakelog.version"] == 1
    assert commit.attributes["lakelog.outcome"] == "committed"
    assert command.context
    assert len({each.context.trace_id for each in hears.spans if each.context}) == 1


def test_commands_commits_and_files_are_counted_with_units_and_buckets(
    hears: Heard, table: str
) -> None:
    for number in range(3):
        write_arrow(table, {"id": [number]}, mode="append")
    delete_rows(table, "id = 0")
    optimize(table)
    assert hears.counts("lakelog.command.duration") == {
        ("write",): 3,
        ("delete",): 1,
        ("optimize",): 1,
    }
    attempts = {("WRITE", "committed"): 3, ("DELETE", "committed"): 1, ("OPTIMIZE", "committed"): 1}
    assert hears.counts("lakelog.commit.attempts") == attempts
    assert hears.counts("lakelog.commit.duration") == attempts
    files = hears.counts("lakelog.commit.files")
    assert files["added", "WRITE"] == 3
    assert files["removed", "DELETE"] == 1
    (size, *_) = hears.points()["lakelog.commit.data.size"]
    assert size.value > 0
    (point, *_) = hears.points()["lakelog.commit.duration"]
    assert point.explicit_bounds == catalogue.BUCKETS


def test_a_merge_and_a_change_of_properties_are_commands(hears: Heard, table: str) -> None:
    merge(
        table, pa.table({"id": [3, 9]}), "target.id = source.id"
    ).when_not_matched_insert_all().execute()
    set_properties(table, {"delta.checkpointInterval": "5"})
    spans = hears.named("lakelog.command")
    commands = [dict(each.attributes or {})["lakelog.command"] for each in spans]
    assert commands == ["merge", "set properties"]


def test_a_checkpoint_is_a_child_of_its_commit(hears: Heard, table: str) -> None:
    set_properties(table, {"delta.checkpointInterval": "2"})
    write_arrow(table, {"id": [4]}, mode="append")
    assert "lakelog.commit > lakelog.checkpoint" in hears.tree()
    assert sum(hears.counts("lakelog.checkpoint.duration").values()) == 1


def test_a_scan_has_its_rows_and_leaves_the_callers_span_alone(hears: Heard, table: str) -> None:
    write_arrow(table, {"id": [4]}, mode="append")
    with trace.get_tracer("job").start_as_current_span("job") as job:
        for _ in scan(table).to_batches():
            assert trace.get_current_span() is job
    assert "job > lakelog.scan" in hears.tree()
    (span,) = hears.named("lakelog.scan")
    assert span.attributes is not None
    assert (span.attributes["lakelog.rows"], span.attributes["lakelog.files"]) == (4, 2)
    read_arrow(table, where="id > 1")
    assert hears.counts("lakelog.scan.rows") == {(): 7}
    assert hears.counts("lakelog.scan.duration") == {(): 2}


def test_a_scan_that_is_not_taken_to_its_end_is_no_failure(hears: Heard, table: str) -> None:
    batches = scan(table).to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    (span,) = hears.named("lakelog.scan")
    assert span.status.is_unset


def test_a_lost_race_and_a_conflict_say_who_won(hears: Heard, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    new_table(uri, schema=schema_json(id="long"))
    loser = DeltaLog.for_table(uri).start_transaction()
    rebased = DeltaLog.for_table(uri).start_transaction()
    loser.filter_files()
    DeltaLog.for_table(uri).start_transaction().commit([add_file("a")], Operation.write("Append"))
    rebased.commit([add_file("b")], Operation.write("Append"))
    with pytest.raises(ConcurrentAppendException):
        loser.commit([add_file("c")], Operation.write("Overwrite"))
    spans = [dict(each.attributes or {}) for each in hears.named("lakelog.commit.attempt")]
    outcomes = [each["lakelog.outcome"] for each in spans]
    # A first attempt that commits has none.
    assert outcomes == ["conflict-rebased", "committed", "conflict-failed"]
    assert hears.tree().count("lakelog.commit > lakelog.commit.attempt") == 3
    lost = hears.named("lakelog.commit.attempt")[0]
    commits = {each.context.span_id: each for each in hears.named("lakelog.commit") if each.context}
    assert lost.parent is not None
    rebasing = commits[lost.parent.span_id]
    times = [rebasing.start_time, lost.start_time, lost.end_time, rebasing.end_time]
    assert times == sorted(each or 0 for each in times)
    assert spans[-1]["lakelog.conflict"] == "DELTA_CONCURRENT_APPEND"
    assert spans[-3]["lakelog.winner.version"] == 1
    commit = hears.named("lakelog.commit")[-1]
    assert commit.attributes is not None
    assert commit.attributes["error.type"] == "ConcurrentAppendException"
    assert commit.status.description is None
    assert not commit.events
    assert hears.counts("lakelog.commit.conflicts") == {("DELTA_CONCURRENT_APPEND", "WRITE"): 1}
    # Every attempt has ended, and none is left as the caller's span.
    assert not trace.get_current_span().get_span_context().is_valid
    waits = hears.counts("lakelog.commit.wait.duration")
    assert waits["backoff",] == 2


def test_work_of_our_threads_is_in_the_callers_trace(hears: Heard) -> None:
    from lakelog.logstores.threads import at_once

    tracer = trace.get_tracer("job")
    gate = threading.Barrier(2, timeout=30)

    def work(_: int) -> None:
        gate.wait()
        with tracer.start_as_current_span("request"):
            pass

    with tracer.start_as_current_span("job"):
        at_once(work, [1, 2], 2, "lakelog-test")
    assert hears.tree() == ["job > request", "job > request", "job"]


def test_what_begins_within_has_the_span_as_its_parent_before_it_is_over(hears: Heard) -> None:
    tracer = trace.get_tracer("store")

    def work(seen: Seen) -> None:
        with tracer.start_as_current_span("request"):
            pass
        trace.get_current_span().set_attribute("of a library", 1)
        seen.note(version=7)

    with tracer.start_as_current_span("job"):
        observing({}, catalogue.COMMIT, "/t", work, operation="WRITE")
    assert hears.tree() == ["lakelog.commit > request", "job > lakelog.commit", "job"]
    (commit,) = hears.named("lakelog.commit")
    assert dict(commit.attributes or {}) == {
        "lakelog.table": "/t",
        "lakelog.operation": "WRITE",
        "lakelog.version": 7,
        "of a library": 1,
    }


def test_threads_that_begin_within_at_once_have_one_parent(hears: Heard) -> None:
    from lakelog.logstores.threads import at_once

    gate = threading.Barrier(4, timeout=30)

    def request(_: int) -> None:
        gate.wait()
        trace.get_tracer("store").start_span("request").end()

    observing({}, catalogue.COMMIT, "/t", lambda _: at_once(request, range(4), 4, "lakelog-test"))
    assert hears.tree() == ["lakelog.commit > request"] * 4 + ["lakelog.commit"]


def test_a_span_that_ends_while_another_thread_asks_for_it_is_made_once(hears: Heard) -> None:
    begun, goes_on, made = threading.Event(), threading.Event(), []

    class Slow(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            made.append(span)
            begun.set()
            assert goes_on.wait(30)

    provider: Any = trace.get_tracer_provider()
    provider.add_span_processor(Slow())
    seen = observed({}, catalogue.COMMIT, "/t", operation="WRITE")
    assert isinstance(seen, otel.SeenSpan)
    asks, ends = threading.Thread(target=seen.is_recording), threading.Thread(target=seen.over)
    asks.start()
    assert begun.wait(30)
    ends.start()
    goes_on.set()
    for each in (asks, ends):
        each.join(30)
    assert len(made) == len(hears.spans) == 1


def test_a_processor_that_asks_for_the_current_span_is_told_the_callers(hears: Heard) -> None:
    asked = []

    class Asks(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            asked.append((span.name, trace.get_current_span().get_span_context().is_valid))

    provider: Any = trace.get_tracer_provider()
    provider.add_span_processor(Asks())
    request = trace.get_tracer("store").start_span
    observing({}, catalogue.COMMIT, "/t", lambda _: request("request").end())
    assert asked == [("lakelog.commit", False), ("request", True)]


def test_measurements_that_nobody_reads_do_not_heap_up(
    hears: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(later, "_MANY", 10)
    made = switch._otel({})
    assert made is not None
    for _ in range(25):
        with observed({}, catalogue.SCAN, "/t") as seen:
            seen.count(catalogue.SCAN_ROWS, 2)
        assert len(made.later._work) < 10
    assert hears.counts("lakelog.scan.rows") == {(): 50}
    assert hears.counts("lakelog.scan.duration") == {(): 25}


def test_nothing_is_lost_where_work_that_waits_adds_more_of_it(hears: Heard) -> None:
    made = switch._otel({})
    assert made is not None
    for _ in range(1500):  # more than wait, and nobody reads
        with observed({}, catalogue.SCAN, "/t") as seen:

            def count(of: Seen = seen) -> None:
                for _ in range(3):
                    of.count(catalogue.SCAN_ROWS, 1)

            seen.later(count)
    assert hears.counts("lakelog.scan.rows") == {(): 4500}
    assert hears.counts("lakelog.scan.duration") == {(): 1500}


def test_a_span_of_another_process_is_a_link(hears: Heard) -> None:
    remote = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with observed({}, catalogue.BATCH, "/t", link=remote, batch=3):
        pass
    (batch,) = hears.spans
    assert batch.parent is None
    assert [each.context.span_id for each in batch.links] == [0xB7AD6B7169203331]
    with observed({}, catalogue.BATCH, "/t", link="rubbish"):
        pass
    assert hears.spans[-1].parent is None


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, -1.0, None])
def test_what_is_no_amount_is_not_counted(hears: Heard, amount: float | None) -> None:
    with observed({}, catalogue.COMMAND, "/t", command="write") as seen:
        seen.count(catalogue.CONFLICTS, amount)
    assert "lakelog.commit.conflicts" not in hears.points()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/lake/\ud800", "/lake/?"),
        ('/lake/a"b\n{c="d"}\\', '/lake/a"b\n{c="d"}\\'),
        ("/" + "x" * 10_000 + "end", "…" + "x" * 252 + "end"),
        ("s3://key:secret@bucket/t", "s3://******@bucket/t"),
        ("https://h/t?sig=abc&x=1", "https://h/t?sig=******&x=1"),
        ("abfss://container@account.dfs.core.windows.net/t",) * 2,
    ],
)
def test_the_name_of_a_table_is_text_without_secrets(hears: Heard, given: str, shown: str) -> None:
    with observed({}, catalogue.COMMAND, given, command="write"):
        pass
    (span,), (point,) = hears.spans, hears.points()["lakelog.command.duration"]
    assert span.attributes is not None
    assert span.attributes["lakelog.table"] == shown == point.attributes["lakelog.table"]
    shown.encode()


def test_a_metric_has_no_more_than_so_many_tables(
    hears: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "_MOST_TABLES", 3)
    monkeypatch.setattr(otel, "_seen", {})
    for number in range(5):
        with observed({}, catalogue.COMMAND, f"/{number}", command="write"):
            pass
    points = hears.points()["lakelog.command.duration"]
    tables = {each.attributes["lakelog.table"]: each.count for each in points}
    assert tables == {"/0": 1, "/1": 1, "/2": 1, "other": 2}


def test_an_exporter_that_fails_costs_no_commit(
    hears: Heard, table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(otel.Otel, "record", fail)
    tell_lost.cache_clear()
    for number in range(3):
        write_arrow(table, {"id": [number]}, mode="append")
    assert not hears.points()
    assert DeltaLog.for_table(table).update().version == 3
    assert caplog.text.count("metrics and spans were lost") == 1


def test_a_processor_of_spans_that_fails_costs_no_commit(
    hears: Heard, table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            raise RuntimeError("broken")

    provider: Any = trace.get_tracer_provider()
    provider.add_span_processor(Broken())
    tell_lost.cache_clear()
    for number in range(3):
        assert write_arrow(table, {"id": [number]}, mode="append") == number + 1
    assert caplog.text.count("metrics and spans were lost") == 1


def test_an_opentelemetry_that_is_broken_costs_no_commit(
    hears: Heard, table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = []

    def fail(*_: Any) -> None:
        made.append(1)
        raise ImportError("broken")

    monkeypatch.setattr(otel.Otel, "__init__", fail)
    tell_lost.cache_clear()
    for number in range(3):
        write_arrow(table, {"id": [number]}, mode="append")
    assert DeltaLog.for_table(table).update().version == 3
    assert len(made) == 1
    assert caplog.text.count("metrics and spans were lost") == 1


def test_an_abandoned_scan_may_end_while_its_thread_is_at_a_count(hears: Heard, table: str) -> None:
    write_arrow(table, {"id": [4]}, mode="append")
    made = switch._otel({})
    assert made is not None
    batches = scan(table).to_batches()
    next(batches)
    with made._lock:
        batches.close()  # type: ignore[attr-defined]
    assert hears.counts("lakelog.scan.files") == {(): 2}


def test_off_is_off_whatever_is_set_up(hears: Heard, table: str) -> None:
    write_arrow(table, {"id": [4]}, mode="append", conf={"spark.lakelog.telemetry": "off"})
    assert not hears.spans


def test_a_commit_asks_its_store_for_the_same_whether_it_is_watched_or_not(
    hears: Heard, table: str
) -> None:
    asked = []
    for mode in ("off", "auto"):
        txn = DeltaLog.for_table(table, {"spark.lakelog.telemetry": mode}).start_transaction()
        txn.commit([add_file(mode)], Operation.write("Append"))
        asked.append([each.requests for each in txn.attempts])
    assert asked[0] == asked[1]


def test_a_wrong_mode_is_refused_before_anything_is_written(table: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"spark\.lakelog\.telemetry must be one of"):
        write_arrow(table, {"id": [4]}, mode="append", conf={"spark.lakelog.telemetry": "yes"})


def test_the_sdk_switched_off_switches_this_off(
    hears: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert observed({}, catalogue.COMMAND, "/t") is UNSEEN


def test_an_api_without_a_provider_makes_nothing() -> None:
    forget_providers()
    assert observed({}, catalogue.COMMAND, "/t") is UNSEEN
