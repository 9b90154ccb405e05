"""Checks that the arguments of public functions have the types that they should."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lakelog.core.errors import DeltaAnalysisError

__all__ = [
    "BEYOND_LONG",
    "check_text",
    "check_texts",
    "check_whole",
    "checked_progress",
    "is_long",
    "is_text",
    "refusal",
    "require",
]


BEYOND_LONG: Final = 1 << 63


def check_text(value: Any, name: str, *, needed: bool = False) -> None:
    """Refuse what is neither text nor, where it is not needed, `None`.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    if value is not None or needed:
        require(value, is_text, name, "text")


def check_whole(value: Any, name: str) -> None:
    """Refuse what is not a whole number of 64 bits.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    require(value, is_long, name, "a whole number of 64 bits")


def check_texts(value: Any, name: str) -> None:
    """Refuse what is not a mapping of strings to strings.

    Raises:
        DeltaAnalysisError: names the argument, and the entry where it is one.
    """
    require(value, lambda each: isinstance(each, Mapping), name, "a mapping of strings to strings")
    for key, each in value.items():
        require(key, is_text, f"a key of {name}", "text")
        require(each, is_text, f"{name}[{key!r}]", "text")


def checked_progress(
    app_id: Any,
    app_version: Any,
    names: tuple[str, str] = ("app_id", "app_version"),
) -> tuple[str, int] | None:
    """Which batch of which application a write is, where the caller says so.

    Args:
        app_id: as given.
        app_version: as given.
        names: what the caller calls the two.

    Raises:
        DeltaAnalysisError: one without the other, an id that is not a string, or a version that
            is not a whole number from 0 to 2^63 - 1: a table without the application is at -1, so
            that a lower one would never be written.
    """
    if app_id is None and app_version is None:
        return None
    if app_id is None or app_version is None:
        raise DeltaAnalysisError(f"{names[0]} and {names[1]} go together: give both, or neither")
    require(app_id, is_text, names[0], "text")
    require(
        app_version,
        lambda each: is_long(each) and each >= 0,
        names[1],
        "a whole number from 0 to 2^63 - 1",
    )
    return app_id, app_version


def is_text(value: Any) -> bool:
    """Whether it is a string that UTF-8 can hold."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair can't be written to any file.
        return False
    return True


def is_long(value: Any) -> bool:
    """Whether it is a whole number of 64 bits; `True` and `False` are not."""
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and -BEYOND_LONG <= value < BEYOND_LONG
    )


def require(value: Any, check: Callable[[Any], bool], name: str, what: str) -> None:
    """Refuse what a check refuses, by name; `what` says what was expected."""
    if not check(value):
        raise refusal(value, name, what)


def refusal(value: Any, name: str, what: str) -> DeltaAnalysisError:
    """The error for an argument that is not `what` it must be."""
    shown = repr(value)
    shown = shown if len(shown) <= 200 else f"{shown[:200]}…"
    return DeltaAnalysisError(
        f"{name} must be {what}, but it is {shown} ({type(value).__name__})",
        field=name,
        value=shown,
    )
