"""Old names of the public API: they go on working, and warn with what to write instead."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["renamed_argument", "warn_renamed"]

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, instead: str, *, stacklevel: int = 2) -> None:
    """Warn of an old name.

    Args:
        old: what was written.
        instead: the line to write.
        stacklevel: as for `warnings.warn`: 2 blames the caller of the function that calls this.
    """
    warnings.warn(
        f"{old} is deprecated. Write: {instead}", DeprecationWarning, stacklevel=stacklevel + 1
    )


def renamed_argument(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take one of its arguments by an old name too, with a warning.

    Args:
        old: the name of before, which the signature does not show any more.
        new: the argument.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__

        @functools.wraps(function)
        def with_old_name(*args: P.args, **kwargs: P.kwargs) -> R:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{name}() got both {new} and {old}, its old name")
                warn_renamed(f"{name}({old}=…)", f"{name}({new}=…)")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return with_old_name

    return decorate
