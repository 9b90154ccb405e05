"""Copies of the rows that stay: dealt out to tasks, picklable, and gone where one fails."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, delete_rows, table_changes, write_arrow
from lakelog.core.actions.operation import Operation
from lakelog.core.dml import file_copies
from lakelog.core.dml.rewrite import RowRewrite
from lakelog.core.dml.touched_files import touched_at
from lakelog.core.errors import DataFileMissingError
from lakelog.core.transaction.attempt_files import AttemptFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.dml.file_copies import Copied, CopyTask

FILES = 6


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    path = str(tmp_path / "t")
    properties = {"delta.enableChangeDataFeed": "true"}
    for first in range(0, FILES * 10, 10):
        rows = {"id": range(first, first + 10)}
        write_arrow(path, rows, mode="append", properties=None if first else properties)
    return DeltaLog.for_table(path)


def ids(log: DeltaLog) -> list[int]:
    return sorted(log.update().to_arrow()["id"].to_pylist())


def files(log: DeltaLog) -> set[Path]:
    return set(Path(log.table).rglob("*.parquet"))


def test_tasks_travel_and_their_results_are_those_of_one(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_copies, "_TASK_BYTES", 1)
    seen: list[CopyTask] = []

    def elsewhere(tasks: Sequence[CopyTask]) -> Iterable[Copied]:
        seen.extend(tasks)
        return [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(t)).run())) for t in tasks]

    txn = log.start_transaction()
    snapshot = txn.snapshot
    assert snapshot is not None
    with AttemptFiles(txn) as attempt:
        changes = attempt.own(RowRewrite(txn, 0, run_copies=elsewhere))
        hits = {number: {0: b"\x05"} for number in range(FILES)}
        changes.apply(touched_at(snapshot, snapshot.file_table, hits))
        version = txn.commit(changes.actions(), Operation("DELETE", {}))

    gone = [each for each in range(FILES * 10) if each % 10 in (0, 2)]
    assert ids(log) == [each for each in range(FILES * 10) if each not in gone]
    changed = table_changes(log.table, version, version).read_all()
    assert sorted(changed["id"].to_pylist()) == gone
    assert len(seen) == FILES
    assert changes.metrics.copied == 8 * FILES


def test_where_one_task_fails_what_the_others_wrote_is_deleted(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_copies, "_TASK_BYTES", 1)
    before, real = ids(log), file_copies.CopyTask.run

    def failing(task: CopyTask) -> Copied:
        if task.number == FILES - 1:
            raise OSError("no space left")
        return real(task)

    monkeypatch.setattr(file_copies.CopyTask, "run", failing)
    held = files(log)

    with pytest.raises(OSError, match="no space left"):
        delete_rows(log, "id % 2 = 0")

    assert files(log) == held
    assert ids(log) == before


def test_a_file_that_vanished_is_named_and_nothing_is_left(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = file_copies.CopyTask.run

    def lost(task: CopyTask) -> Copied:
        Path(task.files[-1].path).unlink()
        return real(task)

    monkeypatch.setattr(file_copies.CopyTask, "run", lost)
    held = files(log)

    with pytest.raises(DataFileMissingError) as caught:
        delete_rows(log, "id % 2 = 0")

    assert caught.value.fields["path"] in str(caught.value)
    assert files(log) < held
    assert len(files(log)) == FILES - 1


def test_small_files_are_copied_into_few(log: DeltaLog) -> None:
    delete_rows(log, "id % 2 = 0")
    assert len(list(log.update().files())) == 1
