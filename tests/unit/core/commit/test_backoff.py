from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.commit.backoff import Backoff
from lakelog.core.commit.commit_settings import CommitSettings, RetryLimits
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from support.manual_clock import ManualClock


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=30),
    st.integers(),
    st.floats(0.01, 5),
)
def test_every_wait_lies_between_nothing_and_the_longest(
    bases: list[float], seed: int, longest: float
) -> None:
    backoff = Backoff(ManualClock(), longest, random.Random(seed))
    for base in bases:
        assert 0 < backoff.next_wait(base) <= longest
        assert 0 < backoff.next_wait_after_loss(base) <= longest


def test_who_has_lost_more_often_comes_back_sooner() -> None:
    def drawn(losses: int) -> list[float]:
        found = []
        for seed in range(200):
            backoff = Backoff(ManualClock(), random=random.Random(seed))
            found.append([backoff.next_wait_after_loss(0.01) for _ in range(losses)][-1])
        return found

    windows = [max(drawn(losses)) for losses in (1, 2, 4, 8, 100)]
    assert windows == sorted(windows, reverse=True)
    assert 0.15 < windows[0] <= 0.16
    # Never so soon that all who have waited long come back at the same moment.
    assert 0.019 < windows[-1] <= 0.02


def test_waits_follow_the_speed_of_the_storage() -> None:
    fast = Backoff(ManualClock(), random=random.Random(1))
    slow = Backoff(ManualClock(), random=random.Random(1))
    quick = [fast.next_wait(0.0005) for _ in range(50)]
    long = [slow.next_wait(0.05) for _ in range(50)]
    assert max(quick) <= 0.0005 * 32
    assert min(long) >= 0.05
    assert len(set(quick)) > 10


def test_a_wait_is_at_least_the_pace_and_at_most_what_is_left() -> None:
    clock = ManualClock()
    backoff = Backoff(clock, random=random.Random(2))
    assert backoff.wait(0.001, at_least=1.0, at_most=10.0) == 1.0
    assert backoff.wait(0.001, at_least=1.0, at_most=0.25) == 0.25
    assert backoff.wait(0.001, at_most=-3.0) == 0.0
    assert backoff.wait_after_loss(0.001, at_most=-3.0) == 0.0
    assert clock.slept == [1.0, 0.25, 0.0, 0.0]


def test_limits_are_deltas_unless_the_conf_says_otherwise() -> None:
    assert CommitSettings(DeltaConf()).limits == RetryLimits(10_000_000, 10, 600.0, 5.0)
    conf = DeltaConf(
        {
            "spark.databricks.delta.maxCommitAttempts": "3",
            "spark.databricks.delta.maxNonConflictCommitAttempts": "2",
            "spark.lakelog.commit.timeBudget": "1.5",
            "spark.lakelog.commit.maxBackoff": "0.5",
        }
    )
    assert CommitSettings(conf).limits == RetryLimits(3, 2, 1.5, 0.5)
    with pytest.raises(DeltaAnalysisError, match="timeBudget"):
        _ = CommitSettings(DeltaConf({"spark.lakelog.commit.timeBudget": "soon"})).limits
