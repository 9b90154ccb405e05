"""Whether an error of a client library says that no service is there."""

from __future__ import annotations

import errno
import re
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER_CONNECTED: Final = frozenset({"NameResolutionError", "NewConnectionError"})
"""urllib3's; its time-out of a connection, which may yet be made, is another."""
_BUSY_RESOLVER: Final = frozenset(
    getattr(socket, name) for name in ("EAI_AGAIN", "EAI_MEMORY", "EAI_SYSTEM")
)
_OUT_OF: Final = frozenset(
    getattr(errno, name)
    for name in ("EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN", "EADDRNOTAVAIL", "EADDRINUSE")
)
"""What this host lacks at the moment: descriptors, memory, ports."""
_BY_THE_PROXY: Final = re.compile(r"Tunnel connection failed: (\d+)")
_TRY_LATER: Final = ("408", "429")


def never_reached(error: BaseException, outer: BaseException | None) -> bool:
    """Whether the host's name does not resolve, or its port refuses: nothing was sent.

    Args:
        error: what the library raised.
        outer: as of `causes`.
    """
    return any(
        isinstance(each, socket.gaierror | ConnectionRefusedError)
        or type(each).__name__ in NEVER_CONNECTED
        for each in causes(error, outer)
    )


def is_for_now(error: BaseException, outer: BaseException | None) -> bool:
    """Whether a connection failed for what passes, so that the address may be right.

    A resolver that asks to come back, a host out of descriptors or ports, a busy proxy.

    Args:
        error: what the library raised.
        outer: as of `causes`.
    """
    chain = list(causes(error, outer))
    for each in chain:
        if isinstance(each, socket.gaierror):
            if each.errno in _BUSY_RESOLVER:
                return True
        elif isinstance(each, OSError) and each.errno in _OUT_OF:
            return True
    if not any("Proxy" in type(each).__name__ for each in chain):
        return False
    answer = _BY_THE_PROXY.search(" ".join(str(each) for each in chain))
    if answer is not None:
        return answer[1] in _TRY_LATER or answer[1].startswith("5")
    return not never_reached(error, outer)


def causes(error: BaseException, outer: BaseException | None) -> Iterator[BaseException]:
    """The error, and all that it was made from, wherever a library keeps it.

    Args:
        error: what the library raised.
        outer: `sys.exception()` where the request began. A caller that retries within `except` is
            still handling an older error, which Python makes the context of each new one.
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
        todo += getattr(each, "kwargs", {}).values()  # botocore's, which has no cause
