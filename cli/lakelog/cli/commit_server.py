"""The server of `lakelog serve --listen`: commits of other hosts, for those who have the token."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from lakelog.cli.bounded_server import BoundedHandler, BoundedServer, is_same
from lakelog.core.engine.commit import COMMIT_PATH, MOST_BYTES, refusal

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from lakelog.core.engine.commit import Answer, CommitService

_CONNECTIONS: Final = 512


class CommitServer(BoundedServer):
    """Answers by a `CommitService`, each request in a thread."""

    request_queue_size = _CONNECTIONS

    def __init__(
        self,
        address: tuple[str, int],
        service: CommitService,
        token: Callable[[], str],
        tls: Callable[[], ssl.SSLContext] | None,
    ) -> None:
        """Listen; nothing is answered before `serve_forever`.

        Args:
            address: host and port, 0 for any that is free.
            service: commits.
            token: gives the one that each request must have.
            tls: gives what has the certificate, for each connection; None for connections that
                anybody on the way can read.

        Raises:
            OSError: the address is taken, or none of this host.
        """
        self.service = service
        self._token, self._host = token, address[0]
        if ":" in address[0]:
            self.address_family: int = socket.AF_INET6
        super().__init__(address, _Handler, connections=_CONNECTIONS, tls=tls)

    @property
    def urls(self) -> list[str]:
        """What clients may be told, the likeliest first."""
        host = self._host
        hosts = [host]
        if _is_wildcard(host):
            # A certificate names hosts; and a name that others don't know leads nowhere.
            hosts = [*_addresses(is_v6=":" in host), socket.gethostname()]
            if self.tls is not None:
                hosts.reverse()
        scheme = "http" if self.tls is None else "https"
        shown = (f"[{each}]" if ":" in each else each for each in hosts)
        return [f"{scheme}://{each}:{self.server_port}" for each in shown]

    def is_let_in(self, authorization: str) -> bool:
        """Whether a request has the token."""
        kind, _, given = authorization.partition(" ")
        return kind.lower() == "bearer" and is_same(given.strip(), self._token())


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _addresses(*, is_v6: bool) -> list[str]:
    """Those by which this host reaches others; nothing is sent to find them."""
    found = []
    for family, other in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        if family == socket.AF_INET or is_v6:
            with (
                contextlib.suppress(OSError),  # it has no way there
                socket.socket(family, socket.SOCK_DGRAM) as way,
            ):
                way.connect((other, 9))
                found.append(way.getsockname()[0])
    return found


class _Handler(BoundedHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def refuse(self, status: HTTPStatus) -> None:
        if status is HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self._refuse(status, status.phrase)

    def do_POST(self) -> None:  # noqa: N802 (the name that the library calls)
        if not self._server.is_let_in(self.headers.get("Authorization", "")):
            self._refuse(HTTPStatus.UNAUTHORIZED, "the token is not the service's")
            return
        if self.path != COMMIT_PATH:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing but {COMMIT_PATH}")
            return
        length, *others = self.headers.get_all("Content-Length", [""])
        is_number = length.isascii() and length.isdecimal() and not others
        if not is_number or "Transfer-Encoding" in self.headers:
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
        self.begin_to_answer()
        self._send(self._server.service.answer(body))

    @property
    def _server(self) -> CommitServer:
        assert isinstance(self.server, CommitServer)
        return self.server

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # its body was not read
        self._send(refusal(status, why))

    def _send(self, answer: Answer) -> None:
        self.connection.settimeout(self.timeout)
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)
