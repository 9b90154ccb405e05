"""Explaining in one clear error what a failed Spark job means for the table."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.core.engine.write import has_room
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaError,
)
from lakelog.spark.types.path_forms import text_literal

if TYPE_CHECKING:
    from collections.abc import Iterator


_PYTHON_ERRNO = re.compile(r"\[Errno (\d+)\]")

_JVM_ERRORS = (
    ("No space left on device", errno.ENOSPC),
    ("Disk quota exceeded", errno.EDQUOT),
    ("Read-only file system", errno.EROFS),
    ("Permission denied", errno.EACCES),
    ("AccessDeniedException", errno.EACCES),
    ("Mkdirs failed to create", errno.EACCES),
)


@contextmanager
def job_errors(table: str, version: int | None) -> Iterator[None]:
    """Turn the failure of a write's job into an error that says what happened to the table.

    A broken rule becomes `ConstraintViolationError`, a storage failure an `OSError` with its
    number. Everything else keeps its type, which the caller may be waiting for, and gets a note.

    Args:
        table: the table's URI.
        version: the version that it is at; `None` where there is no table yet.
    """
    state = "was not created" if version is None else f"is as it was, at version {version}"
    try:
        yield
    except (DeltaError, OSError):
        raise
    except Exception as exc:
        text = str(exc)
        message = violation_in(text)
        if message is not None:
            raise ConstraintViolationError(
                f"{message}\nNothing was written: the table {table} {state}.",
                table=table,
                version=version,
            ) from exc
        number = _storage_error(text)
        if number is not None:
            raise OSError(
                number,
                f"{os.strerror(number)}, while data files were being written; the table {state}. "
                "Free space or fix the permissions, and run the write again",
                table,
            ) from exc
        exc.add_note(f"lakelog: the write to {table} failed; the table {state}.")
        raise


def _storage_error(text: str) -> int | None:
    match = _PYTHON_ERRNO.search(text)
    if match and int(match[1]) in {number for _, number in _JVM_ERRORS}:
        return int(match[1])
    return next((number for phrase, number in _JVM_ERRORS if phrase in text), None)


MARK_OPEN, MARK_CLOSE = "{{lakelog: ", " :lakelog}}"

_VIOLATION = re.compile(re.escape(MARK_OPEN) + "(.*?)" + re.escape(MARK_CLOSE), re.DOTALL)


def failing(message: str) -> str:
    """SQL that raises: evaluating it stops the job with this message."""
    return f"raise_error(concat({text_literal(MARK_OPEN + message)}, {text_literal(MARK_CLOSE)}))"


def violation_in(text: str) -> str | None:
    """The message of a rule that an exception's text reports, if it does."""
    match = _VIOLATION.search(text)
    return match[1] if match else None


_NO_FILESYSTEM = re.compile(
    r"No FileSystem for scheme"
    r"|ClassNotFoundException: Class \S*(?:FileSystem|AzureFileSystem\$Secure)\S* not found"
    r"|NoClassDefFoundError: (?:software/amazon|com/amazonaws|com/google/cloud|com/microsoft)"
)


def lacks_filesystem(exc: BaseException) -> bool:
    """Whether Spark failed because its Hadoop has no class for the scheme of a path."""
    return _NO_FILESYSTEM.search(str(exc)) is not None


_NAME_TOO_LONG = ("File name too long", "PathComponentTooLongException")


def names_too_long(exc: BaseException) -> bool:
    """Whether Spark failed because the name of a folder or file has more bytes than storage takes.

    Hadoop's local file system does not say why it could not make a folder, only which.
    """
    text = str(exc)
    if any(each in text for each in _NAME_TOO_LONG):
        return True
    _, found, rest = text.partition("Mkdirs failed to create")
    place = rest.partition("\n")[0].rpartition(" (exists=")[0] or rest.partition("\n")[0]
    return bool(found) and not all(has_room(name) for name in place.split("/"))
