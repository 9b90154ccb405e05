"""Make many creates of one name reach a server at the same moment.

Threads of a client library arrive milliseconds apart, and a server that checks first and writes
afterwards goes undetected that way. So whole requests are put together and authorised beforehand;
each goes out on its own connection but for its last byte; then the last bytes leave in one loop,
within a fraction of a millisecond. Where requests are not available as bytes, threads are released
by a barrier (`together`).
"""

from __future__ import annotations

import contextlib
import enum
import http.client
import os
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.logstores.object_store.client import PreparedRequest

_HEADS_ARRIVE: Final = 0.03
"""Seconds for servers to read what comes before the last byte, so that only that is awaited."""
_TAKEN: Final = (409, 412)


class Outcome(enum.Enum):
    """The answer that one writer of a race got."""

    WON = "won"
    LOST = "lost"
    UNANSWERED = "unanswered"
    """No answer, or one that settles nothing, such as 503."""


def send_together(requests: Sequence[PreparedRequest], timeout: float) -> list[Outcome]:
    """Send requests so that their last bytes leave together, and return the answer that each got.

    Args:
        requests: to one server.
        timeout: seconds to connect, and for each reply.

    Raises:
        OSError: a connection could not be made.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_connected(request, timeout)) for request in requests]
        for connection, request in zip(sockets, requests, strict=True):
            connection.sendall(request.data[:-1])
        time.sleep(_HEADS_ARRIVE)
        for connection, request in zip(sockets, requests, strict=True):
            # A server that has hung up already (it answered early) is seen at the reply.
            with contextlib.suppress(OSError):
                connection.sendall(request.data[-1:])
        return [_outcome(connection) for connection in sockets]


def _connected(request: PreparedRequest, timeout: float) -> socket.socket:
    plain = socket.create_connection((request.host, request.port), timeout=timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not request.tls:
            return plain
        return trusting().wrap_socket(plain, server_hostname=request.host)
    except BaseException:
        plain.close()
        raise


def trusting() -> ssl.SSLContext:
    """TLS with the system's authorities, or with the user's own.

    Raises:
        OSError: the file that a variable names can't be read.
    """
    # The variables that give the SDKs a company's own certificates.
    names = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
    bundle = next((os.environ[name] for name in names if os.environ.get(name)), None)
    return ssl.create_default_context(cafile=bundle)


def _outcome(connection: socket.socket) -> Outcome:
    reply = http.client.HTTPResponse(connection)
    try:
        reply.begin()
        status = reply.status
        reply.read()
    except (OSError, http.client.HTTPException):
        return Outcome.UNANSWERED
    finally:
        reply.close()
    if 200 <= status < 300:
        return Outcome.WON
    return Outcome.LOST if status in _TAKEN else Outcome.UNANSWERED
