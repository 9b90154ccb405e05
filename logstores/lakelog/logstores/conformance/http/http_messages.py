"""HTTP/1.1 messages on sockets: just enough of it to pass them on, whole, or to break them."""

from __future__ import annotations

import contextlib
import re
import socket
import struct

PATIENCE = 120.0
"""Seconds after which a peer that says nothing is given up."""

_LENGTH = re.compile(rb"(?im)^content-length:\s*(\d+)")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:[^\r\n]*\bchunked\b")
_CONTINUE = re.compile(rb"(?im)^expect:\s*100-continue")
_HOP = re.compile(rb"(?im)^(?:expect|connection):[^\r\n]*\r\n")
_HEAD_LIMIT = 1 << 20
_XML = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    "<Error><Code>{}</Code><Message>injected</Message></Error>"
)
_PAGE = "<html><body>Please sign in to the proxy.</body></html>"


class ConnectionEnd(Exception):  # noqa: N818  # the end of an exchange, not an error
    """The connection is over."""


def head_of(sock: socket.socket, data: bytes = b"") -> tuple[bytes, bytes]:
    """The head of the next message, with its empty line, and what came after it already.

    Args:
        sock: where it comes from.
        data: what came of it with the message before.

    Raises:
        ConnectionEnd: the peer left, or what it says is not HTTP.
    """
    while b"\r\n\r\n" not in data:
        if len(data) > _HEAD_LIMIT:
            raise ConnectionEnd
        data += _received(sock)
    head, _, rest = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def body_of(client: socket.socket, head: bytes, rest: bytes) -> bytes:
    """A request's whole body as it is on the wire; a client that waits to be asked is asked."""
    chunked = _CHUNKED.search(head) is not None
    match = _LENGTH.search(head)
    need = int(match[1]) if match else 0
    if _CONTINUE.search(head) and not rest and (chunked or need):
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    return _chunks(client, rest) if chunked else _exactly(client, rest, need)


def ask(upstream: tuple[str, int], head: bytes, body: bytes) -> bytes:
    """Deliver a request on a connection of its own, and take the whole reply.

    A connection per request can't have been closed by the service a moment ago, so the only
    faults that a client meets are those that were asked for.

    Raises:
        ConnectionEnd: the service left in the middle of its reply.
        OSError: the service can't be reached.
    """
    with socket.create_connection(upstream, timeout=PATIENCE) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.sendall(_HOP.sub(b"", head) + body)
        rest = b""
        while True:
            top, rest = head_of(server, rest)
            status = int(top.split(b" ", 2)[1])
            if status >= 200:  # before it there may be 100 and other news of progress
                break
        if head.startswith(b"HEAD ") or status in (204, 304):
            return top
        if _CHUNKED.search(top):
            return top + _chunks(server, rest)
        if match := _LENGTH.search(top):
            return top + _exactly(server, rest, int(match[1]))
        with contextlib.suppress(ConnectionEnd):
            while True:
                rest += _received(server)
        # The client would not notice the end on a connection that stays open.
        return top[:-2] + b"Content-Length: %d\r\n\r\n" % len(rest) + rest


def split_reply(reply: bytes) -> tuple[bytes, bytes]:
    """Head and body of a whole reply."""
    head, _, body = reply.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", body


def tell(client: socket.socket, request: bytes, detail: str, *, page: bool = False) -> None:
    """Answer in the service's place, and end the connection.

    Args:
        client: who asked.
        request: the head of what it asked.
        detail: `<status>` or `<status>:<code>`; the code goes where S3 (XML), Google (JSON) and
            Azure (a header) look for it.
        page: say it with an HTML page.
    """
    status, _, code = detail.partition(":")
    kind, body = "application/xml", _XML.format(code) if code else ""
    if page:
        kind, body = "text/html", _PAGE
    elif code and b"/storage/v1/" in request:
        kind = "application/json; charset=UTF-8"
        body = (
            f'{{"error": {{"code": {status}, "message": "injected", '
            f'"errors": [{{"reason": "{code}", "message": "injected"}}]}}}}'
        )
    named = f"x-ms-error-code: {code}\r\n" if code else ""
    head = (
        f"HTTP/1.1 {status} Injected\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{named}Connection: close\r\n\r\n"
    )
    client.sendall((head if request.startswith(b"HEAD ") else head + body).encode())
    client.shutdown(socket.SHUT_WR)
    client.settimeout(1.0)
    with contextlib.suppress(OSError):
        client.recv(1)


def reset(sock: socket.socket) -> None:
    """End a connection by a reset, and wake up its readers."""
    with contextlib.suppress(OSError):
        # Lingering for no time makes the close a reset.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RD)
    with contextlib.suppress(OSError):
        sock.close()


def _chunks(sock: socket.socket, data: bytes) -> bytes:
    at = 0
    while True:
        while b"\r\n" not in data[at:]:
            data += _received(sock)
        line = data[at:].split(b"\r\n", 1)[0]
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            raise ConnectionEnd from None
        at += len(line) + 2
        if size == 0:  # trailers, if any, end with an empty line
            while not (data[at:].startswith(b"\r\n") or b"\r\n\r\n" in data[at:]):
                data += _received(sock)
            return data
        data = _exactly(sock, data, at + size + 2)
        at += size + 2


def _exactly(sock: socket.socket, data: bytes, need: int) -> bytes:
    parts, have = [data], len(data)
    while have < need:
        parts.append(_received(sock))
        have += len(parts[-1])
    return b"".join(parts)


def _received(sock: socket.socket) -> bytes:
    data = sock.recv(1 << 16)
    if not data:
        raise ConnectionEnd
    return data
