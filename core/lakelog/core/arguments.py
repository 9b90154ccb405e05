"""Checks that the arguments of public functions have the types that they should.

Numbers, truths and times come from Python, numpy, pandas or Arrow. `read_arguments` reads them in
one way at all doors, so that behind a door there are Python's own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import wraps
from numbers import Real
from typing import Any, Final, ParamSpec, TypeVar

from lakelog.core.errors import DeltaAnalysisError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_PLAIN: Final = (bool, int, float, str, datetime, type(None))

BEYOND_LONG: Final = 1 << 63


def check_text(value: Any, name: str, *, needed: bool = False) -> None:
    """Refuse what is neither text nor, where it is not needed, `None`.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    if value is not None or needed:
        require(value, is_text, name, "text")


def read_arguments(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Read the numbers, truths and times among a function's arguments before it is called.

    Which arguments those are, their annotations say. `None` stays where it may be given.

    Raises:
        DeltaAnalysisError: a value has the wrong type; names the argument and the value.
    """
    kinds = {
        name: _READERS[kind.removesuffix(" | None")]
        for name, kind in function.__annotations__.items()
        if name != "return" and kind.removesuffix(" | None") in _READERS
    }
    optional = {name for name in kinds if function.__annotations__[name].endswith(" | None")}
    # That of the function itself, whatever else is wrapped around it.
    code = getattr(function, "__wrapped__", function).__code__
    places = [
        (at, name) for at, name in enumerate(code.co_varnames[: code.co_argcount]) if name in kinds
    ]

    def read(name: str, value: Any) -> Any:
        return None if value is None and name in optional else kinds[name](value, name)

    @wraps(function)
    def called(*args: _P.args, **given: _P.kwargs) -> _T:
        if any(at < len(args) for at, _ in places):
            listed: list[Any] = list(args)
            for at, name in places:
                if at < len(args):
                    listed[at] = read(name, args[at])
            args = tuple(listed)  # type: ignore[assignment]
        for name in given.keys() & kinds.keys():
            given[name] = read(name, given[name])
        return function(*args, **given)

    return called


def read_whole(value: Any, name: str) -> int:
    """A 64-bit integer; `True` and 2.0 are not accepted.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    found = _plain(value, name)
    if not isinstance(found, bool):
        try:
            whole = operator.index(found)
        except TypeError:
            pass
        else:
            if -BEYOND_LONG <= whole < BEYOND_LONG:
                return whole
    raise refusal(value, name, "a whole number of 64 bits")


def read_number(value: Any, name: str) -> float:
    """A finite number; `True` is not accepted.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    found = _plain(value, name)
    is_number: bool = isinstance(found, Real | Decimal) and not _is_truth(found)
    try:
        if is_number and math.isfinite(number := float(found)):
            return number
    except OverflowError:
        pass
    raise refusal(value, name, "a finite number")


def read_flag(value: Any, name: str) -> bool:
    """`True` or `False`; 1 and "false" are neither.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    found = _plain(value, name)
    if isinstance(found, bool):
        return found
    raise refusal(value, name, "True or False")


def read_time(value: Any, name: str) -> int | str | datetime:
    """A time: epoch milliseconds, text, or a datetime; a date is its midnight.

    Raises:
        DeltaAnalysisError: names the argument and the value.
    """
    found = _plain(value, name)
    if isinstance(found, str | datetime):
        return found
    if isinstance(found, date):
        return datetime(found.year, found.month, found.day)  # noqa: DTZ001 # read as UTC later
    try:
        return read_whole(found, name)
    except DeltaAnalysisError:
        raise refusal(
            value, name, "epoch milliseconds as int, a datetime, or ISO 8601 text"
        ) from None


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def _plain(value: Any, name: str) -> Any:
    """The value as one of Python's own."""
    if type(value) in _PLAIN:
        return value
    from lakelog.core.plain_values import plain_value

    try:
        return plain_value(value)
    except ValueError as exc:
        raise refusal(value, name, f"a value that Python has ({exc})") from None


_READERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "int": read_whole,
    "float": read_number,
    "bool": read_flag,
    "int | str | datetime": read_time,
}
"""Annotation -> what reads such an argument."""


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
    version = read_whole(app_version, names[1])
    if version < 0:
        raise refusal(app_version, names[1], "a whole number from 0 to 2^63 - 1")
    return app_id, version


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
    return DeltaAnalysisError(
        f"{name} must be {what}, but it is {shown(value)}", field=name, value=_text(value)
    )


def shown(value: Any) -> str:
    """A value for a message, cut where it is long, with its type."""
    return f"{_text(value)} ({type(value).__name__})"


def _text(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than some thousand digits
        text = hex(value) if isinstance(value, int) else "a value"
    return text if len(text) <= 200 else f"{text[:200]}…"
