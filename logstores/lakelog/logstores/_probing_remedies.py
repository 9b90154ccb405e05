"""What to do about an error of a store, where its message alone may not say it."""

from __future__ import annotations

import re
from typing import Final

from lakelog.logstores._object_client import TryAgainError
from lakelog.logstores.errors import (
    CommitOutcomeUnknownError,
    LogStoreConfError,
    LogStoreError,
    MissingExtraError,
    UnsafeLogStoreError,
    install_command,
)

__all__ = ["is_expected", "remedy_for", "told"]

_ADVICE: Final = re.compile(
    r"(?<=[.:;?!]) (?=(?:Set|Unset|Give|Take|Use|Check|Make|Name|Keep|Renew|Run|Restore|Install"
    r"|Choose|Wait|Look|Correct|Write|Begin|For|If|set|check|make|use|give|did)\b)"
)
"""Where a message of a store turns from what was seen to what to do, by the house's own style."""

_BY_KIND: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (LogStoreConfError, "Correct the setting that is named, then run this again."),
    (UnsafeLogStoreError, "Take one of the ways out that are named."),
    (
        CommitOutcomeUnknownError,
        "Replies get lost on the way: look for a proxy or a load balancer with a short timeout.",
    ),
    (
        PermissionError,
        "Correct the credentials, or give them the right that is named.",
    ),
    (
        FileNotFoundError,
        "Check the bucket, container or folder in the URI; make it if it is not there yet.",
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
    (OSError, "Do what the message says; the storage's own log may tell more."),
    (LogStoreError, "Do what the message says."),
)


def told(error: BaseException) -> tuple[str, str]:
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
        # What a service said stands in brackets, and its advice is not ours.
        if seen.count("(") == seen.count(")"):
            return seen.rstrip(":;."), advice[0].upper() + advice[1:].replace("?.", "?")
    return text, remedy_for(error)


def remedy_for(error: BaseException) -> str:
    """The first thing to do about an error whose message does not say it."""
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
        "A store should raise OSError, or an error of lakelog's: mend that if the store is yours, "
        "else report it. The output of --json has the traceback."
    )


def is_expected(error: BaseException) -> bool:
    """Whether it is of a kind that stores, or lakelog itself, may raise."""
    ours = type(error).__module__.startswith("lakelog.")
    known = isinstance(error, ModuleNotFoundError)
    return ours or known or isinstance(error, tuple(kind for kind, _ in _BY_KIND))
