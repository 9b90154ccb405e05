"""Who is let in by the server of `lakelog ui`, and what it answers to the others."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core import create_table
from support.open_ui import open_ui
from support.terminal import lakelog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.open_ui import OpenUi


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenUi]:
    folder = tmp_path_factory.mktemp("lake")
    create_table(str(folder / "orders"), "a bigint")
    with open_ui(str(folder)) as opened:
        yield opened


def test_the_printed_address_lets_a_browser_in_once_and_leaves_no_token_in_it(ui: OpenUi) -> None:
    reply = ui.ask(ui.entry.replace("/?", "/conflicts?v=1&"))
    assert reply.status == 303
    assert reply.headers["Location"] == "/conflicts?v=1"
    _, *rules = reply.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(rules)
    assert ui.ask("/", Cookie=ui.cookie).status == 200


@pytest.mark.parametrize("path", ["/", "/conflicts", "/table/0123456789abcdef/", "/nothing"])
@pytest.mark.parametrize(
    "cookie", ["", "lakelog-ui-x=y", "{name}=", "{name}=wrong", "{name}=\u00fc", "[="]
)
def test_nothing_is_shown_without_the_token(ui: OpenUi, path: str, cookie: str) -> None:
    sent = cookie.format(name=ui.server.cookie).encode().decode("latin-1")
    reply = ui.ask(path, Cookie=sent)
    assert reply.status == 403
    assert "orders" not in reply.text
    assert "Open the address" in reply.text
    assert "Set-Cookie" not in reply.headers


@pytest.mark.parametrize("token", ["", "wrong", "%00", "%ff", "x" * 5000])
def test_a_wrong_token_is_refused_even_with_the_cookie(ui: OpenUi, token: str) -> None:
    assert ui.ask(f"/?token={token}", Cookie=ui.cookie).status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "127.0.0.2", "[::2]:1"],
)
def test_a_page_that_leads_its_own_name_here_gets_nothing(ui: OpenUi, host: str) -> None:
    for path in ("/", ui.entry, "/assets/ui.css"):
        reply = ui.ask(path, Cookie=ui.cookie, Host=host)
        assert (reply.status, "Set-Cookie" in reply.headers) == (421, False)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "localhost:9999", "[::1]:80", "LOCALHOST"]
)
def test_a_browser_behind_a_forwarded_port_may_ask(ui: OpenUi, host: str) -> None:
    assert ui.ask("/", Cookie=ui.cookie, Host=host).status == 200


def test_other_pages_of_the_browser_may_not_ask(ui: OpenUi) -> None:
    for site in ("cross-site", "same-site"):
        fetched = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "no-cors"}
        assert ui.ask("/", Cookie=ui.cookie, **fetched).status == 403
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert ui.ask("/", Cookie=ui.cookie, **link).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"])
def test_it_only_shows(ui: OpenUi, method: str) -> None:
    reply = ui.ask("/", method, Cookie=ui.cookie)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")


def test_each_answer_forbids_scripts_and_styles_but_its_own(ui: OpenUi) -> None:
    for path in ("/", "/nothing", "/assets/ui.js", "/assets/none"):
        headers = ui.ask(path, Cookie=ui.cookie).headers
        rules = headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(rules)
        assert not [each for each in rules if "unsafe" in each or "*" in each]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "path", ["/assets/../server.py", "/assets/%2e%2e/server.py", "/assets/", "/assets/server.py"]
)
def test_no_file_but_the_pages_own_is_given(ui: OpenUi, path: str) -> None:
    assert ui.ask(path, Cookie=ui.cookie).status == 404


def test_the_way_back_never_leads_to_another_host(ui: OpenUi) -> None:
    token = ui.entry.partition("?")[2]
    for path in ("//evil.example/", "///evil.example", "/\\evil.example"):
        target = ui.ask(f"{path}?{token}").headers["Location"]
        assert urlsplit(target).netloc == ""
        assert target.startswith("/")
        assert not target.startswith(("//", "/\\"))


def test_a_page_that_did_not_change_is_not_sent_again(ui: OpenUi) -> None:
    first = ui.ask("/assets/ui.js")
    again = ui.ask("/assets/ui.js", If_None_Match=first.headers["ETag"])
    assert (again.status, again.text) == (304, "")
    head = ui.ask("/assets/ui.js", "HEAD")
    assert (head.text, head.headers["Content-Length"]) == ("", first.headers["Content-Length"])


@pytest.mark.parametrize(
    "before", ['x={"a":1}', "x[]=1", "a b=c", "=;;", "x=\u00fc", 'x="', "{name}=wrong"]
)
def test_no_cookie_of_another_server_of_this_host_keeps_a_browser_out(
    ui: OpenUi, before: str
) -> None:
    other = before.replace("{name}", ui.server.cookie).encode().decode("latin-1")
    for sent in (f"{other}; {ui.cookie}", f"{ui.cookie}; {other}"):
        assert ui.ask("/", Cookie=sent).status == 200


def raw(ui: OpenUi, sent: bytes) -> bytes:
    """What comes back for these bytes, the end of which closes that half of the connection."""
    where = ("127.0.0.1", ui.server.server_port)
    with socket.create_connection(where, 30) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return b""


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET http://[::1 HTTP/1.1", 400),
        (b"GET //[ HTTP/1.1", 404),
        (b"GET /?token={token} x HTTP/1.1", 400),
        (b"GET /?token={token} HTTP/9.9", 505),
        (b"GET /?token={token}" + b"a" * 70_000 + b" HTTP/1.1", 414),
        (b"GET /?token={token} HTTP/1.1\r\nX: " + b"a" * 70_000, 431),
        (b"GET /?token={token} HTTP/1.1" + b"\r\nX: a" * 200, 431),
    ],
    ids=range(7),
)
def test_what_is_no_request_is_answered_and_not_repeated(
    ui: OpenUi, line: bytes, status: int
) -> None:
    token = ui.entry.partition("token=")[2].encode()
    headers = b"\r\nHost: localhost\r\nCookie: " + ui.cookie.encode() + b"\r\n\r\n"
    answer = raw(ui, line.replace(b"{token}", token) + headers)
    assert int(answer.split(None, 2)[1]) == status
    assert b"Content-Security-Policy: default-src 'none'" in answer
    assert token not in answer


@given(st.binary(max_size=200), st.sampled_from([b"", b"GET ", b"GET /", b"HEAD /table/"]))
def test_no_bytes_get_what_a_page_holds(ui: OpenUi, sent: bytes, before: bytes) -> None:
    for end in (b"", b" HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        answer = raw(ui, before + sent + end)
        assert b"orders" not in answer
        assert b" 500 " not in answer.partition(b"\r\n")[0]
        assert b"Traceback" not in answer


def test_of_too_many_connections_at_once_those_that_wait_longest_are_hung_up(ui: OpenUi) -> None:
    address = ("127.0.0.1", ui.server.server_port)
    places, held = ui.server._places, list[socket.socket]()
    while places:  # of what was asked before
        time.sleep(0.001)
    with contextlib.ExitStack() as stack:
        for number in range(80):
            held.append(stack.enter_context(socket.create_connection(address, 20)))
            # One at a time: the system makes those wait who come faster than they are let in.
            while len(places) < min(number + 1, 64):
                time.sleep(0.001)
            # Long before the server gives up a connection that sends nothing, which takes 30 s.
            assert number < 64 or held[number - 64].recv(1) == b""
        assert ui.get("/assets/ui.css")
        for each in held[-40:]:
            each.setblocking(False)
            with pytest.raises(BlockingIOError):
                each.recv(1)


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-c", "from lakelog.cli import main; main()", "ui", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    create_table(str(tmp_path / "orders"), "a bigint")
    with running(str(tmp_path), "--no-open") as (process, url):
        where = urlsplit(url)
        with socket.create_connection((where.hostname or "", where.port or 0), 30):
            process.send_signal(number)
            assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_port_that_is_taken_and_a_place_that_is_not_there_are_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = lakelog("ui", str(tmp_path), "--no-open", "--port", port)
    assert outcome.code == 2
    assert f"Port {port} of 127.0.0.1 can't be had" in outcome.err
    assert "Give another --port" in outcome.err
    outcome = lakelog("ui", str(tmp_path / "none"), "--no-open")
    assert outcome.code == 2
    assert str(tmp_path / "none") in outcome.err
    assert os.listdir(tmp_path) == []
