"""`lakelog serve --listen`: whom it lets in, what it refuses, how it ends."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lakelog.cli import commit_server
from lakelog.cli.app import app
from lakelog.cli.commit_server import CommitServer
from lakelog.core import DeltaLog, appender, read_arrow, write_arrow
from lakelog.core.log.commit_identity import GROUP_TAG
from lakelog.core.transaction import commit_service, service_commit
from lakelog.core.transaction.commit_service import CommitService, ServedLog
from lakelog.core.transaction.service_commit import MOST_BYTES
from lakelog.core.wire import Wire
from support.commit_services import SERVICE, serving_commits
from support.fault_proxy import FaultProxy
from support.loopback_tls import tls_of_loopback
from support.tables import new_table
from support.terminal import lakelog, runner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.core.transaction.commit_service import Answer

TOKEN = "a-token-of-this-test"


@contextlib.contextmanager
def _serving(root: Path, tls: ssl.SSLContext | None = None) -> Iterator[CommitServer]:
    service = CommitService([str(root)], {})
    context = None if tls is None else lambda: tls
    with CommitServer(("127.0.0.1", 0), service, lambda: TOKEN, context) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield made
        made.shutdown()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommitServer]:
    """A server for the tables of a folder."""
    with _serving(tmp_path) as made:
        yield made


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
    monkeypatch.setattr(commit_server._Handler, "timeout", 0.5)
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


def _is_hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_neither_an_idle_client_nor_a_slow_one_keeps_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_server, "_CONNECTIONS", 2)
    with _serving(tmp_path) as server, contextlib.ExitStack() as opened:
        place = "127.0.0.1", server.server_port

        def connected() -> socket.socket:
            return opened.enter_context(socket.create_connection(place, timeout=60))

        idle, slow = connected(), connected()
        slow.sendall(b"POST /commit HTTP/1.1\r\nContent-")
        assert _ask(server, "GET", "/", None)[0] == 405
        assert _is_hung_up(idle)  # it had waited the longest
        slow.sendall(b"Length")
        for _ in range(2):
            connected()
        assert _is_hung_up(slow)
        assert _ask(server, "GET", "/", None)[0] == 405


def test_whoever_is_answered_is_not_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_server, "_CONNECTIONS", 1)
    begun, go_on, answer = threading.Event(), threading.Event(), CommitService.answer

    def answering(service: CommitService, body: bytes) -> Answer:
        begun.set()
        assert go_on.wait(60)
        return answer(service, body)

    monkeypatch.setattr(CommitService, "answer", answering)
    authorization = {"Authorization": f"Bearer {TOKEN}"}
    with _serving(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(_ask, server, "POST", "/commit", b"x", **authorization)
        assert begun.wait(60)
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as late:
            assert _is_hung_up(late)
        go_on.set()
        assert first.result(60)[0] == 400


@pytest.mark.parametrize("is_tls", [False, True])
def test_whoever_sends_much_by_a_wrong_token_hears_so(tmp_path: Path, is_tls: bool) -> None:
    context, certificate = tls_of_loopback(tmp_path)
    with _serving(tmp_path, context if is_tls else None) as server:
        trust = ssl.create_default_context(cafile=certificate)
        wire = Wire(server.urls[0], 60.0, key="k", trust=trust, is_direct_here=True)
        for token in ("wrong", TOKEN):
            headers = {"Authorization": f"Bearer {token}"}
            reply = wire.send("POST", "/commit", b"x" * MOST_BYTES, headers)
            assert reply.status == (400 if token == TOKEN else 401)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_the_address_that_is_printed_leads_there(tmp_path: Path, listen: str) -> None:
    table, token = new_table(str(tmp_path / "t")).table, tmp_path / "token"
    with serving_commits(tmp_path, token, "--plain", listen=listen) as (process, url):
        assert "//0.0.0.0" not in url
        assert "[::]" not in url
        assert process.stdout is not None
        assert "choose what leads here" in process.stdout.readline()
        conf = {SERVICE: url, f"{SERVICE}.token.file": str(token)}
        write_arrow(table, {"id": [1]}, mode="append", conf=conf)
    assert _served(table) == [1]


def test_a_name_is_printed_as_it_was_given(tmp_path: Path) -> None:
    service = CommitService([str(tmp_path)], {})
    with CommitServer(("localhost", 0), service, lambda: TOKEN, None) as server:
        assert server.urls == [f"http://localhost:{server.server_port}"]


def _served(table: str) -> list[int]:
    """The versions that a service has made."""
    return [
        entry.version
        for entry in reversed(DeltaLog.for_table(table).history())
        if GROUP_TAG in (entry.commit_info.get("tags") or {})
    ]


def test_commands_and_appenders_are_clients(tmp_path: Path) -> None:
    table, token = new_table(str(tmp_path / "t")).table, tmp_path / "token"
    rows = tmp_path / "rows.json"
    rows.write_text('{"id": 1}\n')
    with serving_commits(tmp_path, token) as (_, url):
        conf = {SERVICE: url, f"{SERVICE}.token.file": str(token)}
        for words in (["write", table, str(rows), "--mode", "append"], ["optimize", table]):
            assert lakelog(*words, conf=conf).code == 0
        options = ["--app-id", "a", *(f"--conf={key}={value}" for key, value in conf.items())]
        for _ in range(2):  # the second time it is there
            ran = runner().invoke(app, ["append", table, *options], input='{"id": 2}\n')
            assert ran.exit_code == 0, ran.output
        with appender(table, app_id="b", every="50ms", conf=conf) as given:
            given.append([{"id": 3}], seq=1)
    assert sorted(read_arrow(table)["id"].to_pylist()) == [1, 2, 3]
    assert _served(table) == [1, 2, 3]


def test_two_lengths_of_a_request_are_none(server: CommitServer) -> None:
    # A proxy on the way may have believed the other one.
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        head = f"POST /commit HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        connection.sendall(f"{head}Content-Length: 1\r\nContent-Length: 9\r\n\r\nx".encode())
        assert connection.recv(12) == b"HTTP/1.1 411"


def test_a_certificate_that_ended_keeps_no_append_from_its_table(tmp_path: Path) -> None:
    table = new_table(str(tmp_path / "t")).table
    context, certificate = tls_of_loopback(tmp_path, days=-1)
    with _serving(tmp_path, context) as server:
        conf = {SERVICE: server.urls[0], f"{SERVICE}.token": TOKEN}
        conf[f"{SERVICE}.ca.file"] = str(certificate)
        write_arrow(table, {"id": [1]}, mode="append", conf=conf)
    assert DeltaLog.for_table(table).snapshot.version == 1
    assert _served(table) == []


def test_files_of_a_client_that_change_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_commit, "_AWAY_SECONDS", 0.0)
    table = new_table(str(tmp_path / "t")).table
    for name in ("other", "own"):
        (tmp_path / name).mkdir()
    _, other = tls_of_loopback(tmp_path / "other")
    context, own = tls_of_loopback(tmp_path / "own")
    token, trusted = tmp_path / "token", tmp_path / "ca.pem"
    with _serving(tmp_path, context) as server:
        conf = {SERVICE: server.urls[0], f"{SERVICE}.token.file": str(token)}
        conf[f"{SERVICE}.ca.file"] = str(trusted)
        for number, (word, file) in enumerate(((TOKEN, other), ("wrong", own), (TOKEN, own)), 1):
            token.write_text(word)
            trusted.write_bytes(file.read_bytes())
            os.utime(trusted, ns=(number, number))
            write_arrow(table, {"id": [number]}, mode="append", conf=conf)
    assert DeltaLog.for_table(table).snapshot.version == 3
    assert _served(table) == [3]


def test_files_of_a_service_that_change_are_read_again(tmp_path: Path) -> None:
    table, served = new_table(str(tmp_path / "t")).table, tmp_path / "served"
    for name in ("old", "new", "served"):
        (tmp_path / name).mkdir()
        tls_of_loopback(tmp_path / name)
    token, own = served / "token", tmp_path / "token"
    files = {each: served / f"{each}.pem" for each in ("certificate", "key")}
    numbers = itertools.count(1)

    def write(trusted: str) -> None:
        conf = {SERVICE: url, f"{SERVICE}.token.file": str(own)}
        conf[f"{SERVICE}.ca.file"] = str(tmp_path / trusted / "certificate.pem")
        service_commit._service.cache_clear()  # another process, without a connection
        write_arrow(table, {"id": [next(numbers)]}, mode="append", conf=conf)

    def replace(path: Path, text: bytes) -> None:
        draft = served / "draft"
        draft.write_bytes(text)
        draft.replace(path)

    for name, file in files.items():
        replace(file, (tmp_path / "old" / f"{name}.pem").read_bytes())
    options = (f"--{name}={file}" for name, file in files.items())
    with serving_commits(tmp_path, token, *options) as (process, url):
        own.write_bytes(token.read_bytes())
        write("old")  # served as version 1
        for name, file in files.items():
            write("old")  # until both are new the service has those before: 2 and 3
            replace(file, (tmp_path / "new" / f"{name}.pem").read_bytes())
        write("old")
        write("new")  # 5
        for text in (b"", b"short", b"\xff" * 20):  # no token: the one before it stays
            token.write_bytes(text)
        write("new")  # 6
        token.unlink()
        write("new")  # 7
        token.write_text(f"{TOKEN}\n")
        write("new")
        own.write_text(TOKEN)
        write("new")  # 9
        assert process.poll() is None
    assert sorted(read_arrow(table)["id"].to_pylist()) == list(range(1, 10))
    assert _served(table) == [1, 2, 3, 5, 6, 7, 9]


def test_whoever_finds_the_service_full_commits_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(commit_service, "_MOST_WAITING", 3)
    table, most = new_table(str(tmp_path / "t")).table, commit_service._MOST_WAITING
    begun, go_on, find = threading.Semaphore(0), threading.Event(), ServedLog.find

    def finding(log: ServedLog, txn_id: str, versions: range) -> int | None:
        begun.release()
        assert go_on.wait(60)
        return find(log, txn_id, versions)

    monkeypatch.setattr(ServedLog, "find", finding)
    with _serving(tmp_path) as server, ThreadPoolExecutor(most) as pool:
        conf = {SERVICE: server.urls[0], f"{SERVICE}.token": TOKEN}

        def write(number: int) -> int:
            return write_arrow(table, {"id": [number]}, mode="append", conf=conf)

        waiting = [pool.submit(write, number) for number in range(most)]
        for _ in waiting:
            assert begun.acquire(timeout=60)
        assert [write(number) for number in range(most, most + 4)] == [1, 2, 3, 4]
        go_on.set()
        served = {each.result(60) for each in waiting}
    assert set(_served(table)) == served
    assert min(served) > 4
    assert sorted(read_arrow(table)["id"].to_pylist()) == list(range(most + 4))
    assert caplog.text.count("too many requests wait") == 1


def test_clients_find_a_service_that_is_started_again_elsewhere(tmp_path: Path) -> None:
    table, numbers = new_table(str(tmp_path / "t")).table, itertools.count(1)
    served, alone = list[int](), list[int]()
    for start in range(2):
        token = tmp_path / f"token-{start}"
        with serving_commits(tmp_path, token) as (process, url):
            conf = {SERVICE: url, f"{SERVICE}.token.file": str(token)}
            log = DeltaLog.for_table(table, conf)  # of a process that keeps it
            served.append(write_arrow(log, {"id": [next(numbers)]}, mode="append"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        alone += [write_arrow(log, {"id": [next(numbers)]}, mode="append") for _ in range(2)]
    assert _served(table) == served == [1, 4]
    assert sorted(read_arrow(table)["id"].to_pylist()) == list(range(1, 7))
    assert alone == [2, 3, 5, 6]


def test_a_child_of_a_client_asks_by_a_connection_of_its_own(tmp_path: Path) -> None:
    table, token = new_table(str(tmp_path / "t")).table, tmp_path / "token"
    with serving_commits(tmp_path, token) as (_, url):
        conf = {SERVICE: url, f"{SERVICE}.token.file": str(token)}
        log = DeltaLog.for_table(table, conf)
        write_arrow(log, {"id": [0]}, mode="append")  # its connection is kept
        children = []
        for child in (1, 2):
            if pid := os.fork():
                children.append(pid)
                continue
            try:
                for number in range(5):
                    write_arrow(log, {"id": [10 * child + number]}, mode="append")
            except BaseException:
                os._exit(1)
            os._exit(0)
        for number in range(1, 6):
            write_arrow(log, {"id": [number]}, mode="append")
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    numbers = [*range(6), *range(10, 15), *range(20, 25)]
    assert sorted(read_arrow(table)["id"].to_pylist()) == numbers
    assert _served(table) == [*range(1, DeltaLog.for_table(table).snapshot.version + 1)]


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
