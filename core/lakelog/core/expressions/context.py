"""What a value depends on beside the rows: the session, and the time of the statement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from lakelog.core import keys

if TYPE_CHECKING:
    from lakelog.core.conf import DeltaConf


@dataclass(frozen=True, slots=True)
class EvalContext:
    """How expressions are evaluated; the same for all of a statement."""

    session_tz: str = "UTC"
    """The zone of timestamps without one, and in which timestamps have dates."""
    now_ms: int | None = None
    """What `current_timestamp()` gives, epoch milliseconds; `None` leaves the time to Spark."""
    precision_loss: bool = True
    """Whether a decimal of too many digits gives up some of its scale, not all that is beyond."""

    @classmethod
    def of(cls, conf: DeltaConf, now_ms: int | None = None) -> EvalContext:
        """As a session's conf says.

        Raises:
            DeltaAnalysisError: a value of the conf that is none of its kind.
        """
        return cls(conf.session_tz, now_ms, conf.read(keys.PRECISION_LOSS))

    @property
    def timeless(self) -> EvalContext:
        """The same for the rules of a table, which don't ask for the time."""
        return replace(self, now_ms=None)


DEFAULTS: Final = EvalContext()
"""As in a session without any conf."""
