"""What the client of Unity Catalog asks, repeats, refuses, and keeps to itself."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from lakelog.core import read_arrow
from lakelog.core.catalogs.catalog_conf import CatalogConf
from lakelog.core.catalogs.names import TableName, known_catalogs, table_name
from lakelog.core.catalogs.unity import UnityCatalog
from lakelog.core.catalogs.unity.credentials import conf_of
from lakelog.core.catalogs.unity.tokens import token_source
from lakelog.core.errors import (
    CatalogError,
    DeltaAnalysisError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelog.core.wire import Wire
from support.forward_proxy import HOST, ForwardProxy
from support.loopback_tls import tls_of_loopback
from support.manual_clock import ManualClock
from support.unity_server import FaultError, Request, UnityServer, Ways, serving
from support.unity_tables import BASE, make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TableName("lake", "s", "t")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path)) as served:
        make_table(served)
        yield served


def catalog(server: UnityServer, clock: ManualClock | None = None) -> UnityCatalog:
    return UnityCatalog("lake", server.conf(), clock or ManualClock())


@pytest.mark.parametrize(
    "end", ["", "/", "//", "/api/2.1/unity-catalog", "/api/2.1/unity-catalog/delta/v1/"]
)
def test_a_url_may_have_the_apis_path(server: UnityServer, end: str) -> None:
    conf = {"spark.sql.catalog.lake.uri": f"{server.url}{end}"}
    found = UnityCatalog("lake", conf, ManualClock())
    assert found.load(T).latest == 0
    assert [*found.schema_names()] == ["s"]


@pytest.mark.parametrize("status", [None, 500, 502, 503, 504])
def test_a_look_is_repeated_with_longer_waits(server: UnityServer, status: int | None) -> None:
    left = [1, 2, 3]

    def fails(request: Request) -> None:
        if request.path.endswith("/t") and left:
            left.pop()
            raise FaultError(status)

    server.before = fails
    clock = ManualClock()
    assert catalog(server, clock).load(T).latest == 0
    assert len(clock.slept) == 3
    assert all(wait <= 0.1 * 2**number for number, wait in enumerate(clock.slept))


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        *(("3", 3), ("0", 0), ("1e400", 5), ("86400", 5), ("-7", 0), ("nan", 0)),
        *(("Wed, 21 Oct 2099 07:28:00 GMT", None), ("soon", None), ("", None)),
    ],
)
def test_a_server_says_how_long_to_wait_within_bounds(
    server: UnityServer, said: str, waits: int | None
) -> None:
    busy = answer(b"{}", 429, more=f"Retry-After: {said}\r\n")
    _, table = server.answer("GET", f"{BASE}/catalogs/lake/schemas/s/tables/t", b"", {})
    clock = ManualClock()
    with answering(busy, AGREED, busy, answer(json.dumps(table).encode())) as url:
        known = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, clock)
        assert known.load(T).latest == 0
    # A connection may break besides, which is waited for like a server that says nothing.
    if waits is None:
        assert len(clock.slept) >= 2
        assert all(wait <= 0.1 * 2**number for number, wait in enumerate(clock.slept))
    else:
        assert clock.slept.count(waits) == 2


@pytest.mark.parametrize("place", ["relative/t", "t", ""])
def test_a_location_without_a_beginning_is_none(server: UnityServer, place: str) -> None:
    """It would be a folder of whoever asks."""
    server.table("lake.s.t").location = place
    with pytest.raises(CatalogError, match="not its API's"):
        catalog(server).load(T)


@pytest.mark.parametrize("path", ["json.JSONDecoder", "no.such.Class", "json", "x"])
def test_a_class_that_is_no_catalog(path: str) -> None:
    conf = {"spark.lakelog.catalog.lake.class": path}
    with pytest.raises(DeltaAnalysisError, match=r"spark\.lakelog\.catalog\.lake\.class = "):
        read_arrow("lake.s.t", conf=conf)


def test_a_server_that_stays_silent_is_named(server: UnityServer) -> None:
    def fails(request: Request) -> None:
        raise FaultError(None)

    server.before = fails
    with pytest.raises(CatalogError, match=r"did not answer GET .*spark\.sql\.catalog\.lake\.uri"):
        catalog(server).load(T)


def test_no_server_at_all() -> None:
    conf = {"spark.sql.catalog.lake.uri": "http://127.0.0.1:9"}
    with pytest.raises(CatalogError, match="did not answer"):
        UnityCatalog("lake", conf, ManualClock()).load(T)


def test_a_server_without_the_api_is_refused_by_its_version(tmp_path: Path) -> None:
    with serving(UnityServer(tmp_path, Ways(has_api=False))) as server:
        server.add_schema("lake", "s")
        with pytest.raises(UnsupportedFeatureError, match="has no Delta API"):
            catalog(server).load(T)


def test_the_older_api_is_refused_by_name(server: UnityServer) -> None:
    with pytest.raises(DeltaAnalysisError, match="/delta/preview/commits"):
        UnityCatalog(
            "lake", {**server.conf(), "spark.sql.catalog.lake.deltaRestApi.enabled": "false"}
        )


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "not a url",
        "http://",
        "http://me:secret@host",
        "ftp://me:secret@x",
        "me:secret@host",
        "http://host:port",
        "http://host:99999",
        "http://[::1",
        "http://host/?token=secret",
        "http://host/a b",
        "http://host/ä",
    ],
)
def test_a_url_that_can_not_be_one(url: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"spark\.sql\.catalog\.lake\.uri") as caught:
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://ho st", "http://x..y"])
def test_a_host_that_no_name_server_is_asked_for(url: str) -> None:
    with pytest.raises(CatalogError, match="did not answer"):
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).load(T)


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that gives these in turn, the last one for ever, whatever is asked. Its URL."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.wfile.write(left.pop(0) if len(left) > 1 else left[0])
            self.close_connection = True

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def answer(body: bytes, status: int = 200, size: int | None = None, more: str = "") -> bytes:
    length = len(body) if size is None else size
    return f"HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{more}\r\n".encode() + body


PACKED = "Content-Encoding: gzip\r\n"
CHUNKED = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"
AGREED = answer(b'{"protocol-version":"1.0"}')


@pytest.mark.parametrize(
    "garbled",
    [
        answer(b"<html>"),
        answer(b"[1]"),
        answer(b'"x"'),
        answer(b"\xff"),
        answer(b"[" * 100_000),
        answer(b'{"metadata":{'),
        answer(b'{"metadata":{', size=500),
        answer(b"", size=500),
        answer(b"<html>", 502),
        answer(b"{}", more=PACKED),
        answer(gzip.compress(b'{"metadata":{}}', mtime=0)[:-9], more=PACKED),
        answer(gzip.compress(b'{"protocol-version":"1.0"}', mtime=0), more=PACKED, size=500),
        CHUNKED + b'8\r\n{"a":1}\r\n',
        CHUNKED + b'80\r\n{"a":1}',
        CHUNKED + b'x\r\n{"a":1}\r\n0\r\n\r\n',
        b"no HTTP\r\n\r\n",
        b"",
    ],
)
def test_a_garbled_answer_is_asked_for_again(server: UnityServer, garbled: bytes) -> None:
    _, table = server.answer("GET", f"{BASE}/catalogs/lake/schemas/s/tables/t", b"", {})
    good = answer(gzip.compress(json.dumps(table).encode()), more=PACKED)
    with answering(garbled, AGREED, garbled, good) as url:
        found = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).load(T)
    assert found.latest == 0
    with answering(garbled) as url, pytest.raises(CatalogError, match="did not answer"):
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).load(T)


def test_a_reply_without_a_body_has_nothing_to_unpack() -> None:
    with answering(answer(b"", 204, more=PACKED)) as url:
        assert Wire(url, 5, key="uri").send("GET", "/", None, {}).status == 204


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"metadata":[]}', b'{"metadata":{}}'])
def test_an_answer_that_describes_no_table(body: bytes) -> None:
    with answering(AGREED, answer(body)) as url, pytest.raises(CatalogError):
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).load(T)


@pytest.mark.parametrize("endpoints", [b"null", b"7", b'"all"', b"[7]"])
def test_a_server_that_lists_its_calls_oddly_is_used(server: UnityServer, endpoints: bytes) -> None:
    _, table = server.answer("GET", f"{BASE}/catalogs/lake/schemas/s/tables/t", b"", {})
    agreed = answer(b'{"protocol-version":"1.0","endpoints":' + endpoints + b"}")
    with answering(agreed, answer(json.dumps(table).encode())) as url:
        known = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock())
        assert known.load(T).latest == 0


@pytest.mark.parametrize(
    "part",
    [".", "..", "\ud800", "", "a/b", "/", "t/", "a/../t", "..\\t", "\\t", "t\\", "t\0"],
)
def test_a_name_that_no_url_can_have_is_refused(server: UnityServer, part: str) -> None:
    known = catalog(server)
    table = known.load(T)
    server.seen.clear()
    for name in (TableName("lake", "s", part), TableName("lake", part or "..", "t")):
        for use in (known.load, known.stage_table, partial(known.rename_table, table)):
            with pytest.raises(DeltaAnalysisError, match="can't be a part of a name"):
                use(name)
    assert server.seen == []


@pytest.mark.parametrize("odd", [None, 7, "", [], {}, "\ud800"])
@pytest.mark.parametrize(
    "place",
    [
        ("metadata", "table-uuid"),
        ("metadata", "location"),
        ("commits", 0, "file-name"),
        ("commits", 0, "version"),
        ("commits", 0, "file-size"),
        ("commits", 0, "timestamp"),
        ("commits", 0, "file-modification-timestamp"),
    ],
)
def test_a_table_with_a_value_of_another_kind(
    server: UnityServer, place: tuple[Any, ...], odd: Any
) -> None:
    if place[-1] not in ("table-uuid", "location", "file-name", "version") and odd == 7:
        odd = "7"
    other_client_commits(server, Path(server.table("lake.s.t").location[len("file://") :]), 1)
    _, table = server.answer("GET", f"{BASE}/catalogs/lake/schemas/s/tables/t", b"", {})
    table = json.loads(json.dumps(table))
    *way, last = place
    found = table
    for each in way:
        found = found[each]
    found[last] = odd
    with (
        answering(AGREED, answer(json.dumps(table).encode())) as url,
        pytest.raises(CatalogError, match="not its API's"),
    ):
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).load(T)


def test_a_version_with_two_files_is_none(server: UnityServer) -> None:
    folder = Path(server.table("lake.s.t").location[len("file://") :])
    for each in (1, 2):
        other_client_commits(server, folder, each)
    _, table = server.answer("GET", f"{BASE}/catalogs/lake/schemas/s/tables/t", b"", {})
    first, second = table["commits"]
    twice = {**table, "commits": [second, first, dict(second)]}  # in any order, and one again
    other = {**first, "file-name": first["file-name"].replace("-", "_")}
    two = {**table, "commits": [first, second, other]}
    conf = {}
    with answering(AGREED, *(answer(json.dumps(each).encode()) for each in (twice, two))) as url:
        conf = {"spark.sql.catalog.lake.uri": url}
        known = UnityCatalog("lake", conf, ManualClock())
        assert sorted(known.load(T).commits) == [1, 2]
        with pytest.raises(CatalogError, match="two files of version 2"):
            known.load(T)


@pytest.mark.parametrize("odd", [-1, "0", 0.0, True, [], {}])
def test_a_newest_version_that_is_none(server: UnityServer, odd: Any) -> None:
    _, table = server.answer("GET", f"{BASE}/catalogs/lake/schemas/s/tables/t", b"", {})
    given = {**table, "latest-table-version": odd}
    with (
        answering(AGREED, answer(json.dumps(given).encode())) as url,
        pytest.raises(CatalogError, match="not its API's"),
    ):
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).load(T)


@pytest.mark.parametrize("odd", ["../{}", "x/{}", "..", "{0:.20}/{0}", f"{2:020d}.x.json"])
def test_a_commit_that_names_no_file_of_its_version(server: UnityServer, odd: str) -> None:
    other_client_commits(server, Path(server.table("lake.s.t").location[len("file://") :]), 1)
    (commit,) = server.table("lake.s.t").commits.values()
    commit["file-name"] = odd.format(commit["file-name"])
    with pytest.raises(CatalogError, match="no file of version 1"):
        catalog(server).load(T)


@pytest.mark.parametrize(
    "listed",
    [7, "x", [None], [{}], [{"name": None}], [{"name": 7}], [{"name": ""}], [{"name": "\ud800"}]],
)
@pytest.mark.parametrize("what", ["tables", "schemas"])
def test_a_list_of_another_form_is_refused(what: str, listed: Any) -> None:
    with answering(answer(json.dumps({what: listed}).encode())) as url:
        known = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock())
        with pytest.raises(CatalogError, match=f"lists {what} in a way"):
            list(known.table_names("s" if what == "tables" else None))


def test_a_list_of_nothing_is_empty() -> None:
    with answering(answer(b"")) as url:
        known = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock())
        assert list(known.table_names("s")) == []


def test_a_list_that_turns_in_a_circle_ends() -> None:
    pages = [
        answer(json.dumps({"tables": [{"name": "t"}], "next_page_token": each}).encode())
        for each in ("a", "b", "a")
    ]
    with answering(*pages) as url:
        known = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock())
        with pytest.raises(CatalogError, match="the page 'a' comes twice"):
            list(known.table_names("s"))


@pytest.mark.parametrize("page", [b"", b"<html>404 page not found</html>", b"{}"])
def test_a_page_that_is_not_there_is_no_table_that_is_not_there(
    server: UnityServer, page: bytes
) -> None:
    """As a proxy answers whose server is just being restarted."""
    with answering(AGREED, answer(page, 404)) as url:
        known = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock())
        with pytest.raises(CatalogError, match="404"):
            known.load(T)
        table = catalog(server).load(T)
        with pytest.raises(CatalogError):
            known.drop_table(table)


def test_an_error_without_a_type_is_read() -> None:
    said = answer(b'{"error":{"message":"no such thing.","code":404}}', 404)
    with answering(AGREED, said) as url:
        known = UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock())
        with pytest.raises(TableNotFoundError, match=r"has no table lake\.s\.t: no such thing\."):
            known.load(T)


@pytest.mark.parametrize(
    "odd",
    [
        {"table-id": 7},
        {"location": None},
        {"location": ""},
        {"required-protocol": {"reader-features": [7]}},
        {"required-properties": {"a": 7}},
    ],
)
def test_a_place_with_a_value_of_another_kind(odd: dict[str, Any]) -> None:
    given = {
        "table-id": "id",
        "location": "file:///nowhere",
        "required-protocol": {"reader-features": [], "writer-features": []},
        "required-properties": {},
    }
    with (
        answering(AGREED, answer(json.dumps({**given, **odd}).encode())) as url,
        pytest.raises(CatalogError, match="not its API's"),
    ):
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).stage_table(T)


def test_a_redirect_is_named_and_not_followed() -> None:
    moved = answer(b"", 307, more="Location: https://me:pass@elsewhere/api?sig=s3cr3t\r\n")
    with (
        answering(moved) as url,
        pytest.raises(CatalogError, match=r"leads to https://.*elsewhere/api:") as caught,
    ):
        UnityCatalog("lake", {"spark.sql.catalog.lake.uri": url}, ManualClock()).load(T)
    assert "s3cr3t" not in str(caught.value)
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize("fill", [0, 190])
def test_a_server_that_repeats_the_request_shows_no_token(status: int, fill: int) -> None:
    said = answer(b"x" * fill + b"Authorization: Bearer t0ken-of-mine", status)
    with answering(said) as url:
        conf = {"spark.sql.catalog.lake.uri": url, "spark.sql.catalog.lake.token": "t0ken-of-mine"}
        known = UnityCatalog("lake", conf, ManualClock())
        with pytest.raises(CatalogError) as caught:
            known.load(T)
    assert "t0ken" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("token", ["s3cr3t\nsecond", "s3cr3t\x00", "s3cr3t\u20ac"])
@pytest.mark.parametrize("source", ["conf", "file", "command"])
def test_a_token_that_no_header_takes_is_not_shown(
    server: UnityServer, tmp_path: Path, token: str, source: str
) -> None:
    kept = tmp_path / "token"
    kept.write_text(token, encoding="utf-8")
    conf = (
        server.conf()
        | {
            "conf": {"spark.sql.catalog.lake.token": token},
            "file": {"spark.lakelog.catalog.lake.token.file": str(kept)},
            "command": {"spark.lakelog.catalog.lake.token.command": f"cat {kept}"},
        }[source]
    )
    server.seen.clear()
    with pytest.raises(CatalogError, match="has line breaks") as caught:
        UnityCatalog("lake", conf).load(T)
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))
    assert server.seen == []


def test_a_command_with_an_open_quote_is_not_shown(server: UnityServer) -> None:
    conf = {**server.conf(), "spark.lakelog.catalog.lake.token.command": "echo 's3cr3t"}
    with pytest.raises(CatalogError, match="quote that does not end") as caught:
        UnityCatalog("lake", conf).load(T)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("command", ["printf '\\377s3cr3t'", "echo s3cr3t\0"])
def test_a_command_whose_output_is_no_text_is_not_shown(server: UnityServer, command: str) -> None:
    conf = {**server.conf(), "spark.lakelog.catalog.lake.token.command": command}
    with pytest.raises(CatalogError, match="gave no token") as caught:
        UnityCatalog("lake", conf).load(T)
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("given", ['""', '" "', "null", "7"])
def test_a_login_that_gives_no_token_is_refused(server: UnityServer, given: str) -> None:
    with answering(answer(f'{{"access_token":{given}}}'.encode())) as url:
        conf = server.conf() | {
            "spark.sql.catalog.lake.auth.oauth.uri": url,
            "spark.sql.catalog.lake.auth.oauth.clientId": "me",
            "spark.sql.catalog.lake.auth.oauth.clientSecret": "s3cr3t",
        }
        with pytest.raises(CatalogError, match="gave no token"):
            UnityCatalog("lake", conf).load(T)


def test_a_login_that_is_busy_is_asked_again(server: UnityServer) -> None:
    given = answer(b'{"access_token":"t","expires_in":null}')
    with answering(answer(b"", 503), b"", given) as url:
        conf = server.conf() | {
            "spark.sql.catalog.lake.auth.type": "oauth",
            "spark.sql.catalog.lake.auth.oauth.uri": url,
            "spark.sql.catalog.lake.auth.oauth.clientId": "me",
            "spark.sql.catalog.lake.auth.oauth.clientSecret": "s3cr3t",
        }
        assert UnityCatalog("lake", conf, ManualClock()).load(T).latest == 0
    assert server.seen[-1].headers["Authorization"] == "Bearer t"


@pytest.mark.parametrize(
    "vended",
    [
        [1],
        7,
        [{"config": {"s3.access-key-id": "s3cr3t"}}],
        [{"config": {"s3.access-key-id": "s3cr3t", "s3.secret-access-key": None}}],
        [{"config": {"s3.access-key-id": "s3cr3t", "s3.secret-access-key": 7}}],
        [{"config": "s3cr3t"}],
        [{"config": {"azure.sas-token": "s3cr3t"}, "expiration-time-ms": "2026-01-01"}],
        [{"config": {"azure.sas-token": "s3cr3t"}, "expiration-time-ms": -1}],
    ],
)
def test_credentials_in_another_form_are_refused(server: UnityServer, vended: Any) -> None:
    server.credentials = lambda table, _: (
        [{"prefix": table.location, **vended[0]}]
        if isinstance(vended, list) and isinstance(vended[0], dict)
        else vended
    )
    known = catalog(server)
    with pytest.raises(CatalogError, match="not its API's") as caught:
        known.credentials(known.load(T), write=True)
    assert "s3cr3t" not in str(caught.value)


def test_a_view_is_no_table(server: UnityServer) -> None:
    server.table("lake.s.t").kind = "VIEW"
    with pytest.raises(DeltaAnalysisError, match="no Delta table"):
        catalog(server).load(T)


def test_a_catalog_that_the_server_does_not_have(server: UnityServer) -> None:
    conf = {"spark.sql.catalog.other.uri": server.url}
    with pytest.raises(TableNotFoundError, match="no catalog other"):
        UnityCatalog("other", conf).load(TableName("other", "s", "t"))


def test_names_with_other_characters_reach_the_server(server: UnityServer) -> None:
    make_table(server, "lake.s.my table%ä?")
    name = table_name("lake.s.`my table%ä?`", known_catalogs(server.conf()))
    assert name is not None
    assert str(name) == "lake.s.`my table%ä?`"
    assert catalog(server).load(name).latest == 0


def test_connections_are_kept(server: UnityServer) -> None:
    found = catalog(server)
    for _ in range(3):
        found.load(T)
    assert len(found._requests._wire._idle) == 1


def test_the_environments_proxy_leads_to_the_server(
    server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ForwardProxy(server.url) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        conf = {"spark.sql.catalog.lake.uri": f"http://{HOST}"}
        assert UnityCatalog("lake", conf).load(T).latest == 0
        assert all(HOST in line for line in proxy.requests)
        assert proxy.requests


def test_a_private_certificate_is_trusted_by_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, certificate = tls_of_loopback(tmp_path)
    with serving(UnityServer(tmp_path), context) as server:
        make_table(server)
        with pytest.raises(CatalogError, match="CERTIFICATE_VERIFY_FAILED"):
            catalog(server).load(T)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert catalog(server).load(T).latest == 0
        conf = {"spark.sql.catalog.lake.uri": server.url.replace("127.0.0.1", "127.1")}
        with pytest.raises(CatalogError, match=r"CERTIFICATE_VERIFY_FAILED.*not valid for"):
            UnityCatalog("lake", conf, ManualClock()).load(T)


# -- tokens ---------------------------------------------------------------------------------------


def source(**conf: str) -> Any:
    return token_source(CatalogConf("lake", conf), ManualClock())


def test_a_token_from_a_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    found = source(**{"spark.lakelog.catalog.lake.token.file": str(path)})
    assert found.token() == "one"
    path.write_text("two")
    assert found.token() == "two"
    path.unlink()
    with pytest.raises(CatalogError, match=r"token\.file"):
        found.token()


def test_a_token_from_a_command(tmp_path: Path) -> None:
    script = tmp_path / "give.py"
    script.write_text("import sys; print(sys.argv[1])")
    key = "spark.lakelog.catalog.lake.token.command"
    python = shlex.quote(sys.executable)
    found = source(**{key: f"{python} {shlex.quote(str(script))} abc"})
    assert found.token() == found.token() == "abc"
    with pytest.raises(CatalogError, match="status 3") as caught:
        source(**{key: f"{python} -c 'raise SystemExit(3)' secret"}).token()
    assert "secret" not in str(caught.value)


def test_two_tokens_are_one_too_many() -> None:
    with pytest.raises(DeltaAnalysisError, match="more than one token") as caught:
        source(
            **{
                "spark.sql.catalog.lake.auth.token": "secret-1",
                "spark.lakelog.catalog.lake.token.file": "/secret-2",
            }
        )
    assert "secret" not in str(caught.value)


def test_half_of_a_clients_login(server: UnityServer) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"oauth\.clientSecret"):
        source(
            **{
                "spark.sql.catalog.lake.auth.type": "oauth",
                "spark.sql.catalog.lake.auth.oauth.uri": server.url,
                "spark.sql.catalog.lake.auth.oauth.clientId": "me",
            }
        )


def test_a_java_class_can_not_give_tokens() -> None:
    with pytest.raises(DeltaAnalysisError, match="static and oauth"):
        source(**{"spark.sql.catalog.lake.auth.type": "com.example.Tokens"})


def test_a_clients_login_is_renewed_before_its_token_ends() -> None:
    asked: list[dict[str, list[str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append(parse_qs(form) | {"login": [self.headers["Authorization"]]})
            body = json.dumps({"access_token": f"t{len(asked)}", "expires_in": 100}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        clock = ManualClock()
        prefix = "spark.sql.catalog.lake.auth"
        conf = {
            f"{prefix}.type": "oauth",
            f"{prefix}.oauth.uri": f"http://127.0.0.1:{http.server_address[1]}/token",
            f"{prefix}.oauth.clientId": "me",
            f"{prefix}.oauth.clientSecret": "secret",
        }
        found = token_source(CatalogConf("lake", conf), clock)
        assert found.token() == "t1"
        clock.advance(69)
        assert found.token() == "t1"
        clock.advance(2)
        assert found.token() == "t2"
        http.shutdown()
    assert asked[0]["grant_type"] == ["client_credentials"]
    assert asked[0]["scope"] == ["all-apis"]
    assert asked[0]["login"] == ["Basic bWU6c2VjcmV0"]
    assert "secret" not in repr(found)


def test_a_token_that_was_refused_is_fetched_again_once(tmp_path: Path) -> None:
    with serving(UnityServer(tmp_path / "uc", token="new")) as server:
        make_table(server)
        path = tmp_path / "token"
        path.write_text("old")
        conf = {
            "spark.sql.catalog.lake.uri": server.url,
            "spark.lakelog.catalog.lake.token.file": str(path),
        }
        found = UnityCatalog("lake", conf, ManualClock())
        server.seen.clear()
        with pytest.raises(CatalogError, match="401"):
            found.load(T)
        assert len(server.seen) == 2

        def renewed(request: Request) -> None:
            path.write_text("new")

        server.before = renewed
        assert found.load(T).latest == 0


# -- conf -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conf", "known"),
    [
        ({}, set()),
        ({"spark.sql.catalog.a.uri": "http://x"}, {"a"}),
        ({"spark.sql.catalog.a": "io.unitycatalog.spark.UCSingleCatalog"}, {"a"}),
        (
            {
                "spark.sql.catalog.a": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.a.uri": "http://x",
            },
            set(),
        ),
        ({"spark.lakelog.catalog.a.class": "x.Y"}, {"a"}),
        ({"spark.lakelog.catalog.a.timeout": "3"}, set()),
    ],
)
def test_which_catalogs_a_conf_knows(conf: dict[str, str], known: set[str]) -> None:
    assert known_catalogs(conf) == known


@pytest.mark.parametrize(
    "text",
    [
        *(
            "/lake/s/t",
            "s3://lake.s.t",
            "./lake.s.t",
            "lake",
            "other.s",
            "other.s.t",
            "other..t",
            "",
        ),
        *("lake/s.t", "lake.s/t", "lake.s:t", "C:\\lake.s.t", "LAKE", ".lake.s.t"),
    ],
)
def test_what_is_a_path(text: str) -> None:
    known = known_catalogs({"spark.sql.catalog.lake.uri": "http://x"})
    assert table_name(text, known) is None


def test_vended_credentials_open_the_storage() -> None:
    s3 = {
        "prefix": "s3://bucket/t",
        "operation": "READ_WRITE",
        "config": {
            "s3.access-key-id": "AK",
            "s3.secret-access-key": "SK",
            "s3.session-token": "ST",
        },
        "expiration-time-ms": 5,
    }
    found = conf_of([s3], "s3://bucket/t", "lake")
    assert found.ends_at_ms == 5
    assert found.conf["spark.hadoop.fs.s3a.bucket.bucket.session.token"] == "ST"
    assert "SK" not in repr(found)
    sas = {"prefix": "abfss://c@a.dfs.core.windows.net/", "config": {"azure.sas-token": "sig"}}
    azure = conf_of([sas], "abfss://c@a.dfs.core.windows.net/t", "lake")
    assert azure.conf["spark.hadoop.fs.azure.sas.fixed.token.a.dfs.core.windows.net"] == "sig"
    assert conf_of([s3], "s3://bucket/other", "lake").conf == {}
    for same in ("s3a://bucket/t", "S3://bucket/t/"):
        assert conf_of([s3], same, "lake").conf == found.conf
    assert conf_of([{**s3, "prefix": None}], "s3://bucket/t", "lake").conf == found.conf
    for end in (None, 2**63 - 1):
        given = [{**s3, "expiration-time-ms": end}]
        assert conf_of(given, "s3://bucket/t", "lake").ends_at_ms is None
    gcs = {"prefix": "gs://b", "config": {"gcs.oauth-token": "secret"}}
    assert conf_of([gcs], "gs://b/t", "lake").conf == {"spark.lakelog.gcs.accessToken": "secret"}
    other = {"prefix": "r2://b", "config": {"r2.odd-token": "secret"}}
    with pytest.raises(CatalogError, match=r"credentials = own") as caught:
        conf_of([other], "r2://b/t", "lake")
    assert "secret" not in str(caught.value)


def test_the_stores_take_them() -> None:
    pytest.importorskip("boto3")
    from lakelog.logstores import log_store_for

    config = {"s3.access-key-id": "AK", "s3.secret-access-key": "SK", "s3.session-token": "ST"}
    given = conf_of([{"prefix": "s3://b", "config": config}], "s3://b/t", "lake")
    store = log_store_for("s3://b/t", given.conf)
    assert "SK" not in repr(store.settings())


@pytest.mark.parametrize(
    ("behind", "ends_in"), [(0, 3600), (1200, 3600), (-1200, 3600 - 1200), (7200, 3600)]
)
def test_credentials_end_by_the_clock_of_who_vends_them(
    server: UnityServer, behind: int, ends_in: int
) -> None:
    """A client whose clock is behind would renew them late; of one that is ahead it is early."""
    now = time.time_ns() // 1_000_000
    server.credentials = lambda table, operation: [
        {
            "prefix": table.location,
            "operation": operation,
            "config": {"s3.access-key-id": "AK", "s3.secret-access-key": "SK"},
            "expiration-time-ms": now + 3_600_000,
        }
    ]
    clock = ManualClock(now - behind * 1000)
    asked = catalog(server, clock)
    found = asked.credentials(asked.load(T), write=True)
    assert found.ends_at_ms is not None
    assert abs((found.ends_at_ms - clock.now_ms()) / 1000 - ends_in) < 60
