"""What installs the programs that tests need, by name; `support.needs` runs them in time."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

TOOLS: dict[str, Callable[[], object]] = {}
_announced: set[str] | None = None


class NotAnnouncedError(RuntimeError):
    """A test uses a program that it did not ask for."""


def announce(names: set[str] | None) -> None:
    """From now on only these may be used; `None` allows all."""
    global _announced
    _announced = names


def tool(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Name what installs a program: a function without arguments that may be called again."""

    def decorate(install: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(install)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            if _announced is not None and name not in _announced:
                raise NotAnnouncedError(
                    f'this test uses {name!r}: mark it with @pytest.mark.needs("{name}"), so that '
                    "it is installed before the tests begin"
                )
            return install(*args, **kwargs)

        TOOLS[name] = install
        return checked

    return decorate
