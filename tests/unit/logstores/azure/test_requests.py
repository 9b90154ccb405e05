"""A request of the client for Azure is one request: nothing below repeats it or sends it on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lakelog.logstores.azure.client import AzureClient
from lakelog.logstores.azure.conf import AzureSettings
from lakelog.logstores.azure.credentials import Credential, SasToken, SharedKey
from lakelog.logstores.errors import FileTooLargeError
from lakelog.logstores.limits import reading
from lakelog.logstores.object_store.client import NotTheServiceError, TryAgainError
from support.scripted_server import scripted_server

ACCOUNT = "devstoreaccount1"
KEY = SharedKey(ACCOUNT, "Zm9v")
CREDENTIALS: list[Credential] = [KEY, SasToken("sv=2025-11-05&sig=a-secret-signature")]


@pytest.mark.parametrize("credential", CREDENTIALS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("status", [302, 307, 308, 408, 429, 500, 503])
def test_a_create_is_sent_once_and_nowhere_else(credential: Credential, status: int) -> None:
    with scripted_server() as server, scripted_server() as elsewhere:
        server.say(status, {}, Location=f"{elsewhere.url}/{ACCOUNT}/lake/key")
        settings = AzureSettings(ACCOUNT, f"{server.url}/{ACCOUNT}", credential)
        with pytest.raises((OSError, TryAgainError)) as caught:
            AzureClient(settings, "lake").create("key", b"body", "token")
        assert len(server.heard) == 1
        assert elsewhere.heard == []
    assert "a-secret-signature" not in f"{caught.value}"


@pytest.mark.parametrize("credential", CREDENTIALS, ids=lambda each: type(each).__name__)
def test_a_blob_is_read_by_one_signed_request(credential: Credential) -> None:
    with scripted_server() as server:
        server.say(200, b"two\nlines\n", ETag='"1"')
        settings = AzureSettings(ACCOUNT, f"{server.url}/{ACCOUNT}", credential)
        assert AzureClient(settings, "lake").get("a b/ü#1.json") == b"two\nlines\n"
        [heard] = server.heard
    path = heard.line.split()[1]
    assert path.partition("?")[0] == f"/{ACCOUNT}/lake/a%20b/%C3%BC%231.json"
    assert heard.headers["x-ms-version"] <= "2025-11-05"
    if credential is KEY:
        assert heard.headers["Authorization"].startswith(f"SharedKey {ACCOUNT}:")
    else:
        assert path.endswith("?sv=2025-11-05&sig=a-secret-signature")


def _gotten(status: int, body: bytes, **headers: str) -> bytes:
    with scripted_server() as server:
        server.say(status, body, **headers)
        settings = AzureSettings(ACCOUNT, f"{server.url}/{ACCOUNT}", KEY)
        try:
            return AzureClient(settings, "lake").get("key")
        finally:
            assert len(server.heard) == 1


def test_what_is_not_a_blob_is_told_apart() -> None:
    body = b"{}"
    with pytest.raises(FileNotFoundError, match="404 BlobNotFound"):
        _gotten(404, body, x_ms_error_code="BlobNotFound", x_ms_request_id="1")
    with pytest.raises(PermissionError, match="wrong for this account"):
        _gotten(403, body, x_ms_error_code="AuthenticationFailed", x_ms_request_id="1")
    with pytest.raises(TryAgainError, match="503 ServerBusy") as busy:
        _gotten(503, body, x_ms_error_code="ServerBusy", Retry_After="7", x_ms_request_id="1")
    assert busy.value.retry_after == 7
    with pytest.raises(NotTheServiceError, match="a web page"):
        _gotten(302, b"<html>", Location="http://127.0.0.1:1/")
    with pytest.raises(TryAgainError, match="not the whole blob"):
        _gotten(200, b"<html>sign in</html>")
    with pytest.raises(OSError, match="does not speak this SDK's version"):
        _gotten(
            400,
            b"<Error>x-ms-version</Error>",
            x_ms_error_code="InvalidHeaderValue",
            x_ms_request_id="1",
        )


def test_a_blob_beyond_the_limit_is_refused_by_its_length() -> None:
    with pytest.raises(FileTooLargeError):
        reading("key", 10, lambda: _gotten(200, b"x" * 11, ETag='"1"'))


def test_the_connections_of_many_readers_are_kept() -> None:
    readers = 24
    crowd = threading.Barrier(readers)
    connections: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.client_address)

        def do_HEAD(self) -> None:
            crowd.wait(30)
            self.send_response(200)
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Mon, 23 Nov 2026 00:00:00 GMT")
            self.send_header("Content-Length", "4")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base has it
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 2 * readers

    server = Server(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}/{ACCOUNT}"
        client = AzureClient(AzureSettings(ACCOUNT, endpoint, KEY), "lake")
        with ThreadPoolExecutor(readers) as pool:
            for _ in range(2):
                assert all(pool.map(client.owner, ["key"] * readers))
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    assert len(connections) == readers
