"""A job is run again after a conflict, and after nothing else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog import core
from lakelog.core import DeltaLog, Operation, errors, retry_on_conflict, write_arrow
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    DeltaConcurrentModificationException,
    MaxCommitAttemptsExceededError,
    MetadataChangedException,
    PostCommitError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
from support.manual_clock import ManualClock


def conflict(version: int = 7) -> ConcurrentAppendException:
    return ConcurrentAppendException(
        f"Version {version} won.", table="/t", version=version, commit_info=None
    )


class Job:
    """Raises these, one a run, and then returns."""

    def __init__(self, errors: Iterable[Exception]) -> None:
        self.errors = list(errors)
        self.runs = 0

    def __call__(self) -> str:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        return f"after {self.runs}"


def test_what_the_job_returns_comes_back_at_once() -> None:
    clock = ManualClock()
    assert retry_on_conflict(Job([]), clock=clock) == "after 1"
    assert clock.slept == []


def test_a_conflict_is_waited_out_and_the_job_run_again() -> None:
    clock, job = ManualClock(), Job([conflict(7), MetadataChangedException("Other columns.")])
    assert retry_on_conflict(job, clock=clock) == "after 3"
    assert len(clock.slept) == 2
    assert all(0.2 <= wait <= 5 for wait in clock.slept)


def test_waits_grow_to_the_longest_and_no_further() -> None:
    clock = ManualClock()
    retry_on_conflict(Job([conflict()] * 60), attempts=61, max_wait=1.5, clock=clock)
    assert len(clock.slept) == 60
    assert max(clock.slept) == 1.5, "sixty draws that triple"
    assert min(clock.slept) >= 0.2
    none = ManualClock()
    retry_on_conflict(Job([conflict()] * 3), max_wait=0, clock=none)
    assert none.slept == [0, 0, 0]


@pytest.mark.parametrize(
    "error",
    [
        CommitOutcomeUnknownError("/t/_delta_log/0.json", "it timed out"),
        PostCommitError("It is in the table.", version=3),
        MaxCommitAttemptsExceededError("Too many races."),
        OSError("disk full"),
        ValueError("a bug"),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("before", [0, 2])
def test_nothing_else_is_run_again(error: Any, before: int) -> None:
    clock, job = ManualClock(), Job([*[conflict()] * before, error])
    with pytest.raises(type(error)) as caught:
        retry_on_conflict(job, clock=clock)
    assert caught.value is error
    assert (job.runs, len(clock.slept)) == (before + 1, before)
    assert error.__context__ is None, "the conflicts before have nothing to do with it"


@pytest.mark.parametrize(
    ("attempts", "message"), [(1, "run once"), (4, "run 4 times, and met a conflict each time")]
)
def test_the_last_error_says_how_often_it_was_tried(attempts: int, message: str) -> None:
    clock, job = ManualClock(), Job(conflict(version) for version in range(1, 9))
    with pytest.raises(
        ConcurrentAppendException, match=f"Version {attempts} won.*{message}"
    ) as last:
        retry_on_conflict(job, attempts=attempts, clock=clock)
    assert (job.runs, len(clock.slept)) == (attempts, attempts - 1)
    assert last.value.fields == {
        "table": "/t",
        "version": attempts,
        "commit_info": None,
        "attempts": attempts,
    }
    assert isinstance(last.value.__cause__, ConcurrentAppendException)


@pytest.mark.parametrize("attempts", [0, -1, 1.5, True, "3", None])
def test_attempts_are_a_number_of_runs(attempts: Any) -> None:
    job = Job([])
    with pytest.raises(errors.DeltaAnalysisError, match="attempts must be"):
        retry_on_conflict(job, attempts=attempts)
    assert job.runs == 0


def test_each_conflict_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[tuple[Any, int]] = []
    with caplog.at_level(logging.INFO, "lakelog"):
        retry_on_conflict(
            Job([conflict(1), conflict(2)]),
            attempts=3,
            on_conflict=lambda error, run: runs.append((error.version, run)),
            clock=ManualClock(),
        )
    assert runs == [(1, 1), (2, 2)]
    assert "conflict in run 1 of 3, running again: Version 1 won." in caplog.text


def test_a_real_conflict_names_it_and_is_settled_by_it(tmp_path: Path) -> None:
    write_arrow(tmp_path, pa.table({"id": [1, 2]}))
    log, runs = DeltaLog.for_table(tmp_path), []

    def rewrite() -> int:
        txn = log.start_transaction()
        files = txn.filter_files("id = 1")
        runs.append(len(files))
        if len(runs) == 1:
            core.delete_rows(str(tmp_path), "id = 1")
        now = log.clock.now_ms()
        return txn.commit([file.remove(now) for file in files], Operation("DELETE"))

    seen: list[DeltaConcurrentModificationException] = []

    def keep(error: DeltaConcurrentModificationException, _: int) -> None:
        seen.append(error)

    assert retry_on_conflict(rewrite, on_conflict=keep, clock=ManualClock()) == 2
    (error,) = seen
    assert isinstance(error, ConcurrentAppendException)
    assert "lakelog.core.retry_on_conflict" in str(error)
