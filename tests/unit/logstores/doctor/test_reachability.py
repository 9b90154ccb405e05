"""A socket tells a closed port from a wrong protocol, and brings the server's clock."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.doctor.clock_skew import clock_finding, skew_of_date
from lakelog.logstores.doctor.finding import Status
from lakelog.logstores.doctor.reachability import probe_http, probe_rpc

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "spark.hadoop.fs.s3a.endpoint"


@contextlib.contextmanager
def _server(reply: bytes) -> Iterator[int]:
    """Answer each connection's first bytes with the reply, and hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.settimeout(10)
                        connection.recv(65536)
                        connection.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _http(status: str, body: bytes = b"", date: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n"
    head += f"Date: {date}\r\n" if date else ""
    return (head + "Connection: close\r\n\r\n").encode() + body


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_an_endpoint_that_answers_at_all_is_reached_whatever_it_answers() -> None:
    with _server(_http("403 Forbidden")) as port:
        connection = probe_http(f"http://127.0.0.1:{port}/bucket", 5, asked_by=KEY)
    assert connection.finding.status is Status.FINE
    assert connection.skew is None


def test_a_port_where_nothing_listens_is_named_with_the_key() -> None:
    port = _closed_port()
    finding = probe_http(f"http://127.0.0.1:{port}", 5, asked_by=KEY).finding
    assert finding.status is Status.FAILED
    assert f"127.0.0.1:{port}" in finding.summary
    assert "refused" in finding.summary
    assert KEY in finding.remedy
    assert probe_rpc("127.0.0.1", port, 5, asked_by=KEY).finding.status is Status.FAILED


def test_a_name_that_does_not_resolve_is_reported_with_the_key() -> None:
    finding = probe_http("http://bucket.storage.invalid", 5, asked_by=KEY).finding
    assert finding.status is Status.FAILED
    assert "bucket.storage.invalid" in finding.summary
    assert KEY in finding.remedy


def test_plain_http_where_https_was_asked_for() -> None:
    with _server(_http("400 Bad Request")) as port:
        finding = probe_http(f"https://127.0.0.1:{port}", 5, asked_by=KEY).finding
    assert finding.status is Status.FAILED
    assert "does not speak TLS" in finding.summary
    assert "http://" in finding.remedy
    assert "fs.s3a.connection.ssl.enabled=false" in finding.remedy


def test_the_key_of_s3_is_not_told_to_who_uses_another_storage() -> None:
    with _server(_http("400 Bad Request")) as port:
        url = f"https://127.0.0.1:{port}"
        finding = probe_http(url, 5, asked_by="spark.lakelog.azure.endpoint").finding
    assert "http:// in spark.lakelog.azure.endpoint, or name the port" in finding.remedy


@pytest.mark.parametrize(
    "reply",
    [
        b"\x15\x03\x01\x00\x02\x02\x46",
        _http("400 Bad Request", b"Client sent an HTTP request to an HTTPS server.\n"),
    ],
    ids=["an alert", "in words"],
)
def test_https_where_plain_http_was_asked_for(reply: bytes) -> None:
    with _server(reply) as port:
        finding = probe_http(f"http://127.0.0.1:{port}", 5, asked_by=KEY).finding
    assert finding.status is Status.FAILED
    assert "speaks TLS" in finding.summary
    assert "https://" in finding.remedy


def test_a_service_of_another_kind_is_reported() -> None:
    with _server(b"SSH-2.0-OpenSSH_9.6\r\n") as port:
        finding = probe_http(f"http://127.0.0.1:{port}", 5, asked_by=KEY).finding
    assert finding.status is Status.FAILED
    assert "not in HTTP" in finding.summary


def test_what_goes_through_a_proxy_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "")
    finding = probe_http("https://storage.invalid", 5, asked_by=KEY).finding
    assert finding.status is Status.SKIPPED


def test_the_reply_brings_the_clock() -> None:
    date = formatdate(time.time() + 7200, usegmt=True)
    with _server(_http("200 OK", date=date)) as port:
        skew = probe_http(f"http://127.0.0.1:{port}", 5, asked_by=KEY).skew
    assert skew is not None
    assert -7200 <= skew <= -7190


@pytest.mark.parametrize(
    ("sent", "received", "skew"),
    [
        (1000.2, 1000.4, 0.0),
        (1000.9, 1001.2, 0.0),
        (1005.0, 1005.5, 4.0),
        (990.0, 990.5, -9.5),
        (995.0, 1005.0, 0.0),
    ],
    ids=["same second", "on the edge", "ahead", "behind", "a slow reply proves nothing"],
)
def test_only_what_the_coarse_date_proves_is_skew(
    sent: float, received: float, skew: float
) -> None:
    date = formatdate(1000, usegmt=True)
    assert skew_of_date(date, sent, received) == pytest.approx(skew)


def test_a_date_that_is_none_tells_nothing() -> None:
    assert skew_of_date("yesterday", 0, 1) is None


@pytest.mark.parametrize(
    ("skew", "status"),
    [
        (0.0, Status.FINE),
        (2.0, Status.FINE),
        (-10.0, Status.NOTE),
        (400.0, Status.FAILED),
        (None, Status.SKIPPED),
    ],
)
def test_a_skew_matters_by_its_size(skew: float | None, status: Status) -> None:
    finding = clock_finding(skew, "a reply")
    assert finding.status is status
    assert bool(finding.remedy) == (status in (Status.NOTE, Status.FAILED))


def test_a_web_port_where_an_rpc_port_was_asked_for_is_named() -> None:
    with _server(_http("302 Found", b"<html>NameNode</html>")) as port:
        finding = probe_rpc("127.0.0.1", port, 5, asked_by="the URI").finding
    assert finding.status is Status.FAILED
    assert f"127.0.0.1:{port} speaks HTTP: it is a web port" in finding.summary
    assert "dfs.namenode.http-address" in finding.remedy


@pytest.mark.parametrize(
    "reply",
    [
        _http("404 Not Found", b"It looks like you are making a request to a Hadoop IPC port."),
        b"",
        b"\x00\x00\x00\x10no http",
    ],
)
def test_an_rpc_port_is_known_by_what_it_says_to_http(reply: bytes) -> None:
    with _server(reply) as port:
        assert probe_rpc("127.0.0.1", port, 5, asked_by="the URI").finding.status is Status.FINE


@pytest.mark.parametrize("speech", ["http", "rpc"])
def test_an_endpoint_that_hangs_is_distinguished_from_one_of_another_kind(speech: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # nobody ever accepts
        port = int(listener.getsockname()[1])
        if speech == "http":
            found = probe_http(f"http://127.0.0.1:{port}", 0.2, asked_by=KEY)
        else:
            found = probe_rpc("127.0.0.1", port, 0.2, asked_by=KEY)
    assert found.finding.status is Status.FAILED
    assert "takes connections, and does not answer within 0.2 s" in found.finding.summary
    assert KEY in found.finding.remedy
