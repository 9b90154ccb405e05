"""A TCP proxy on 127.0.0.1 that does chosen harm to chosen calls of Hadoop's RPC, once each.

    with RpcProxy(cluster.rpc) as proxy:
        proxy.arm("drop_reply", b"rename2")
        ...                        # talk to hdfs://127.0.0.1:<proxy.port>
        assert proxy.fired == ["drop_reply"]

Both ways are frames of four bytes of length and so many bytes; a call's frame holds the name of
its method. What can happen to the first call that holds the given bytes:

    drop_reply   the NameNode does the work; its reply becomes a connection reset
    hang_reply   the NameNode does the work; its reply, and all later ones, never come
    reset        the NameNode never hears of it; the connection is reset
    die          as drop_reply, and nobody is served any more until `come_back`
    die_before   as reset, and nobody is served any more until `come_back`
    hold         the NameNode hears of it only when the proxy is closed or `release` is called;
                 the client's connection is reset at once
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_HELLO = 7
_PATIENCE = 60.0


class RpcProxy:
    """Listens on a port of its own, in front of a NameNode.

    Attributes:
        port: where clients connect.
        fired: the faults that happened, in order.
    """

    def __init__(self, upstream: tuple[str, int]) -> None:
        """Listen at once; `upstream` is the NameNode's RPC server."""
        self._upstream = upstream
        self._armed: list[tuple[str, bytes]] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._held: list[tuple[socket.socket, bytes, threading.Event]] = []
        self._refusing = False
        self.fired: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def uri(self) -> str:
        """The HDFS behind it."""
        return f"hdfs://127.0.0.1:{self.port}"

    def arm(self, fault: str, match: bytes, times: int = 1) -> None:
        """Let a fault happen to the next calls whose frame holds `match`."""
        with self._lock:
            self._armed += [(fault, match)] * times

    def disarm(self) -> None:
        """Let nothing happen any more."""
        with self._lock:
            self._armed.clear()

    def go_down(self) -> None:
        """Reset all connections, and every new one, as a NameNode that is gone."""
        self._refusing = True
        with self._lock:
            held = list(self._open)
        for each in held:
            _reset(each)

    @property
    def is_down(self) -> bool:
        """Whether nobody is served."""
        return self._refusing

    def come_back(self) -> None:
        """Serve again."""
        self._refusing = False

    def release(self) -> None:
        """Deliver what was held, and wait for its replies."""
        with self._lock:
            held, self._held = self._held, []
        for server, frame, answered in held:
            server.sendall(frame)
            assert answered.wait(_PATIENCE), "the NameNode did not answer what was held"
            _reset(server)

    def close(self) -> None:
        """Drop every connection and stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.go_down()
        for server, _, _ in self._held:
            _reset(server)

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
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                _reset(client)
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._upstream, timeout=_PATIENCE)
        except OSError:
            _reset(client)
            return
        for each in (client, server):
            each.settimeout(_PATIENCE)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open |= {client, server}
        replies = _Replies(server, client, self.go_down)
        keep_server = False
        try:
            server.sendall(_exactly(client, _HELLO))
            threading.Thread(target=replies.run, daemon=True).start()
            while True:
                frame = _frame(client)
                fault = self._fault_of(frame)
                if fault == "die_before":
                    self.go_down()
                if fault in ("reset", "die_before"):
                    return
                if fault == "hold":
                    replies.harm = fault
                    with self._lock:
                        self._held.append((server, frame, replies.swallowed))
                    keep_server = True
                    return
                if fault:
                    replies.harm = fault
                server.sendall(frame)
        except OSError:
            pass
        finally:
            for each in (client,) if keep_server else (client, server):
                with self._lock:
                    self._open.discard(each)
                _reset(each)

    def _fault_of(self, frame: bytes) -> str:
        with self._lock:
            found = next((each for each in self._armed if each[1] in frame), None)
            if found is None:
                return ""
            self._armed.remove(found)
            self.fired.append(found[0])
            return found[0]


class _Replies:
    """One connection's way back."""

    def __init__(
        self, server: socket.socket, client: socket.socket, die: Callable[[], None]
    ) -> None:
        self._server, self._client, self._die = server, client, die
        self.harm = ""
        self.swallowed = threading.Event()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                frame = _frame(self._server)
                if self.harm == "drop_reply":
                    break
                if self.harm == "die":
                    self._die()
                    break
                if self.harm:
                    self.swallowed.set()
                else:
                    self._client.sendall(frame)
        _reset(self._client)


def _frame(sock: socket.socket) -> bytes:
    head = _exactly(sock, 4)
    return head + _exactly(sock, struct.unpack(">I", head)[0])


def _exactly(sock: socket.socket, need: int) -> bytes:
    data = b""
    while len(data) < need:
        more = sock.recv(need - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data


def _reset(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Lingering for no time makes the close a reset; the shutdown wakes whoever reads.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        sock.close()
