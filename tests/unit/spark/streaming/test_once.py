"""A function for `foreachBatch` changes its table once for each batch, by whatever command."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, update_rows, write_arrow
from lakelog.core.alter import set_properties
from lakelog.core.errors import ConcurrentTransactionException, DeltaAnalysisError
from lakelog.core.transaction.recording import record_commits
from lakelog.spark.streaming import once as module
from lakelog.spark.streaming.once import once_per_batch

if TYPE_CHECKING:
    from pathlib import Path

FRAME = cast("Any", SimpleNamespace(sparkSession=None))


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query `q`, without Spark."""
    monkeypatch.setattr(module, "session_conf", lambda _: {})
    monkeypatch.setattr(module, "running_query", lambda _: "q")


def _ids(path: Path) -> list[int]:
    return sorted(DeltaLog.for_table(path).snapshot.to_arrow()["id"].to_pylist())


def _append(path: Path, *ids: int) -> None:
    write_arrow(path, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def test_a_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    calls = []

    def append(_: Any, number: int) -> None:
        calls.append(number)
        _append(tmp_path, number)

    once = once_per_batch(tmp_path, append)
    for number in (0, 0, 1, 1, 0):
        once(FRAME, number)
    assert calls == [0, 1]
    assert _ids(tmp_path) == [0, 1]
    assert DeltaLog.for_table(tmp_path).snapshot.transactions == {"q": 1}


def test_every_command_records_the_batch(tmp_path: Path) -> None:
    _append(tmp_path, 1, 2, 3)
    once_per_batch(tmp_path, lambda *_: delete_rows(tmp_path, "id = 1"), name="d")(FRAME, 4)
    once_per_batch(tmp_path, lambda *_: update_rows(tmp_path, {"id": 9}, "id = 2"), app_id="a")(
        FRAME, 5
    )
    assert DeltaLog.for_table(tmp_path).snapshot.transactions == {"q/d": 4, "a": 5}
    assert _ids(tmp_path) == [3, 9]


def test_a_second_change_is_refused_before_it_is_made(tmp_path: Path) -> None:
    def twice(_: Any, number: int) -> None:
        _append(tmp_path, number)
        set_properties(tmp_path, {"mine": "x"})
        _append(tmp_path, number)

    with pytest.raises(DeltaAnalysisError, match="a second time"):
        once_per_batch(tmp_path, twice)(FRAME, 7)
    assert _ids(tmp_path) == [7]


def test_other_tables_are_not_concerned(tmp_path: Path) -> None:
    def both(_: Any, number: int) -> None:
        _append(tmp_path / "other", number)
        _append(tmp_path / "other", number)
        _append(tmp_path / "t", number)

    once_per_batch(tmp_path / "t", both)(FRAME, 0)
    assert DeltaLog.for_table(tmp_path / "other").snapshot.transactions == {}
    assert _ids(tmp_path / "other") == [0, 0]
    _append(tmp_path / "t", 1)
    assert DeltaLog.for_table(tmp_path / "t").snapshot.transactions == {"q": 0}


def test_a_process_that_was_overtaken_does_not_repeat_the_batch(tmp_path: Path) -> None:
    log = DeltaLog.for_table(tmp_path)

    def slow(_: Any, number: int) -> None:
        with record_commits(log.table, "q", number):
            _append(tmp_path, number)
        _append(tmp_path, number)

    with pytest.raises(ConcurrentTransactionException, match="batch 3 of q"):
        once_per_batch(tmp_path, slow)(FRAME, 3)
    assert _ids(tmp_path) == [3]


def test_a_function_that_fails_can_be_called_again(tmp_path: Path) -> None:
    failures = [OSError("no")]

    def append(_: Any, number: int) -> None:
        if failures:
            raise failures.pop()
        _append(tmp_path, number)

    once = once_per_batch(tmp_path, append)
    with pytest.raises(OSError, match="no"):
        once(FRAME, 0)
    once(FRAME, 0)
    assert _ids(tmp_path) == [0]


def test_the_query_must_be_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "running_query", lambda _: None)
    with pytest.raises(DeltaAnalysisError, match="give once_per_batch an app_id"):
        once_per_batch(tmp_path, lambda *_: None)(FRAME, 0)
