"""Large commits: streamed, tried once, checkpointed."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core.actions import AddFile, Metadata, SetTransaction
from lakelog.core.actions.operation import Operation
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.dml.arrow_write import write_arrow
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    DeltaAnalysisError,
    InvalidCommittedVersionError,
    PostCommitError,
    UnsupportedFeatureError,
)
from lakelog.core.log.file_names import commit_path
from lakelog.logstores import LocalLogStore
from support.faults import Fault, FaultyLogStore
from support.manual_clock import ManualClock
from support.tables import ID_SCHEMA, add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Any

    from lakelog.core import Progress
    from lakelog.core.actions import Action
    from lakelog.core.table_log import TableLog
    from lakelog.core.transaction.optimistic import OptimisticTransaction

CONVERT = Operation("CONVERT", {"numFiles": 3}, {"numConvertedFiles": 3})
APPEND = Operation.write("Append")
MANY = 100_000


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def new(uri: str) -> OptimisticTransaction:
    txn = DeltaLog.for_table(uri).start_transaction()
    txn.update_metadata(Metadata(id="id", schema_string=ID_SCHEMA))
    return txn


def over(store: FaultyLogStore, table: str) -> DeltaLog:
    return DeltaLog(table, store, DeltaConf.from_mapping(None), ManualClock())


def files(count: int) -> Iterator[AddFile]:
    return (add_file(f"part-{number:06d}.parquet") for number in range(count))


def lines(log: TableLog, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.store.read(commit_path(log.table, version))]


def test_a_new_table_is_made_of_a_stream(uri: str) -> None:
    txn = new(uri)
    assert txn.commit_large(files(3), CONVERT) == 0
    written = lines(txn.delta_log, 0)
    assert [next(iter(line)) for line in written] == [
        "commitInfo",
        "metaData",
        "add",
        "add",
        "add",
        "protocol",
    ]
    info = written[0]["commitInfo"]
    assert (info["readVersion"], info["isolationLevel"]) == (-1, "Serializable")
    assert (info["isBlindAppend"], "dataChange" in info) == (False, False)
    assert info["operationMetrics"] == {"numConvertedFiles": "3"}
    assert DeltaLog.for_table(uri).snapshot.num_files == 3


def test_it_is_checkpointed_whatever_the_version_and_no_hook_runs(uri: str) -> None:
    log = new_table(uri)
    ran: list[object] = []
    txn = log.start_transaction()
    txn.register_post_commit_hook(ran.append)
    assert txn.commit_large([add_file("a"), SetTransaction(app_id="x", version=1)], CONVERT) == 1
    names = {each.base_name for each in _log_files(log)}
    assert f"{1:020d}.checkpoint.parquet" in names
    assert ran == []
    written = lines(log, 1)
    assert [next(iter(line)) for line in written] == ["commitInfo", "metaData", "add", "txn"]
    assert written[0]["commitInfo"]["readVersion"] == 0
    assert log.snapshot.transactions == {"x": 1}


def _log_files(log: DeltaLog) -> Any:
    from pyarrow.fs import FileSelector

    return log.store.filesystem.get_file_info(FileSelector(f"{log.table}/_delta_log"))


def test_a_taken_version_ends_it_and_names_the_winner(uri: str) -> None:
    log = new_table(uri)
    txn = log.start_transaction()
    DeltaLog.for_table(uri).start_transaction().commit([add_file("theirs")], APPEND)
    with pytest.raises(ConcurrentWriteException, match="DELTA_CONCURRENT_WRITE") as caught:
        txn.commit_large(files(3), CONVERT)
    assert caught.value.winning_version == 1
    assert caught.value.commit_info["operation"] == "WRITE"
    assert [each.outcome for each in txn.attempts] == ["conflict-failed"]
    assert log.update().version == 1
    assert log.snapshot.num_files == 1


@pytest.mark.parametrize("fault", [Fault.LANDS_UNKNOWN, Fault.LANDS_EXISTS, Fault.LANDS_OSERROR])
def test_a_lost_reply_is_found(uri: str, fault: Fault) -> None:
    log = over(FaultyLogStore(new_table(uri).store, fault), uri)
    assert log.start_transaction().commit_large(files(3), CONVERT) == 1
    assert log.update().num_files == 3


def test_what_the_storage_does_not_say_is_unknown_and_not_tried_again(uri: str) -> None:
    store = FaultyLogStore(new_table(uri).store, Fault.LOST_UNKNOWN)
    with pytest.raises(CommitOutcomeUnknownError):
        over(store, uri).start_transaction().commit_large(files(3), CONVERT)
    assert [path for operation, path in store.calls if operation == "write"] == [
        commit_path(uri, 1)
    ]


def test_a_refusal_of_the_storage_means_that_nothing_is_there(uri: str) -> None:
    log = over(FaultyLogStore(new_table(uri).store, Fault.OSERROR), uri)
    with pytest.raises(OSError, match="injected") as caught:
        log.start_transaction().commit_large(files(3), CONVERT)
    assert "Version 1 of" in "".join(caught.value.__notes__)
    assert log.update().version == 0


def test_a_stream_that_breaks_off_leaves_nothing(uri: str) -> None:
    def broken() -> Iterator[AddFile]:
        yield from files(2500)
        raise LookupError("the list of files ended early")

    txn = new(uri)
    with pytest.raises(LookupError):
        txn.commit_large(broken(), CONVERT)
    assert not DeltaLog.for_table(uri).table_exists()


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (lambda: replace(add_file("x"), partition_values={"p": "1"}), DeltaAnalysisError, "PARTIT"),
        (lambda: Metadata(id="b", schema_string="{}"), DeltaAnalysisError, "takes its metaData"),
        (lambda: _with_vector(), UnsupportedFeatureError, "DELETION_VECTORS_DISALLOWED"),
    ],
)
def test_actions_are_checked_as_they_pass(
    uri: str, bad: Callable[[], Action], error: type[Exception], message: str
) -> None:
    def stream() -> Iterator[Action]:
        yield from files(1500)
        yield bad()

    txn = new(uri)
    with pytest.raises(error, match=message):
        txn.commit_large(stream(), CONVERT)
    assert not DeltaLog.for_table(uri).table_exists()


def _with_vector() -> AddFile:
    from lakelog.core.actions import DeletionVectorDescriptor

    vector = DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv="x", size_in_bytes=1, cardinality=1
    )
    return replace(add_file("x"), deletion_vector=vector)


def test_data_change_is_compared_over_the_whole_stream(tmp_path: Path) -> None:
    key = "spark.databricks.delta.commitValidation.consistentDataChange.mode"
    log = new_table(str(tmp_path / "t"), conf={key: "fatal"})

    def stream() -> Iterator[AddFile]:
        yield from files(1000)
        yield add_file("other", data_change=False)

    with pytest.raises(DeltaAnalysisError, match="dataChange true and false"):
        log.start_transaction().commit_large(stream(), CONVERT)


def test_a_first_one_needs_metadata_and_a_second_another_transaction(uri: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="DELTA_METADATA_ABSENT"):
        DeltaLog.for_table(uri).start_transaction().commit_large(files(1), CONVERT)
    txn = new(uri)
    txn.commit_large(files(1), CONVERT)
    with pytest.raises(DeltaAnalysisError, match="already committed"):
        txn.commit_large(files(1), CONVERT)


def test_a_storage_that_does_not_show_it_is_reported(uri: str) -> None:
    class Forgetful(FaultyLogStore):
        def read(self, path: str) -> Iterator[str]:
            if path.endswith("1.json"):
                raise FileNotFoundError(path)
            return super().read(path)

    log = over(Forgetful(new_table(uri).store), uri)
    with pytest.raises(InvalidCommittedVersionError, match="The committed version is 1 but the"):
        log.start_transaction().commit_large(files(1), CONVERT)


def test_row_ids_and_times_are_given_as_to_any_other_commit(uri: str) -> None:
    properties = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}
    log = new_table(uri, properties=properties)
    log.start_transaction().commit([add_file("before")], APPEND)
    txn = log.start_transaction()
    assert txn.commit_large(files(1500), CONVERT) == 2
    written = lines(log, 2)
    assert written[0]["commitInfo"]["inCommitTimestamp"] > log.snapshot_at(1).timestamp
    adds = [line["add"] for line in written if "add" in line]
    assert [each["baseRowId"] for each in adds] == list(range(1, 1501))
    assert {each["defaultRowCommitVersion"] for each in adds} == {2}
    mark = written[-1]["domainMetadata"]
    assert mark["domain"] == "delta.rowTracking"
    assert json.loads(mark["configuration"])["rowIdHighWaterMark"] == 1500
    assert log.start_transaction().commit([add_file("after")], APPEND) == 3
    assert [line["add"]["baseRowId"] for line in lines(log, 3) if "add" in line] == [1501]


def test_progress_and_the_record_count_what_passed(uri: str) -> None:
    reports: list[Progress] = []
    txn = new(uri)
    txn.commit_large(files(2500), CONVERT, progress=reports.append)
    assert [each.done for each in reports] == [1000, 2000, 2500]
    [record] = txn.attempts
    assert (record.num_add, record.bytes_new, record.actions) == (2500, 2500, 2502)
    size = sum(len(line) + 1 for line in txn.delta_log.store.read(commit_path(uri, 0)))
    assert record.bytes_written == size


@pytest.mark.parametrize("kind", [FileExistsError, FileNotFoundError, BrokenPipeError])
def test_what_a_progress_function_raises_is_not_taken_for_the_storage(
    uri: str, kind: type[OSError]
) -> None:
    mine = kind("mine")

    def stop(_: Progress) -> None:
        raise mine

    txn = new(uri)
    with pytest.raises(kind) as raised:
        txn.commit_large(files(10), CONVERT, progress=stop)
    assert raised.value is mine
    assert not txn.may_be_committed
    assert new(uri).reads.version == -1


def test_the_actions_are_never_all_in_memory(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # What follows, reading the version for its checkpoint, is columnar and not of this commit.
    monkeypatch.setattr("lakelog.core.transaction.large_commit.after_large_commit", lambda *_: None)
    tracemalloc.start()
    try:
        txn = new(uri)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        txn.commit_large(files(MANY), CONVERT)
        streamed = tracemalloc.get_traced_memory()[1] - before
        before = tracemalloc.get_traced_memory()[0]
        kept = list(files(MANY // 10))
        whole = (tracemalloc.get_traced_memory()[0] - before) * 10
    finally:
        tracemalloc.stop()
    assert len(kept) == MANY // 10
    assert streamed < whole / 5


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, LookupError])
def test_what_interrupts_it_behind_the_landing_takes_no_checkpoint_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    uri, real = str(tmp_path / "t"), LocalLogStore.write
    write_arrow(uri, pa.table({"id": [1]}), mode="append")

    def write(store: LocalLogStore, path: str, lines: Iterable[str], **how: Any) -> None:
        real(store, path, lines, **how)
        if path.endswith(f"/{1:020d}.json"):
            raise error("injected")

    monkeypatch.setattr(LocalLogStore, "write", write)
    with pytest.raises(PostCommitError, match="version 1"):
        DeltaLog.for_table(uri).start_transaction().commit_large(files(3), CONVERT)
    checkpoints = (tmp_path / "t" / "_delta_log").glob("*1.checkpoint.parquet")
    assert len(list(checkpoints)) == 1


@pytest.mark.parametrize("timeout", [20.0, 120.0, 250.0, 500.0])
@pytest.mark.parametrize("making", [0.0, 5000.0])
def test_a_silent_storage_ends_it_within_the_budget_beside_the_time_that_its_lines_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeout: float, making: float
) -> None:
    uri, clock = str(tmp_path / "t"), ManualClock()
    write_arrow(uri, pa.table({"id": [1]}), mode="append")
    txn = DeltaLog.for_table(uri, clock=clock).start_transaction()
    looks = []

    def silent(_: LocalLogStore, __: str, lines: Iterable[str] = (), **___: Any) -> bytes:
        looks.append(list(lines))
        clock.advance(timeout)
        raise TimeoutError

    def slow() -> Iterator[Action]:
        clock.advance(making)
        yield from files(3)

    monkeypatch.setattr(LocalLogStore, "write", silent)
    monkeypatch.setattr(LocalLogStore, "read_bytes", silent)
    with pytest.raises(CommitOutcomeUnknownError):
        txn.commit_large(slow(), CONVERT)
    assert clock.monotonic() <= making + 600
    assert len(looks) >= (2 if timeout < 300 else 1), "there was time for a look"
