"""Whether an error of a client library says that nobody is there."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["causes", "never_reached"]

_NOBODY: Final = frozenset({"NameResolutionError", "NewConnectionError"})
"""urllib3's; its time-out of a connection, which may yet be made, is another."""


def never_reached(error: BaseException, outer: BaseException | None) -> bool:
    """Whether the host's name does not resolve, or its port refuses: nothing was sent.

    Args:
        error: what the library raised.
        outer: as of `causes`.
    """
    return any(
        isinstance(each, socket.gaierror | ConnectionRefusedError) or type(each).__name__ in _NOBODY
        for each in causes(error, outer)
    )


def causes(error: BaseException, outer: BaseException | None) -> Iterator[BaseException]:
    """The error, and all that it was made from, wherever a library keeps it.

    Args:
        error: what the library raised.
        outer: `sys.exception()` where the request began. Whoever retries within `except` is still
            handling an older error, which Python makes the context of each new one.
    """
    seen = {id(outer)}
    todo: list[object] = [error]
    while todo:
        each = todo.pop(0)
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [each.__cause__, each.__context__, getattr(each, "inner_exception", None)]
        todo += [getattr(each, "reason", None), *each.args]
