"""A TCP proxy on 127.0.0.1 that injects chosen faults into chosen HTTP exchanges, once each.

    with FaultProxy("http://127.0.0.1:9000") as proxy:
        proxy.arm("drop_reply", b"PUT /bucket/t/_delta_log/0")
        ...                        # talk to proxy.url
        assert proxy.fired == ["drop_reply"]

A fault is armed for the first request whose head (request line and headers) holds the given
bytes, or is found by the given pattern. What can happen to it:

The service does the work, and of its reply

    drop_reply         nothing comes: the connection is reset
    hang_reply         nothing comes, and the connection stays open until the client leaves
    cut_reply[:<n>]    n bytes come (40 by default), then the connection ends
    tear_reply         the head and half of the body come, then the connection ends
    slow:<seconds>     everything comes, in ten pieces over that time
    delay:<seconds>    everything comes, that much later
    tell:<status>[:<code>]      nothing comes; the client gets this status instead
    page:<status>      nothing comes; the client gets an HTML page, as from a gateway
    die                nothing comes: the connection is reset, and the proxy is down from then on
    twice              the second one comes: the request is delivered again after the first answer

The service hears nothing of the request, and the client

    refuse:<status>[:<code>]    gets this status, with the code where the services have it
    html:<status>      gets an HTML page, as from a company's web proxy
    reset              gets a connection reset before it has sent the body
    drop_request       gets a connection reset after it has sent everything
    hold               waits; `release` delivers the request at last, answered or not

While the proxy is down (`outage`, `die`) every connection is reset.

It speaks HTTP/1.1 without TLS and without pipelining, and is for tests: it holds whole messages in
memory. The service behind it sees the proxy's address in the header Host.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from lakelog.logstores.conformance.http.http_messages import (
    PATIENCE,
    ConnectionEnd,
    ask,
    body_of,
    head_of,
    reset,
    split_reply,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_FAULTS: Final = re.compile(
    r"drop_reply|hang_reply|cut_reply(:\d+)?|tear_reply|(slow|delay):\d+(\.\d+)?"
    r"|(tell|refuse):\d{3}(:\w+)?|(html|page):\d{3}|die|twice|reset|drop_request|hold"
)
_PIECES: Final = 10


class FaultProxy:
    """Listens on a port of its own, `url`, in front of an HTTP service.

    Attributes:
        url: where clients connect.
        port: the port of it.
        fired: the faults that happened, in order.
        requests: the request lines of all that came, in order; faults of theirs do not matter.
    """

    def __init__(self, upstream: str) -> None:
        """Listen at once.

        Args:
            upstream: the service's URL, `http://host:port` with or without a path.

        Raises:
            ValueError: another scheme.
        """
        parts = urlsplit(upstream)
        if parts.scheme != "http":
            raise ValueError(f"the proxy speaks plain HTTP, and {upstream!r} is not http://")
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._armed: list[_Armed] = []
        self._held: list[tuple[bytes, bytes]] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._stopped = threading.Event()
        self._down = threading.Event()
        self.fired: list[str] = []
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = int(self._listener.getsockname()[1])
        self.url: str = f"http://127.0.0.1:{self.port}{parts.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, fault: str, match: bytes | re.Pattern[bytes], times: int = 1) -> None:
        """Let a fault happen to the next requests that match, once to each.

        Args:
            fault: one of the list above.
            match: bytes that the head of the request holds, or a pattern that is found in it.
            times: how many requests.

        Raises:
            ValueError: no such fault.
        """
        if not _FAULTS.fullmatch(fault):
            raise ValueError(f"no such fault: {fault!r}; the module's documentation lists them")
        with self._lock:
            self._armed.append(_Armed(fault, match, times))

    def disarm(self) -> None:
        """Forget the faults that have not happened."""
        with self._lock:
            self._armed.clear()

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """Be down while the block runs: open connections and new ones are reset."""
        self._go_down()
        try:
            yield
        finally:
            self.come_back()

    def come_back(self) -> None:
        """End an outage, or what `die` began."""
        self._down.clear()

    def release(self) -> list[int]:
        """Deliver the requests that `hold` kept, and return the service's status for each."""
        with self._lock:
            held, self._held = self._held, []
        return [int(ask(self._upstream, *each).split(b" ", 2)[1]) for each in held]

    def close(self) -> None:
        """Drop every connection and stop listening."""
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._drop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _go_down(self) -> None:
        self._down.set()
        self._drop_all()

    def _drop_all(self) -> None:
        with self._lock:
            held = list(self._open)
        for each in held:
            reset(each)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with self._lock:
                self._open.add(client)
            client.settimeout(PATIENCE)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not (self._down.is_set() or self._stopped.is_set()):
                self._exchange(client)
        except (ConnectionEnd, OSError):
            pass
        finally:
            with self._lock:
                self._open.discard(client)
            reset(client)

    def _exchange(self, client: socket.socket) -> None:
        head, rest = head_of(client)
        fault, _, detail = self._fault(head).partition(":")
        if fault == "reset":
            raise ConnectionEnd
        body = body_of(client, head, rest)
        if fault == "drop_request":
            raise ConnectionEnd
        if fault in ("refuse", "html"):
            tell(client, head, detail, page=fault == "html")
            raise ConnectionEnd
        if fault == "hold":
            with self._lock:
                self._held.append((head, body))
            _wait_for_leave(client)
        reply = ask(self._upstream, head, body)
        if fault == "twice":
            reply = ask(self._upstream, head, body)
        self._answer(client, head, reply, fault, detail)

    def _fault(self, head: bytes) -> str:
        line = head.split(b"\r\n", 1)[0].decode(errors="replace")
        with self._lock:
            self.requests.append(line)
            found = next((each for each in self._armed if each.meets(head)), None)
            if found is None:
                return ""
            found.left -= 1
            self.fired.append(found.fault)
            return found.fault

    def _answer(
        self, client: socket.socket, head: bytes, reply: bytes, fault: str, detail: str
    ) -> None:
        if fault == "die":
            self._go_down()
        if fault in ("die", "drop_reply"):
            raise ConnectionEnd
        if fault == "hang_reply":
            _wait_for_leave(client)
        if fault in ("tell", "page"):
            tell(client, head, detail, page=fault == "page")
            raise ConnectionEnd
        if fault in ("cut_reply", "tear_reply"):
            top, body = split_reply(reply)
            kept = int(detail or 40) if fault == "cut_reply" else len(top) + len(body) // 2
            client.sendall(reply[: min(kept, len(reply) - 1)])
            client.shutdown(socket.SHUT_WR)
            _wait_for_leave(client)
        if fault == "delay":
            self._stopped.wait(float(detail))
        pieces = _PIECES if fault == "slow" else 1
        size = -(-len(reply) // pieces)
        for start in range(0, len(reply), size):
            if start:
                self._stopped.wait(float(detail) / pieces)
            client.sendall(reply[start : start + size])
        if re.search(rb"(?im)^connection:\s*close", split_reply(reply)[0]):
            client.shutdown(socket.SHUT_WR)
            raise ConnectionEnd


@dataclass(slots=True)
class _Armed:
    fault: str
    match: bytes | re.Pattern[bytes]
    left: int

    def meets(self, head: bytes) -> bool:
        if not self.left:
            return False
        if isinstance(self.match, bytes):
            return self.match in head
        return self.match.search(head) is not None


def _wait_for_leave(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.recv(1)
    raise ConnectionEnd
