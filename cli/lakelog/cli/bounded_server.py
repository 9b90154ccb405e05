"""A server of HTTP that answers each request in a thread, and only so many at once."""

from __future__ import annotations

import contextlib
import hmac
import io
import logging
import socket
import socketserver
import ssl
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

    Request = socket.socket | tuple[bytes, socket.socket]

_logger = logging.getLogger("lakelog")

_DISCARDED: Final = 16 << 20
"""Bytes at most of what a client still sends when it has its answer."""


def is_same(given: str, token: str) -> bool:
    """Whether a token is the right one; the time that it takes does not say how much of it fits."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


@dataclass(eq=False, slots=True)
class _Place:
    """A connection's, among those that may be open."""

    connection: socket.socket
    waits_since: float | None
    """When it began to wait for the client; None while the client waits for an answer."""
    is_taken: bool = False
    """Whether another connection has it by now."""

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):  # the client has
            # Not TLS's own, which another thread is about to use.
            socket.socket.shutdown(self.connection, socket.SHUT_RDWR)


class BoundedServer(ThreadingHTTPServer):
    """The server; what it answers is its handler's.

    When all places are taken, a new connection gets that of the one that has waited longest for its
    client: to greet, to send its request or the rest of it, or the next one. So neither who keeps
    a connection nor who is slow keeps others out.
    """

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BoundedHandler],
        *,
        connections: int,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """Listen; nothing is answered before `serve_forever`.

        Args:
            address: host and port, 0 for any that is free.
            handler: of each connection.
            connections: that are open at most; it hangs up on others where all of these are being
                answered.
            tls: gives what has the certificate, for each connection; None for connections that
                anybody on the way can read.

        Raises:
            OSError: the address is taken, or none of this host.
        """
        self.tls = tls
        self._connections = connections
        self._mutex = threading.Lock()
        self._places: dict[Request, _Place] = {}
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind the socket; `HTTPServer` also asks the resolver for a name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name: str = str(host)
        self.server_port: int = int(port)

    def process_request(self, request: Request, client_address: Any) -> None:
        """Answer in a thread; where none can be had, hang up."""
        if not self._admits(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be had
            self._leave(request)
            raise

    def process_request_thread(self, request: Request, client_address: Any) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def handle_error(self, request: Request, client_address: Any) -> None:  # noqa: ARG002
        """Note that a client went away; whatever else fails is answered."""
        _logger.debug("a request ended early", exc_info=True)

    def _admits(self, request: Request) -> bool:
        assert isinstance(request, socket.socket)
        with self._mutex:
            if len(self._places) >= self._connections:
                waiting = [
                    (place.waits_since, number, key)
                    for number, (key, place) in enumerate(self._places.items())
                    if place.waits_since is not None
                ]
                if not waiting:
                    return False
                idlest = self._places.pop(min(waiting)[2])
                idlest.is_taken = True
                idlest.hang_up()
            self._places[request] = _Place(request, time.monotonic())
        return True

    def _leave(self, request: Request) -> None:
        with self._mutex:
            self._places.pop(request, None)

    def place_of(self, request: Request) -> _Place:
        """For the handler: the place of its connection."""
        with self._mutex:
            place = self._places.get(request)
        if place is None:
            raise ConnectionAbortedError
        return place

    def waits(self, place: _Place, *, is_for_client: bool) -> None:
        """For the handler: from now on it waits for its client, or its client for an answer.

        Raises:
            ConnectionAbortedError: its place is another's by now.
        """
        with self._mutex:
            if not is_for_client:
                place.waits_since = None
            elif place.waits_since is None:
                place.waits_since = time.monotonic()
            if place.is_taken:
                raise ConnectionAbortedError


class _Arriving(io.RawIOBase):
    """What a client sends, while there is time for all of it, however slowly it comes."""

    def __init__(self, handler: BoundedHandler) -> None:
        self._connection: socket.socket = handler.connection
        self.until = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class BoundedHandler(BaseHTTPRequestHandler):
    """A connection: bounded in the time that its client takes, and closed so that it can read why.

    `timeout` is in seconds: for the client to greet, to send its whole request, or the next one,
    and to take the answer.
    """

    server_version: str = "lakelog"
    sys_version: str = ""
    timeout: ClassVar[float | None] = 60.0
    request: Any
    rfile: io.BufferedIOBase

    def refuse(self, status: HTTPStatus) -> None:
        """Answer what is no request."""
        raise NotImplementedError

    def setup(self) -> None:
        """Greet the client, in the connection's own thread: who is slow keeps no other waiting."""
        self.place: _Place = self.bounded.place_of(self.request)
        tls = self.bounded.tls
        if tls is not None:
            self.request.settimeout(self.timeout)
            self.request = tls().wrap_socket(
                self.request, server_side=True, do_handshake_on_connect=False
            )
            self.place.connection = self.request
            try:
                self.request.do_handshake()
            except BaseException:
                self.request.close()
                raise
        super().setup()
        self._arriving = _Arriving(self)
        self.rfile.close()
        self.rfile = io.BufferedReader(self._arriving)

    def handle(self) -> None:
        """Answer all requests of the connection."""
        super().handle()
        self._discard()

    def handle_one_request(self) -> None:
        """Answer the next one."""
        self.bounded.waits(self.place, is_for_client=True)
        assert self.timeout is not None
        self._arriving.until = time.monotonic() + self.timeout
        super().handle_one_request()

    def begin_to_answer(self) -> None:
        """The request is there, and worth its place until it is answered."""
        self.bounded.waits(self.place, is_for_client=False)

    def finish(self) -> None:
        """Close what `setup` has opened."""
        super().finish()
        if isinstance(self.request, ssl.SSLSocket):
            self.request.close()

    def send_error(
        self,
        code: int,
        message: str | None = None,  # noqa: ARG002
        explain: str | None = None,  # noqa: ARG002
    ) -> None:
        """Answer what is no request; nothing of it is repeated, for it may hold the token."""
        # With its headers, also where the version of HTTP is what is wrong.
        self.request_version: str = self.protocol_version
        self.refuse(HTTPStatus(code))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: an address may hold the token, and the terminal is the user's."""

    @property
    def bounded(self) -> BoundedServer:
        """The server."""
        assert isinstance(self.server, BoundedServer)
        return self.server

    def _discard(self) -> None:
        """Read what still comes: a connection that is closed before loses the answer as well."""
        buffer, left = bytearray(1 << 16), _DISCARDED
        with contextlib.suppress(OSError):
            self.bounded.waits(self.place, is_for_client=True)
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
            while left > 0 and (read := self._arriving.readinto(buffer)):
                left -= read
