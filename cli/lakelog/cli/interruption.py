"""How commands that run until they are stopped are stopped."""

from __future__ import annotations

import contextlib
import signal
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STOPS: Final = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def until_stopped() -> Iterator[Callable[[], None]]:
    """Yield what waits for Ctrl-C or SIGTERM, whichever comes from here on.

    Must be entered by the main thread.
    """
    # Python runs a handler in the main thread alone, which a lock or a queue does not let go of
    # where the system has given the signal to another thread, or just before it began to wait.
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def wait() -> None:
        while reader.recv(1)[0] not in _STOPS:
            pass

    with reader, writer:
        before = {each: signal.signal(each, lambda *_: None) for each in _STOPS}
        woken = signal.set_wakeup_fd(writer.fileno())
        try:
            yield wait
        finally:
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
