"""How long a writer that lost a race waits."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakelog.core.clock import Clock

_FIRST_WINDOW = 16
_LAST_WINDOW = 2


@dataclass(slots=True)
class Backoff:
    """The waits of one commit.

    All are multiples of what a request takes on this storage, as measured by the caller: a wait
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

        The first loss spreads the losers over sixteen requests. Each further one narrows
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
