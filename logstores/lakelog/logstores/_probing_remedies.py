"""What to do about an error of a store, where its message alone may not say it."""

from __future__ import annotations

from typing import Final

from lakelog.logstores.errors import (
    CommitOutcomeUnknownError,
    LogStoreConfError,
    MissingExtraError,
    UnsafeLogStoreError,
)

__all__ = ["remedy_for"]

_BY_KIND: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (LogStoreConfError, "Correct the setting that is named, then run this again."),
    (UnsafeLogStoreError, "Take one of the ways out that are named."),
    (
        CommitOutcomeUnknownError,
        "Replies get lost on the way: look for a proxy or a load balancer with a short timeout.",
    ),
    (
        PermissionError,
        "Give these credentials the right that is named, or use credentials that have it.",
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
    (OSError, "Do what the message says; the storage's own log may tell more."),
)


def remedy_for(error: BaseException) -> str:
    """The first thing to do about an error.

    Args:
        error: raised by a store, or while one was made.
    """
    if isinstance(error, MissingExtraError):
        return f"pip install 'lakelog[{error.extra}]'"
    for kind, remedy in _BY_KIND:
        if isinstance(error, kind):
            return remedy
    return "This is no error that a store should raise: please report it with its traceback."
