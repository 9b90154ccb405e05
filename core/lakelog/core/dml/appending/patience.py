"""How long an appender tries again what a storage or another writer has kept it from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakelog.core.commit.backoff import Backoff
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    DeltaError,
    MaxCommitAttemptsExceededError,
)

if TYPE_CHECKING:
    from lakelog.core.clock import Clock

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0


@dataclass(slots=True)
class Patience:
    """Waits between tries; one of it for each thread."""

    clock: Clock
    seconds: float
    """For which the same is tried again."""
    retries: int = 0
    _backoff: Backoff = field(init=False)

    def __post_init__(self) -> None:
        """Wait by the clock."""
        self._backoff = Backoff(self.clock, _LONGEST_WAIT)

    def begin(self) -> float:
        """When it will be over for what begins now."""
        return self.clock.monotonic() + self.seconds

    def bear(self, error: Exception, until: float) -> None:
        """Wait before the next try.

        Args:
            error: of the last one.
            until: what `begin` gave.

        Raises:
            Exception: the error, where another try would not help, or it is too late for one.
        """
        if not _may_pass(error) or self.clock.monotonic() >= until:
            raise error
        self.retries += 1
        self._backoff.wait(_FIRST_WAIT, at_most=_LONGEST_WAIT)


def _may_pass(error: Exception) -> bool:
    """Whether the same may go well a moment later."""
    if isinstance(error, DeltaConcurrentModificationException | MaxCommitAttemptsExceededError):
        return True
    if isinstance(error, DeltaError):
        return False
    return isinstance(error, CommitOutcomeUnknownError | OSError)
