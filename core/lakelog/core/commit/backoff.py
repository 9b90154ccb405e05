"""How long a writer that lost a race waits, and when it gives up."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from lakelog.core.clock import Clock
    from lakelog.core.conf import DeltaConf

_RESERVE_SECONDS = 90.0
_RESERVE_SHARE = 0.15
_BRIEF_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """When a commit stops trying."""

    attempts: int = 10_000_000
    """Retries after the first try (`spark.databricks.delta.maxCommitAttempts`)."""
    unknown: int = 10
    """Retries of a write whose outcome the storage did not report."""
    seconds: float = 600.0
    """The time budget of one commit (`spark.lakelog.commit.timeBudget`)."""
    max_wait: float = 5.0
    """The longest single wait, in seconds (`spark.lakelog.commit.maxBackoff`)."""

    reserve: float = field(init=False)
    """Seconds for what is on its way when the store may repeat no more."""
    brief: float = field(init=False)
    """Seconds: a request that is known to take no longer fits into any rest of the budget."""

    def __post_init__(self) -> None:
        """Work out what follows from the budget."""
        reserve = min(_RESERVE_SECONDS, self.seconds * _RESERVE_SHARE)
        object.__setattr__(self, "reserve", reserve)
        object.__setattr__(self, "brief", max(_BRIEF_SECONDS, reserve / 3))

    @classmethod
    def from_conf(cls, conf: DeltaConf) -> RetryLimits:
        """Read them from a conf.

        Raises:
            DeltaAnalysisError: a value that is not a number.
        """
        if not conf:
            return _DEFAULTS
        return cls(
            attempts=conf.read(keys.MAX_ATTEMPTS),
            unknown=conf.read(keys.MAX_UNKNOWN),
            seconds=conf.read(store_keys.TIME_BUDGET),
            max_wait=conf.read(store_keys.MAX_BACKOFF),
        )


_DEFAULTS = RetryLimits()


_FIRST_WINDOW = 16
_LAST_WINDOW = 2


@dataclass(slots=True)
class Backoff:
    """The waits of one commit.

    All are multiples of what a write takes on this storage, as measured by the caller: a wait
    that is right for S3 would idle a local disk for a hundred commits.
    """

    clock: Clock
    max_wait: float = 5.0
    random: random.Random = field(default_factory=random.Random)
    _last: float = 0.0
    _losses: int = 0

    def next_wait(self, base: float) -> float:
        """Draw the next wait for a storage that fails, in seconds, at most `max_wait`.

        Decorrelated jitter: each is drawn between the base and three times the last one.
        """
        base = max(base, 0.0002)
        cap = min(self.max_wait, 32 * base)
        self._last = min(cap, self.random.uniform(base, max(base, self._last) * 3))
        return self._last

    def next_wait_after_loss(self, base: float) -> float:
        """Draw the next wait of a writer that lost a race, in seconds, at most `max_wait`.

        The first loss spreads the losers over sixteen writes. Each further one narrows
        that, so that who has waited longest comes back soonest: with waits that grow, a writer
        that has lost a few races loses against all that begin afresh.
        """
        self._losses += 1
        writes = max(_LAST_WINDOW, _FIRST_WINDOW / self._losses)
        window = min(self.max_wait, writes * max(base, 0.0002))
        return window * (1.0 - self.random.random())

    def wait(self, base: float, *, at_least: float = 0.0, at_most: float) -> float:
        """Sleep for the next wait; `at_least` wins over the draw, `at_most` over both.

        Returns:
            The seconds asked of the clock.
        """
        return self._sleep(min(max(self.next_wait(base), at_least), at_most))

    def wait_after_loss(self, base: float, *, at_most: float) -> float:
        """Sleep for the next wait of a writer that lost a race.

        Returns:
            The seconds asked of the clock.
        """
        return self._sleep(min(self.next_wait_after_loss(base), at_most))

    def _sleep(self, seconds: float) -> float:
        seconds = max(0.0, seconds)
        self.clock.sleep(seconds)
        return seconds
