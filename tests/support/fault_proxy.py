"""A TCP proxy on 127.0.0.1 that does chosen harm to chosen HTTP exchanges, once each.

    with FaultProxy(endpoint.url) as proxy:
        proxy.arm("drop_reply", b"PUT /bucket/t/_delta_log/0")
        ...                        # talk to proxy.url
        assert proxy.fired == ["drop_reply"]

A fault is armed for the first request whose head (request line and headers) holds the given
bytes. What can happen to it:

    drop_reply       the server does the work; its reply becomes a connection reset
    hang_reply       the server does the work; its reply never comes, until the client leaves
    cut_reply        the server does the work; the reply ends after a few bytes
    delay:<seconds>  the reply comes late
    tell:<status>    the server does the work; the client is told this status instead
    refuse:<status>[:<code>]   the server never hears of it; the client is told this status, with
                     an XML body of that error code, as S3 and Azure have it
    html:<status>    the server never hears of it; an HTML page answers, as from a company's proxy
    reset            the server never hears of it; the connection is reset
    twice            the request is delivered a second time when the first has been answered; the
                     client gets the *second* reply
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["FaultProxy"]

_LENGTH = re.compile(rb"(?im)^content-length:\s*(\d+)")
_XML = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    "<Error><Code>{}</Code><Message>injected</Message></Error>"
)
_PATIENCE = 120.0


class _Done(Exception):  # noqa: N818  # the end of an exchange, not an error
    """The connection is over."""


class FaultProxy:
    """Listens on a port of its own, `url`, in front of an HTTP service.

    Attributes:
        url: where clients connect.
        fired: the faults that happened, in order.
        requests: the request lines of all that came, in order.
    """

    def __init__(self, upstream: str) -> None:
        """Listen at once; `upstream` is the service's URL."""
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._armed: list[tuple[str, bytes]] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._stopped = threading.Event()
        self.fired: list[str] = []
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"{parts.scheme}://127.0.0.1:{self.port}{parts.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, fault: str, match: bytes, times: int = 1) -> None:
        """Let a fault happen to the next requests whose head holds `match`."""
        with self._lock:
            self._armed += [(fault, match)] * times

    def close(self) -> None:
        """Drop every connection and stop listening."""
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            held = list(self._open)
        for each in held:
            _reset(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server: socket.socket | None = None
        try:
            server = socket.create_connection(self._upstream, timeout=_PATIENCE)
            for each in (client, server):
                each.settimeout(_PATIENCE)
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._open.add(each)
            while True:
                self._exchange(client, server)
        except (_Done, OSError):
            pass
        finally:
            for each in (client, server):
                if each is not None:
                    with self._lock:
                        self._open.discard(each)
                    _reset(each)

    def _exchange(self, client: socket.socket, server: socket.socket) -> None:
        head, rest = _head(client)
        line = head.split(b"\r\n", 1)[0].decode(errors="replace")
        with self._lock:
            self.requests.append(line)
            found = next((each for each in self._armed if each[1] in head), None)
            if found:
                self._armed.remove(found)
                self.fired.append(found[0])
        fault, _, detail = (found[0] if found else "").partition(":")
        if fault == "reset":
            raise _Done
        body = self._body(client, head, rest)
        if fault in ("refuse", "html"):
            _tell(client, detail, page=fault == "html")
            raise _Done
        reply = _ask(server, head, body)
        if fault == "twice":
            with socket.create_connection(self._upstream, timeout=_PATIENCE) as again:
                reply = _ask(again, head, body)
        if fault == "drop_reply":
            raise _Done
        if fault == "hang_reply":
            with contextlib.suppress(OSError):
                client.recv(1)
            raise _Done
        if fault == "cut_reply":
            client.sendall(reply[: min(40, len(reply) - 1)])
            raise _Done
        if fault == "delay":
            self._stopped.wait(float(detail))
        if fault == "tell":
            _tell(client, detail)
            raise _Done
        client.sendall(reply)
        if b"\r\nconnection: close" in reply[:4096].lower():
            client.shutdown(socket.SHUT_WR)
            raise _Done

    def _body(self, client: socket.socket, head: bytes, rest: bytes) -> bytes:
        """The request's whole body; a client that waits to be asked for it is asked by us."""
        lowered = head.lower()
        if b"transfer-encoding: chunked" in lowered:
            if b"100-continue" in lowered and not rest:
                client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            return _chunks(client, rest)
        match = _LENGTH.search(head)
        need = int(match[1]) if match else 0
        if b"100-continue" in lowered and len(rest) < need:
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return _exactly(client, rest, need)


def _head(sock: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _received(sock)
    head, _, rest = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def _ask(server: socket.socket, head: bytes, body: bytes) -> bytes:
    """Send a request and wait for the whole reply. The server is not asked to say 100."""
    kept = re.sub(rb"(?im)^expect:[^\r\n]*\r\n", b"", head)
    server.sendall(kept + body)
    while True:
        top, rest = _head(server)
        status = int(top.split(b" ", 2)[1])
        if status != 100:
            break
    if head.startswith(b"HEAD ") or status in (204, 304):
        return top
    if b"transfer-encoding: chunked" in top.lower():
        return top + _chunks(server, rest)
    match = _LENGTH.search(top)
    if match:
        return top + _exactly(server, rest, int(match[1]))
    with contextlib.suppress(_Done):
        while True:
            rest += _received(server)
    return top + rest


def _chunks(sock: socket.socket, data: bytes) -> bytes:
    at = 0
    while True:
        while b"\r\n" not in data[at:]:
            data += _received(sock)
        line = data[at:].split(b"\r\n", 1)[0]
        size = int(line.split(b";")[0], 16)
        at += len(line) + 2
        if size == 0:  # trailers, if any, end with an empty line
            while not (data[at:].startswith(b"\r\n") or b"\r\n\r\n" in data[at:]):
                data += _received(sock)
            return data
        data = _exactly(sock, data, at + size + 2)
        at += size + 2


def _exactly(sock: socket.socket, data: bytes, need: int) -> bytes:
    while len(data) < need:
        data += _received(sock)
    return data


def _received(sock: socket.socket) -> bytes:
    data = sock.recv(1 << 16)
    if not data:
        raise _Done
    return data


def _tell(client: socket.socket, detail: str, *, page: bool = False) -> None:
    status, _, code = detail.partition(":")
    body = "<html><body>Please sign in to the proxy.</body></html>" if page else ""
    kind = "text/html" if page else "application/xml"
    if code:
        body = _XML.format(code)
    # Azure's clients read the code from a header.
    named = f"x-ms-error-code: {code}\r\n" if code else ""
    client.sendall(
        f"HTTP/1.1 {status} Injected\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{named}Connection: close\r\n\r\n{body}".encode()
    )
    client.shutdown(socket.SHUT_WR)
    client.settimeout(1.0)
    with contextlib.suppress(OSError):
        client.recv(1)


def _reset(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Lingering for no time makes the close a reset; the shutdown wakes whoever reads.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RD)
    with contextlib.suppress(OSError):
        sock.close()
