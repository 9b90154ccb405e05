"""The one port that a local Spark Connect server takes, which nobody can choose."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

from support.delta_spark import cache_folder, exclusively

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 15002
_PATIENCE = 60.0


@contextlib.contextmanager
def connect_port() -> Iterator[None]:
    """Have the port for the length of the block, among all the tests of this checkout.

    A server of before may take a moment to die after the program that started it.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with exclusively(cache / "spark-connect.lock"):
        deadline = time.monotonic() + _PATIENCE
        while not _is_free() and time.monotonic() < deadline:
            time.sleep(0.1)
        yield


def _is_free() -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", PORT))
        except OSError:
            return False
    return True
