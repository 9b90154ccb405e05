"""The service itself: it listens, has a thread for each connection, and ends in good order."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import socket
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from lakelog.logstores.service.endpoint import Endpoint, default_endpoint_file
from lakelog.logstores.service.frames import (
    HELLO,
    MAGIC,
    OK,
    PROTOCOL_VERSION,
    ProtocolError,
    packed,
    read_frame,
    write_frame,
)
from lakelog.logstores.service.served_connection import ClientGoneError, Conversation
from lakelog.logstores.service.socket_folder import (
    make_socket_folder,
    remove_socket_folder,
    socket_in,
)
from lakelog.logstores.service.stores import Stores
from lakelog.logstores.systems import need

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

_GREETING_SECONDS: Final = 10.0
"""How long one who has connected may take to say who it is, however he spreads his words."""
_MOST_CONNECTIONS: Final = 512
"""Of clients that have shown the token."""
_MOST_STRANGERS: Final = 256
"""Of others: one more takes the place of the one that has been silent for longest."""


class LogStoreService:
    """Serves lakelog's stores to the JVMs of this host and user, from the process that made it.

    One service is enough for many JVMs, sessions and tables. It listens from its making on, on a
    Unix socket, and with `tcp=True` on a port of 127.0.0.1 as well, for a Java older than 16. A
    client proves by a token that it may read the endpoint file. Content passes through in frames
    of a megabyte at the most; nothing is held between requests but the stores.

    Which store a path gets is what `log_store_for` says, by the settings that the client's Hadoop
    conf has and those of `conf`, which win. A store that excludes no other writer is refused,
    as lakelog's own commits refuse it.
    """

    def __init__(
        self,
        conf: Mapping[str, str] | None = None,
        *,
        endpoint_file: str | os.PathLike[str] | None = None,
        tcp: bool = False,
    ) -> None:
        """Begin to listen, and say where in the endpoint file.

        Args:
            conf: settings of stores, and which class serves which scheme, as in a Spark conf.
            endpoint_file: where clients look; `default_endpoint_file()` if not given.
            tcp: whether to listen on TCP as well.

        Raises:
            FileExistsError: another service that lives has the endpoint file, or it is something
                else that must not be replaced.
            OSError: the endpoint file can't be made, or nothing can be listened on.
            UnsafeLogStoreError: the system has no Unix sockets.
        """
        need(socket, "AF_UNIX", "the LogStore service, which listens on a Unix socket,")
        file = default_endpoint_file() if endpoint_file is None else Path(endpoint_file)
        self.endpoint_file: Path = file.absolute()
        _clear_away(self.endpoint_file)
        self._stores = Stores(conf or {})
        self._who = f"lakelog {_own_version()}, process {os.getpid()}"
        self._lock = threading.Lock()
        self._open: dict[socket.socket, bool] = {}
        """Whether each client is being served."""
        self._strangers: dict[socket.socket, None] = {}
        """Those that have not shown the token, the oldest first."""
        self._threads: set[threading.Thread] = set()
        self._stopping = False
        self._socket = socket_in(make_socket_folder())
        self._listeners = [_unix_listener(self._socket)]
        port = 0
        try:
            if tcp:
                self._listeners.append(socket.create_server(("127.0.0.1", 0), backlog=128))
                port = int(self._listeners[-1].getsockname()[1])
            self._endpoint = Endpoint(self._socket, port, secrets.token_hex(32))
            self._endpoint.write(self.endpoint_file)
        except BaseException:
            self._end_listening()
            raise
        for each in self._listeners:
            threading.Thread(
                target=self._accept, args=(each,), name="lakelog-service", daemon=True
            ).start()

    def stop(self, grace: float = 10.0) -> None:
        """Hear no new requests, let those finish that have begun, and remove the endpoint file.

        Args:
            grace: seconds that a request may still take; then its connection is cut, and its
                client finds the outcome unknown. Safe to be called again.
        """
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
        with contextlib.suppress(FileNotFoundError, ValueError):
            if Endpoint.read(self.endpoint_file) == self._endpoint:
                self.endpoint_file.unlink()
        self._end_listening()
        deadline = time.monotonic() + grace
        self._cut(idle_only=True)
        for thread in list(self._threads):
            thread.join(max(deadline - time.monotonic(), 0))
        self._cut(idle_only=False)
        if not any(thread.is_alive() for thread in self._threads):
            self._stores.close()

    def drop_connections(self) -> None:
        """Cut every connection, in the midst of a request or not; the service goes on.

        Clients connect again by themselves: this is what they see when a network resets them.
        """
        self._cut(idle_only=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _end_listening(self) -> None:
        for each in self._listeners:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            each.close()
        remove_socket_folder(self._socket)

    def _cut(self, *, idle_only: bool) -> None:
        with self._lock:
            idle = [each for each, busy in self._open.items() if not (idle_only and busy)]
            for each in (*self._strangers, *idle):
                _hang_up(each)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                if self._stopping or listener.fileno() < 0:
                    return
                time.sleep(0.05)  # too many open files: those who wait are served later
                continue
            thread = threading.Thread(
                target=self._serve, args=(connection,), name="lakelog-client", daemon=True
            )
            with self._lock:
                if self._stopping:
                    connection.close()
                    continue
                if len(self._strangers) >= _MOST_STRANGERS:
                    # A client identifies itself at once, so a connection that waits is not one.
                    oldest = next(iter(self._strangers))
                    del self._strangers[oldest]
                    _hang_up(oldest)
                self._strangers[connection] = None
                self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError:  # no more threads: those who wait are served later
                self._forget(connection, thread)
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        # The client is gone, or never spoke this protocol: either way there is no one to
        # answer.
        gone = (EOFError, OSError, ProtocolError, ClientGoneError, _StoppingError)
        try:
            with (
                contextlib.suppress(*gone),
                connection,
                _Hurried(connection, _GREETING_SECONDS) as hurry,
                io.BufferedReader(hurry) as source,
                connection.makefile("wb") as out,
            ):
                talk = Conversation(
                    source,
                    out,
                    token=self._endpoint.token,
                    who=self._who,
                    stores=self._stores,
                    at_work=lambda: self._at_work(connection),
                )
                if talk.introduce() and self._is_let_in(connection):
                    hurry.no_more()
                    talk.serve()
        finally:
            self._forget(connection, threading.current_thread())

    def _is_let_in(self, connection: socket.socket) -> bool:
        """Count a stranger among the clients, unless there are too many, or it was sent away."""
        with self._lock:
            known = self._strangers.pop(connection, self) is None
            if not known or len(self._open) >= _MOST_CONNECTIONS:
                return False
            self._open[connection] = False
            return True

    def _forget(self, connection: socket.socket, thread: threading.Thread) -> None:
        with self._lock:
            self._strangers.pop(connection, None)
            self._open.pop(connection, None)
            self._threads.discard(thread)

    @contextlib.contextmanager
    def _at_work(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            if self._stopping:
                raise _StoppingError
            self._open[connection] = True
        try:
            yield
        finally:
            with self._lock:
                if connection in self._open:
                    self._open[connection] = False
                over = self._stopping
        if over:
            raise _StoppingError


class _Hurried(io.RawIOBase):
    """What a connection says, within a time for all of it."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._end: float | None = time.monotonic() + seconds
        connection.settimeout(seconds)

    def no_more(self) -> None:
        """From now on it may take its time."""
        self._end = None
        self._connection.settimeout(None)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._end is not None:
            left = self._end - time.monotonic()
            if left <= 0:
                raise TimeoutError("it has not said in time who it is")
            self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _StoppingError(Exception):
    """The service ends, so no further request is heard."""


def _own_version() -> str:
    try:
        return version("lakelog")
    except PackageNotFoundError:
        return "of unknown version"


def _unix_listener(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def _clear_away(file: Path) -> None:
    """Remove what a service left that was killed; refuse where it lives, or has never been."""
    if not os.path.lexists(file):
        return
    try:
        if not file.is_file():
            raise ValueError(f"{file} is not a file")
        old = Endpoint.read(file)
    except FileNotFoundError:
        return
    except ValueError as error:
        raise FileExistsError(
            f"{error}, so a LogStore service does not replace it: name another endpoint file, or "
            "delete this one"
        ) from None
    if _lives(old):
        raise FileExistsError(
            f"a LogStore service is running already, by {file}: use that one, or name another "
            "endpoint file"
        )
    remove_socket_folder(old.unix)


def _lives(endpoint: Endpoint) -> bool:
    """Whether the service that wrote the file answers; its port may be somebody else's by now."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_GREETING_SECONDS)
            probe.connect(endpoint.unix)
            with probe.makefile("rb") as source, probe.makefile("wb") as out:
                hello = packed(MAGIC, PROTOCOL_VERSION, endpoint.token, "another service", {})
                write_frame(out, HELLO, hello)
                out.flush()
                return read_frame(source)[0] == OK
    except (OSError, EOFError, ProtocolError):
        return False
