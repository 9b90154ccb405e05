"""A server of HTTP that answers each request in a thread, and only so many at once."""

from __future__ import annotations

import hmac
import logging
import socketserver
import threading
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from http.server import BaseHTTPRequestHandler

    Request = socket.socket | tuple[bytes, socket.socket]

_logger = logging.getLogger("lakelog")


def is_same(given: str, token: str) -> bool:
    """Whether a token is the right one; the time that it takes does not say how much of it fits."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


class BoundedServer(ThreadingHTTPServer):
    """The server; what it answers is its handler's."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], *, connections: int
    ) -> None:
        """Listen; nothing is answered before `serve_forever`.

        Args:
            address: host and port, 0 for any that is free.
            handler: of each connection.
            connections: that are open at most; to others it hangs up.

        Raises:
            OSError: the address is taken, or none of this host.
        """
        self._free = threading.BoundedSemaphore(connections)
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind the socket; `HTTPServer` also asks the resolver for a name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name: str = str(host)
        self.server_port: int = int(port)

    def process_request(self, request: Request, client_address: Any) -> None:
        """Answer in a thread; beyond so many at once, hang up."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be had
            self._free.release()
            raise

    def process_request_thread(self, request: Request, client_address: Any) -> None:
        """Answer, and make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Request, client_address: Any) -> None:  # noqa: ARG002
        """Note that a client went away; whatever else fails is answered."""
        _logger.debug("a request ended early", exc_info=True)
