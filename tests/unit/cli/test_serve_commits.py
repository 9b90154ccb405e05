"""`lakelog serve --listen`: whom it lets in, what it refuses, how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from lakelog.cli import commit_server
from lakelog.cli.commit_server import CommitServer
from lakelog.core import DeltaLog, read_arrow, write_arrow
from lakelog.core.transaction.commit_service import CommitService
from support.commit_services import SERVICE, serving_commits
from support.fault_proxy import FaultProxy
from support.tables import new_table
from support.terminal import lakelog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "a-token-of-this-test"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommitServer]:
    """A server for the tables of a folder."""
    service = CommitService([str(tmp_path)], {})
    with CommitServer(("127.0.0.1", 0), service, TOKEN, None) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()


def _ask(
    server: CommitServer, method: str, path: str, body: bytes | None, **headers: str
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", "/commit", b"x", {}, 401),
        ("POST", "/commit", b"x", {"Authorization": "Bearer wrong"}, 401),
        ("POST", "/commit", b"x", {"Authorization": f"Basic {TOKEN}"}, 401),
        ("POST", "/commit", b"x", {"Authorization": f"Bearer {TOKEN}"}, 400),
        ("POST", "/other", b"x", {"Authorization": f"Bearer {TOKEN}"}, 404),
        (
            "POST",
            "/commit",
            None,
            {"Authorization": f"Bearer {TOKEN}", "Content-Length": "9" * 400},
            413,
        ),
        (
            "POST",
            "/commit",
            None,
            {"Authorization": f"Bearer {TOKEN}", "Content-Length": "-1"},
            411,
        ),
        (
            "POST",
            "/commit",
            b"",
            {"Authorization": f"Bearer {TOKEN}", "Transfer-Encoding": "chunked"},
            411,
        ),
        ("GET", "/commit", None, {"Authorization": f"Bearer {TOKEN}"}, 405),
    ],
)
def test_what_is_no_request_is_refused_without_the_token(
    server: CommitServer,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    status: int,
) -> None:
    found, text = _ask(server, method, path, body, **headers)
    assert found == status
    assert json.loads(text)["refused"]
    assert TOKEN not in text


def test_clients_are_committed_for_until_it_is_terminated(tmp_path: Path) -> None:
    table = new_table(str(tmp_path / "t")).table
    token = tmp_path / "token"
    with serving_commits(tmp_path, token) as (process, url):
        assert stat.S_IMODE(os.stat(token).st_mode) == 0o600
        conf = {SERVICE: url, f"{SERVICE}.token.file": str(token)}
        write_arrow(table, {"id": [1]}, mode="append", conf=conf)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    info = DeltaLog.for_table(table).snapshot.commit_info
    assert info is not None
    assert (info.tags or {})["lakelog.groupTxnIds"] != info.txn_id
    write_arrow(table, {"id": [2]}, mode="append", conf=conf)  # by itself
    assert DeltaLog.for_table(table).snapshot.version == 2


def test_tls_by_a_certificate_of_ones_own(tmp_path: Path) -> None:
    table = new_table(str(tmp_path / "t")).table
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no openssl here")
    token = tmp_path / "token"
    tls = ("--certificate", str(certificate), "--key", str(key))
    with serving_commits(tmp_path, token, *tls) as (_, url):
        assert url.startswith("https://127.0.0.1:")
        conf = {SERVICE: url, f"{SERVICE}.token.file": str(token)}
        trusting = {**conf, f"{SERVICE}.ca.file": str(certificate)}
        for number, each in enumerate((trusting, conf), 1):
            write_arrow(table, {"id": [number]}, mode="append", conf=each)
    tags = [
        bool((entry.commit_info.get("tags") or {}).get("lakelog.groupTxnIds"))
        for entry in DeltaLog.for_table(table).history()
    ]
    assert tags == [False, True, False]  # whom it does not believe it does not ask


def test_who_sends_byte_by_byte_has_no_more_time(
    server: CommitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_server, "_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.settimeout(0.05)
        is_open = True
        while is_open:
            with contextlib.suppress(TimeoutError):
                try:
                    connection.sendall(b"x")
                    is_open = connection.recv(1) != b""
                except ConnectionError:
                    is_open = False


_FAULTS = ("drop_reply", "cut_reply", "tear_reply", "tell:500", "page:502", "twice", "die")
_NOT_ASKED = ("reset", "drop_request", "refuse:503", "html:502")


@pytest.mark.parametrize("fault", _FAULTS + _NOT_ASKED)
def test_whatever_a_network_loses_each_append_is_there_once(
    server: CommitServer, tmp_path: Path, fault: str
) -> None:
    table = new_table(str(tmp_path / "t")).table
    with FaultProxy(f"http://127.0.0.1:{server.server_port}") as proxy:
        conf = {SERVICE: proxy.url, f"{SERVICE}.token": TOKEN}
        for number in range(1, 5):
            if number % 2 == 0:  # once, and each time that it asks again
                proxy.arm(fault, b"POST /commit", times=number - 1)
            write_arrow(table, {"id": [number]}, mode="append", conf=conf)
            assert DeltaLog.for_table(table).snapshot.version == number
        assert proxy.fired
    assert sorted(read_arrow(table)["id"].to_pylist()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--listen", "0.0.0.0:0"], "can be reached by others"),
        (["--listen", "::1"], "--listen is HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "--listen is HOST:PORT"),
        (["--listen", "127.0.0.1:0", "--tcp"], "not for --listen"),
        (["--plain"], "are for --listen"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    tmp_path: Path, options: list[str], said: str
) -> None:
    more = ["--table", str(tmp_path), "--token-file", str(tmp_path / "token")]
    ran = lakelog("serve", *options, *(more if "--listen" in options else []))
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "token").exists()


def test_it_needs_a_table_and_a_token_that_is_one(tmp_path: Path) -> None:
    ran = lakelog("serve", "--listen", "127.0.0.1:0")
    assert ran.code == 2
    assert "--table and --token-file" in ran.err
    token = tmp_path / "token"
    token.write_text("short")
    ran = lakelog(
        *("serve", "--listen", "127.0.0.1:0", "--table", str(tmp_path), "--token-file", str(token))
    )
    assert ran.code == 2
    assert "holds no token" in ran.err
    assert "short" not in ran.err
