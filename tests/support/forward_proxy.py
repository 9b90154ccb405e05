"""A forward proxy on 127.0.0.1: the only way to a service by a name that nobody resolves."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from lakelog.logstores.conformance.http.http_messages import ConnectionEnd, ask, body_of, head_of

if TYPE_CHECKING:
    from types import TracebackType

HOST = "storage.invalid"
"""The name, which by RFC 2606 never leads anywhere."""


class ForwardProxy:
    """Takes absolute URLs and CONNECT, and leads all of them to one service.

    Attributes:
        url: for HTTP_PROXY and HTTPS_PROXY.
        requests: the request lines that came; of TLS, the CONNECTs alone.
    """

    def __init__(self, upstream: str) -> None:
        """Listen at once.

        Args:
            upstream: the service's URL.
        """
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "", parts.port or 0)
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(ConnectionEnd, OSError):
            client.settimeout(60)
            while True:
                head, rest = head_of(client)
                line, _, fields = head.partition(b"\r\n")
                self.requests.append(line.decode())
                method, target, version = line.split(b" ")
                if method == b"CONNECT":
                    client.sendall(b"HTTP/1.1 200 Established\r\n\r\n")
                    self._tunnel(client)
                    return
                path = b"/" + target.split(b"/", 3)[3]
                body = body_of(client, head, rest)
                asked = b"%s %s %s\r\n%s" % (method, path, version, fields)
                client.sendall(ask(self._upstream, asked, body))

    def _tunnel(self, client: socket.socket) -> None:
        with socket.create_connection(self._upstream) as server:
            back = threading.Thread(target=_pour, args=(server, client), daemon=True)
            back.start()
            _pour(client, server)
            back.join()


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
