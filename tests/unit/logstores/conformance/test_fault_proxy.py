"""The fault proxy passes on what it is not told to harm, and harms exactly what it is told to."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pytest

from lakelog.logstores.conformance import FaultProxy
from lakelog.logstores.conformance.http.http_messages import body_of, head_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = b"3\r\nhel\r\n2;x=1\r\nlo\r\n0\r\nT: 1\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
NOTHING = b"HTTP/1.1 204 No Content\r\n\r\n"
FIRST_100 = b"HTTP/1.1 100 Continue\r\n\r\n" + OK
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n"


class Service:
    """Answers each connection's one request with the next of its replies, and remembers it."""

    def __init__(self, *replies: bytes) -> None:
        self.replies = list(replies)
        self.heard: list[tuple[bytes, bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/base"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(Exception):
                head, rest = head_of(client)
                self.heard.append((head, body_of(client, head, rest)))
                client.sendall(self.replies.pop(0) if len(self.replies) > 1 else self.replies[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@contextlib.contextmanager
def between(*replies: bytes) -> Iterator[tuple[Service, FaultProxy]]:
    with Service(*replies) as service, FaultProxy(service.url) as proxy:
        yield service, proxy


def ask(proxy: FaultProxy, method: str = "GET", body: Any = None, **more: Any) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    with contextlib.closing(connection):
        connection.request(method, "/x", body, **more)
        reply = connection.getresponse()
        return reply.status, reply.read()


def soon(found: Callable[[], T]) -> T:
    """What is found as soon as it is something, on a machine that is slow too."""
    for _ in range(6000):
        if result := found():
            return result
        threading.Event().wait(0.01)
    return found()


@pytest.mark.parametrize("reply", [OK, CHUNKED, UNTIL_THE_END, FIRST_100])
def test_whole_replies_come_through_however_they_are_framed(reply: bytes) -> None:
    with between(reply) as (service, proxy):
        assert ask(proxy) == (200, b"hello")
        assert proxy.url.endswith("/base")
        assert proxy.requests == ["GET /x HTTP/1.1"]
        assert len(service.heard) == 1


def test_replies_without_a_body_are_not_waited_for() -> None:
    with between(HEAD, NOTHING) as (_, proxy):
        assert ask(proxy, "HEAD") == (200, b"")
        assert ask(proxy, "DELETE") == (204, b"")


def test_one_connection_carries_many_requests() -> None:
    with between(OK, CHUNKED, UNTIL_THE_END, OK) as (service, proxy):
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
        with contextlib.closing(connection):
            sockets = set()
            for _ in range(2):
                connection.request("PUT", "/x", b"body")
                assert connection.getresponse().read() == b"hello"
                sockets.add(connection.sock)
        assert len(sockets) == 1
        assert [body for _, body in service.heard] == [b"body"] * 2


def test_bodies_come_through_by_length_in_chunks_and_when_they_wait_to_be_asked() -> None:
    with between(OK) as (service, proxy):
        big = bytes(range(256)) * 5000
        ask(proxy, "PUT", big)
        ask(proxy, "PUT", iter([b"one", b"two"]), encode_chunked=True)
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client:
            client.sendall(b"PUT /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 100 ")
            client.sendall(b"wait")
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert [body for _, body in service.heard] == [
            big,
            b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
            b"wait",
        ]
        assert b"xpect" not in service.heard[2][0], "the service is not asked to say 100"


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("drop_reply", ConnectionError),
        ("cut_reply", http.client.IncompleteRead),
        ("cut_reply:3", http.client.BadStatusLine),
        ("tear_reply", http.client.IncompleteRead),
        ("tell:503", 503),
        ("tell:409:BlobAlreadyExists", 409),
        ("delay:0.01", 200),
        ("slow:0.05", 200),
    ],
)
def test_a_lost_reply_is_the_reply_to_work_that_was_done(fault: str, seen: Any) -> None:
    with between(OK) as (service, proxy):
        proxy.arm(fault, b"PUT /x")
        if isinstance(seen, int):
            assert ask(proxy, "PUT", b"mine")[0] == seen
        else:
            with pytest.raises(seen):
                ask(proxy, "PUT", b"mine")
        assert [body for _, body in service.heard] == [b"mine"]
        assert proxy.fired == [fault]
        assert ask(proxy, "PUT", b"again") == (200, b"hello"), "the fault is spent"


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("reset", ConnectionError),
        ("drop_request", ConnectionError),
        ("refuse:403", 403),
        ("refuse:409:ConditionalRequestConflict", 409),
        ("html:502", 502),
    ],
)
def test_a_lost_request_is_work_that_was_not_done(fault: str, seen: Any) -> None:
    with between(OK) as (service, proxy):
        proxy.arm(fault, b"PUT /x")
        if isinstance(seen, int):
            assert ask(proxy, "PUT", b"mine")[0] == seen
        else:
            with pytest.raises(seen):
                ask(proxy, "PUT", b"mine")
        assert service.heard == []
        assert proxy.fired == [fault]


def test_a_reply_that_hangs_ends_when_the_client_leaves() -> None:
    with between(OK) as (service, proxy):
        proxy.arm("hang_reply", b"GET ")
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=0.2)
        connection.request("GET", "/x")
        with pytest.raises(TimeoutError):
            connection.getresponse()
        assert soon(lambda: len(service.heard)) == 1
        connection.close()
        assert ask(proxy) == (200, b"hello")


def test_twice_gives_the_second_answer() -> None:
    with between(OK, OK.replace(b"200 OK", b"412 No")) as (service, proxy):
        proxy.arm("twice", b"PUT ")
        assert ask(proxy, "PUT", b"mine")[0] == 412
        assert [body for _, body in service.heard] == [b"mine", b"mine"]


def test_what_is_held_arrives_when_it_is_released() -> None:
    with between(OK) as (service, proxy):
        proxy.arm("hold", b"PUT ")
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=0.2)
        connection.request("PUT", "/x", b"late")
        with pytest.raises(TimeoutError):
            connection.getresponse()
        assert service.heard == []
        assert soon(proxy.release) == [200]
        connection.close()
        assert [body for _, body in service.heard] == [b"late"]
        assert proxy.release() == []


def test_an_outage_resets_open_connections_and_new_ones_and_ends() -> None:
    with between(OK) as (service, proxy):
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
        connection.request("GET", "/x")
        connection.getresponse().read()
        with proxy.outage():
            with pytest.raises(ConnectionError):
                connection.sock.recv(1)
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                ask(proxy)
        connection.close()
        assert ask(proxy) == (200, b"hello")
        assert len(service.heard) == 2


def test_a_service_that_dies_has_done_the_work_and_is_down() -> None:
    with between(OK) as (service, proxy):
        proxy.arm("die", b"PUT ")
        for _ in range(2):
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                ask(proxy, "PUT", b"mine")
        assert len(service.heard) == 1
        proxy.come_back()
        assert ask(proxy, "PUT", b"mine") == (200, b"hello")


def test_a_fault_meets_what_its_pattern_finds_as_often_as_it_is_armed() -> None:
    with between(OK) as (_, proxy):
        proxy.arm("refuse:503", re.compile(rb"^PUT /x "), times=2)
        proxy.arm("refuse:404", b"X-Mark: 7")
        assert ask(proxy)[0] == 200
        assert [ask(proxy, "PUT", b"")[0] for _ in range(3)] == [503, 503, 200]
        assert ask(proxy, headers={"X-Mark": "7"})[0] == 404
        proxy.arm("reset", b"GET ")
        proxy.disarm()
        assert ask(proxy)[0] == 200
        assert proxy.fired == ["refuse:503", "refuse:503", "refuse:404"]


def test_codes_are_where_the_services_have_them() -> None:
    with between(OK) as (_, proxy):
        for method, target in (("PUT", "/bucket/key"), ("POST", "/upload/storage/v1/b/x/o")):
            proxy.arm("refuse:409:Conflict", target.encode())
            connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
            with contextlib.closing(connection):
                connection.request(method, target, b"")
                reply = connection.getresponse()
                body = reply.read()
            assert reply.getheader("x-ms-error-code") == "Conflict"
            wanted = b"<Code>Conflict</Code>" if method == "PUT" else b'"reason": "Conflict"'
            assert wanted in body


@pytest.mark.parametrize(
    "fault", ["drop", "tell", "refuse:99", "delay", "html", "slow:", "cut_reply:x"]
)
def test_a_fault_that_is_none_is_refused(fault: str) -> None:
    with between(OK) as (_, proxy), pytest.raises(ValueError, match="no such fault"):
        proxy.arm(fault, b"")


def test_a_service_that_speaks_tls_is_refused() -> None:
    with pytest.raises(ValueError, match="plain HTTP"):
        FaultProxy("https://127.0.0.1:1")


def test_what_is_no_http_ends_the_connection() -> None:
    with between(OK) as (service, proxy):
        for junk in (
            b"x" * (1 << 21),
            b"PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ):
            with (
                socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client,
                contextlib.suppress(ConnectionError),
            ):
                client.sendall(junk)
                assert client.recv(10) == b""
        assert service.heard == []
