"""What a probe of a storage says: one finding per question, in words that claim what was seen.

No probe proves a storage safe: it looks for failures, for as long as it runs, and says how many
races of how many writers it saw none in.

The probes are in the modules beside this one: `_probing_create` (exclusive create), `_probing_race`
(how requests are made to meet), `_probing_files` (overwrite, reads, listings, permissions,
latency), `_probing_clock` and `_probing_connection`.
"""

from __future__ import annotations

import enum
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelog.logstores._probing_remedies import is_expected, told

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Finding", "Status"]


class Status(enum.StrEnum):
    """What a finding means for the user."""

    FINE = "fine"
    """Looked for a failure and saw none."""
    NOTE = "note"
    """Worth knowing; nothing has to change."""
    FAILED = "failed"
    """Has to be mended; the remedy says how."""
    SKIPPED = "skipped"
    """Was not looked at; the summary says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question about a storage."""

    check: str
    """What was asked; a name that stays the same over versions, such as `exclusive-create`."""
    status: Status
    summary: str
    """What was seen, in a sentence or two."""
    remedy: str = ""
    """What to do about it; never empty where the status is `FAILED`."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and names behind the summary, fit for JSON."""

    @classmethod
    def failed(cls, check: str, error: BaseException, doing: str = "") -> Finding:
        """The finding on an error.

        Args:
            check: what was asked.
            error: what a store raised.
            doing: what could not be done, for the summary: `read a file`.
        """
        seen, remedy = told(error)
        summary = f"can't {doing}: {seen}" if doing else seen
        measured = {} if is_expected(error) else {"traceback": traceback.format_exception(error)}
        return cls(check, Status.FAILED, summary, remedy, measured)
