"""Requests of a race are all at the server before the first of them is complete."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.object_store.race import Outcome, send_together
from lakelog.logstores.object_store.store import PreparedRequest
from support.loopback_tls import tls_of_loopback

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

WRITERS = 6


class _Server:
    """Reads whole requests, and answers the n-th that is complete by `answer(n)`."""

    def __init__(self, answer: Callable[[int], bytes], tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        self._lock = threading.Lock()
        self._begun = 0
        self.all_begun = threading.Event()
        self.complete = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            data = connection.recv(65536)
            with self._lock:
                self._begun += 1
                if self._begun == WRITERS:
                    self.all_begun.set()
            while not data.endswith(b"!"):
                data += connection.recv(65536)
            with self._lock:
                number, self.complete = self.complete, self.complete + 1
            connection.sendall(self._answer(number))
        connection.close()


@contextlib.contextmanager
def _server(answer: Callable[[int], bytes], tls: ssl.SSLContext | None = None) -> Iterator[_Server]:
    server = _Server(answer, tls)
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()


def _reply(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def _one_winner(number: int) -> bytes:
    return _reply("200 OK" if number == 0 else "412 Precondition Failed")


def _requests(port: int, *, tls: bool = False) -> list[PreparedRequest]:
    head = b"PUT /b/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    return [
        PreparedRequest("localhost", port, tls, head + f"writer-{n}".encode() + b"!")
        for n in range(WRITERS)
    ]


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Callable[[_Server], list[int]]:
    """Let the pause before the last bytes last until all heads are at the server, however busy
    this machine is, and note how many requests are complete by then."""

    def patch(server: _Server) -> list[int]:
        complete: list[int] = []

        def wait(_: float) -> None:
            assert server.all_begun.wait(30)
            complete.append(server.complete)

        # A `time` of its own: others in this process sleep too, as a thread of py4j does.
        monkeypatch.setattr("lakelog.logstores.object_store.race.time", SimpleNamespace(sleep=wait))
        return complete

    return patch


def test_no_request_is_complete_before_all_have_arrived(
    pause: Callable[[_Server], list[int]],
) -> None:
    with _server(_one_winner) as server:
        complete = pause(server)
        outcomes = send_together(_requests(server.port), 20)
    assert complete == [0]
    assert sorted(outcomes, key=lambda each: each.name) == [Outcome.LOST] * 5 + [Outcome.WON]


def test_the_same_holds_behind_tls(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pause: Callable[[_Server], list[int]],
) -> None:
    context, certificate = tls_of_loopback(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with _server(_one_winner, context) as server:
        complete = pause(server)
        outcomes = send_together(_requests(server.port, tls=True), 20)
    assert complete == [0]
    assert outcomes.count(Outcome.WON) == 1
    assert outcomes.count(Outcome.LOST) == WRITERS - 1


def test_a_certificate_that_no_one_vouches_for_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, _ = tls_of_loopback(tmp_path)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    with _server(_one_winner, context) as server, pytest.raises(OSError):
        send_together(_requests(server.port, tls=True), 20)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (_reply("201 Created"), Outcome.WON),
        (_reply("412 Precondition Failed"), Outcome.LOST),
        (_reply("409 Conflict"), Outcome.LOST),
        (_reply("503 Slow Down"), Outcome.UNANSWERED),
        (_reply("403 Forbidden"), Outcome.UNANSWERED),
        (b"", Outcome.UNANSWERED),
        (b"no HTTP at all", Outcome.UNANSWERED),
    ],
)
def test_what_an_answer_means(answer: bytes, outcome: Outcome) -> None:
    with _server(lambda _: answer) as server:
        assert set(send_together(_requests(server.port), 20)) == {outcome}


def test_where_no_connection_can_be_made_it_is_an_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with pytest.raises(OSError):
        send_together(_requests(port), 5)
