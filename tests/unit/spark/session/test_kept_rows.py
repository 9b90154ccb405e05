from __future__ import annotations

import pytest

from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    PostCommitError,
    PostCommitHookFailedError,
)
from lakelog.spark.session.kept_rows import again_if_rows_are_lost

LOST = "Job aborted: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not found!"


@pytest.mark.parametrize("times", range(5))
def test_a_command_begins_again_three_times(times: int, caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []

    def command() -> str:
        runs.append(len(runs))
        if len(runs) <= times:
            raise RuntimeError(LOST)
        return "done"

    if times < 4:
        assert again_if_rows_are_lost(command) == "done"
    else:
        with pytest.raises(RuntimeError, match="rdd_7_0"):
            again_if_rows_are_lost(command)
    assert len(runs) == min(times + 1, 4)
    assert len(caplog.records) == min(times, 3)


def test_another_error_is_raised_at_once() -> None:
    runs: list[int] = []

    def command() -> None:
        runs.append(1)
        raise ValueError("of another kind")

    with pytest.raises(ValueError, match="another kind"):
        again_if_rows_are_lost(command)
    assert runs == [1]


FAILED = f"version 7 of /t is committed, but a hook failed: {LOST}"


@pytest.mark.parametrize(
    "error",
    [
        PostCommitError(FAILED),
        PostCommitHookFailedError(FAILED),
        CommitOutcomeUnknownError("/t/_delta_log/7.json", LOST),
    ],
)
def test_what_is_or_may_be_committed_is_not_run_again(error: Exception) -> None:
    runs: list[int] = []

    def command() -> None:
        runs.append(1)
        raise error

    with pytest.raises(type(error)):
        again_if_rows_are_lost(command)
    assert runs == [1]
