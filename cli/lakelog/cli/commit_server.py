"""The server of `lakelog serve --listen`: commits of other hosts, for those who have the token."""

from __future__ import annotations

import io
import socket
import ssl
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final

from lakelog.cli.bounded_server import BoundedServer, is_same
from lakelog.core.engine.commit import COMMIT_PATH, MOST_BYTES, refusal

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from lakelog.core.engine.commit import Answer, CommitService

_CONNECTIONS: Final = 512
_SECONDS: Final = 60
"""For a client to greet, to send its whole request, or the next one, and to take the answer."""


class CommitServer(BoundedServer):
    """Answers by a `CommitService`, each request in a thread."""

    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        service: CommitService,
        token: str,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Listen; nothing is answered before `serve_forever`.

        Args:
            address: host and port, 0 for any that is free.
            service: commits.
            token: that each request must have.
            tls: with the certificate; None for connections that anybody on the way can read.

        Raises:
            OSError: the address is taken, or none of this host.
        """
        self.service = service
        self.tls = tls
        self._token = token
        if ":" in address[0]:
            self.address_family: int = socket.AF_INET6
        super().__init__(address, _Handler, connections=_CONNECTIONS)

    @property
    def url(self) -> str:
        """What clients are told."""
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"{'http' if self.tls is None else 'https'}://{host}:{self.server_port}"

    def is_let_in(self, authorization: str) -> bool:
        """Whether a request has the token."""
        kind, _, given = authorization.partition(" ")
        return kind.lower() == "bearer" and is_same(given.strip(), self._token)


class _Arriving(io.RawIOBase):
    """What a client sends, while there is time for all of it, however slowly it comes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.until = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "lakelog", ""
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS
    disable_nagle_algorithm = True

    def setup(self) -> None:
        tls = self._server.tls
        if tls is not None:
            # In the connection's own thread: who is slow to greet keeps no other waiting.
            self.request.settimeout(_SECONDS)
            self.request = tls.wrap_socket(self.request, server_side=True)
        super().setup()
        self._arriving = _Arriving(self.connection)
        self.rfile.close()
        self.rfile = io.BufferedReader(self._arriving)

    def handle_one_request(self) -> None:
        self._arriving.until = time.monotonic() + _SECONDS
        super().handle_one_request()

    def finish(self) -> None:
        super().finish()
        if isinstance(self.request, ssl.SSLSocket):
            self.request.close()

    def do_POST(self) -> None:
        if not self._server.is_let_in(self.headers.get("Authorization", "")):
            self._refuse(HTTPStatus.UNAUTHORIZED, "the token is not the service's")
            return
        if self.path != COMMIT_PATH:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing but {COMMIT_PATH}")
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a request says its length")
            return
        if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            why = f"a request has {MOST_BYTES} bytes at most"
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return
        self._send(self._server.service.answer(body))

    def send_error(
        self,
        code: int,
        message: str | None = None,  # noqa: ARG002
        explain: str | None = None,  # noqa: ARG002
    ) -> None:
        """Answer what is no request; nothing of it is repeated, for it may hold the token."""
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.request_version: str = self.protocol_version
        self._refuse(status, status.phrase)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: the service logs what it does."""

    @property
    def _server(self) -> CommitServer:
        assert isinstance(self.server, CommitServer)
        return self.server

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # its body was not read
        self._send(refusal(status, why))

    def _send(self, answer: Answer) -> None:
        self.connection.settimeout(_SECONDS)
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)
