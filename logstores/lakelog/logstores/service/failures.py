"""Exceptions as clients hear of them: a kind that programs act on, and a text for people."""

from __future__ import annotations

from typing import Final

from lakelog.logstores.errors import (
    CommitOutcomeUnknownError,
    FileTooLargeError,
    LogStoreError,
    StorageUnavailableError,
)

_KINDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (FileExistsError, "exists"),
    (FileNotFoundError, "missing"),
    (CommitOutcomeUnknownError, "unknown"),
    (LogStoreError, "refused"),
    (StorageUnavailableError, "unavailable"),
    (FileTooLargeError, "too-large"),
    (PermissionError, "denied"),
    (IsADirectoryError, "is-folder"),
    (NotADirectoryError, "no-folder"),
    (OSError, "io"),
    (UnicodeError, "not-utf8"),
    (ValueError, "invalid"),
)
"""The first that fits counts. What fits none is "failed": an error in a store, or in us."""


def failure_of(error: Exception) -> tuple[str, str]:
    """Kind and text of an exception."""
    kind = next((name for type_, name in _KINDS if isinstance(error, type_)), "failed")
    text = "\n".join([str(error), *getattr(error, "__notes__", ())]).strip()
    named = type(error).__name__
    return kind, f"{named}: {text}" if kind in ("failed", "io", "refused") or not text else text
