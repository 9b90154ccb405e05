"""How long a writer that lost a race waits, and when it gives up."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakelog.core.clock import Clock
    from lakelog.core.conf import DeltaConf

__all__ = ["Backoff", "RetryLimits"]

MAX_ATTEMPTS_KEY = "maxCommitAttempts"
MAX_UNKNOWN_KEY = "maxNonConflictCommitAttempts"
TIME_BUDGET_KEY = "spark.lakelog.commit.timeBudget"
MAX_BACKOFF_KEY = "spark.lakelog.commit.maxBackoff"

_RESERVE_SECONDS = 90.0
_RESERVE_SHARE = 0.15
_BRIEF_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """When a commit stops trying."""

    attempts: int = 10_000_000
    """Retries after the first try (`spark.databricks.delta.maxCommitAttempts`)."""
    unknown: int = 10
    """Retries of a write whose outcome the storage did not tell."""
    seconds: float = 600.0
    """The time budget of one commit (`spark.lakelog.commit.timeBudget`)."""
    max_wait: float = 5.0
    """The longest single wait, in seconds (`spark.lakelog.commit.maxBackoff`)."""

    @property
    def reserve(self) -> float:
        """Seconds for what is on its way when the store may repeat no more."""
        return min(_RESERVE_SECONDS, self.seconds * _RESERVE_SHARE)

    @property
    def brief(self) -> float:
        """Seconds: a request that is known to take no longer fits into any rest of the budget."""
        return max(_BRIEF_SECONDS, self.reserve / 3)

    @classmethod
    def of(cls, conf: DeltaConf) -> RetryLimits:
        """Read them from a conf.

        Raises:
            DeltaAnalysisError: a value that is no number.
        """
        if not conf:
            return _DEFAULTS
        return cls(
            attempts=conf.get_int(MAX_ATTEMPTS_KEY, cls().attempts),
            unknown=conf.get_int(MAX_UNKNOWN_KEY, cls().unknown),
            seconds=conf.get_float(TIME_BUDGET_KEY, cls().seconds),
            max_wait=conf.get_float(MAX_BACKOFF_KEY, cls().max_wait),
        )


_DEFAULTS = RetryLimits()


@dataclass(slots=True)
class Backoff:
    """Decorrelated jitter: each wait is drawn between a base and three times the last one.

    The base is what a write takes on this storage, as measured by the caller: a wait that is
    right for S3 would idle a local disk for a hundred commits.
    """

    clock: Clock
    max_wait: float = 5.0
    random: random.Random = field(default_factory=random.Random)
    _last: float = 0.0

    def next_wait(self, base: float) -> float:
        """Draw the next wait, in seconds, at most `max_wait`."""
        base = max(base, 0.0002)
        # A loser that backs off far beyond the others never wins: the spread is what counts.
        cap = min(self.max_wait, 32 * base)
        self._last = min(cap, self.random.uniform(base, max(base, self._last) * 3))
        return self._last

    def wait(self, base: float, *, at_least: float = 0.0, at_most: float) -> float:
        """Sleep for the next wait; `at_least` wins over the draw, `at_most` over both.

        Returns:
            The seconds asked of the clock.
        """
        seconds = max(0.0, min(max(self.next_wait(base), at_least), at_most))
        self.clock.sleep(seconds)
        return seconds
