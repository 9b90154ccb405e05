"""What a probe of a storage says: one finding per question, in words that claim what was seen.

No probe proves a storage safe: it looks for failures, for as long as it runs, and says how many
races of how many writers it saw none in.

The probes are in the other modules: `exclusive_create`,
`contract_probe` (overwrite, reads, listings, permissions, latency), `clock`,
`connection` and `lock_table`.
"""

from __future__ import annotations

import enum
import re
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.errors import (
    CommitOutcomeUnknownError,
    LogStoreConfError,
    LogStoreError,
    MissingExtraError,
    UnsafeLogStoreError,
    install_command,
)
from lakelog.logstores.object_store.client import TryAgainError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Status(enum.StrEnum):
    """What a finding means for the user."""

    FINE = "fine"
    """Looked for a failure and found none."""
    NOTE = "note"
    """Worth knowing; nothing has to change."""
    FAILED = "failed"
    """Has to be fixed; the remedy says how."""
    SKIPPED = "skipped"
    """Was not looked at; the summary says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question about a storage."""

    check: str
    """What was asked; a stable name, such as `exclusive-create`."""
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
        seen, remedy = describe_error(error)
        summary = f"can't {doing}: {seen}" if doing else seen
        measured = {} if is_expected(error) else {"traceback": traceback.format_exception(error)}
        return cls(check, Status.FAILED, summary, remedy, measured)


_ADVICE: Final = re.compile(
    r"(?<=[.:;?!]) (?=(?:Set|Unset|Give|Take|Use|Check|Make|Name|Keep|Renew|Run|Restore|Install"
    r"|Choose|Wait|Look|Correct|Create|Fix|Write|Begin|For|If|set|check|make|create|correct|fix|use"
    r"|give|did)\b)"
)
"""Where a store's message turns from what was seen to what to do, by lakelog's own style."""

_BY_KIND: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (LogStoreConfError, "Correct the setting that is named, then run this again."),
    (UnsafeLogStoreError, "Follow one of the remedies that the message names."),
    (
        CommitOutcomeUnknownError,
        "Replies get lost on the way: look for a proxy or a load balancer with a short timeout.",
    ),
    (
        PermissionError,
        "Correct the credentials, or grant them the permission that is named.",
    ),
    (
        FileNotFoundError,
        "Check the bucket, container or folder in the URI; create it if it does not exist yet.",
    ),
    (
        TimeoutError,
        "Check that the storage is up and can be reached, and that nothing in between is slow.",
    ),
    (ConnectionError, "Check that the storage is up, and its address in the conf."),
    (ValueError, "Correct the URI: docs/logstores.md lists the spellings of each storage."),
    (
        TryAgainError,
        "Check that the storage is up and not overloaded, and that nothing in between is slow.",
    ),
    (OSError, "Do what the message says; the storage's own log may say more."),
    (LogStoreError, "Do what the message says."),
)


def describe_error(error: BaseException) -> tuple[str, str]:
    """What was seen, and what to do: an error's message in its two parts.

    Args:
        error: raised by a store, or while one was made.

    Returns:
        Both without secrets if the message is; neither is empty.
    """
    text = str(error) or type(error).__name__
    if not is_expected(error):
        return f"{type(error).__module__}.{type(error).__qualname__}: {text}", remedy_for(error)
    for turn in _ADVICE.finditer(text):
        seen, advice = text[: turn.start()], text[turn.end() :]
        # What a service said is in brackets, and its advice is not ours.
        if seen.count("(") == seen.count(")"):
            return seen.rstrip(":;."), advice[0].upper() + advice[1:].replace("?.", "?")
    return text, remedy_for(error)


def remedy_for(error: BaseException) -> str:
    """The first thing to try for an error whose message has no remedy."""
    if isinstance(error, MissingExtraError):
        return install_command(error.extra)
    if isinstance(error, ModuleNotFoundError):
        return f"Install the package that has {error.name or 'it'}: the store imports it."
    if isinstance(error.__cause__, TryAgainError):
        error = error.__cause__  # given up after all repetitions
    for kind, remedy in _BY_KIND:
        if isinstance(error, kind):
            return remedy
    return (
        "A store should raise OSError, or one of lakelog's own errors: fix that if the store is "
        "yours, otherwise report it. The output of --json has the traceback."
    )


def is_expected(error: BaseException) -> bool:
    """Whether it is of a kind that stores, or lakelog itself, may raise."""
    ours = type(error).__module__.startswith("lakelog.")
    known = isinstance(error, ModuleNotFoundError)
    return ours or known or isinstance(error, tuple(kind for kind, _ in _BY_KIND))
