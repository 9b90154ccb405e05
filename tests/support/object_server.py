"""An object store over HTTP in a few lines, in this process, and a store on it.

    PUT /bucket/key [If-None-Match: *] [X-Token: …]     200, or 412 when the key is taken
    GET, HEAD, DELETE /bucket/key                       200 / 404; X-Token comes back
    GET /bucket?list&prefix=…&after=…&limit=…           a page, as JSON

It is what the fault checks of the conformance kit are tried on; nothing of a real service is
claimed for it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from lakelog.logstores.conformance.http_dialects import HttpDialect
from lakelog.logstores.object_store.store import (
    KeyTakenError,
    NotTheServiceError,
    ObjectClient,
    ObjectEntry,
    ObjectLogStore,
    Owner,
    TryAgainError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow.fs

PAGE: Final = 50
DIALECT: Final = HttpDialect(
    create=r"^PUT /[^? ]*{name} ",
    read=r"^GET /[^? ]*{name} ",
    listing=r"^GET /[^ ]*\?list&",
    page=PAGE,
    busy=("429:Busy", "503:Busy"),
    refused=("429:Busy", "403:Forbidden"),
    expired=("401:Expired",),
)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # With the five of the base class a burst of connections is told to try again in a second.
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, tuple[bytes, str, float]] = {}
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients of these tests leave in the middle


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two segments, and the second would wait for a delayed acknowledgement.
    disable_nagle_algorithm = True

    @property
    def _server(self) -> _Server:
        assert isinstance(self.server, _Server)
        return self.server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        pass

    def do_PUT(self) -> None:
        key, body = self._key(), self.rfile.read(int(self.headers["Content-Length"]))
        with self._server.lock:
            if self.headers["If-None-Match"] and key in self._server.objects:
                status = 412
            else:
                status = 200
                self._server.objects[key] = body, self.headers["X-Token"] or "", time.time()
        self._reply(status, b"")

    def do_GET(self) -> None:
        if "?list&" in self.path:
            self._reply(200, self._page())
            return
        found = self._server.objects.get(self._key())
        self._reply(404 if found is None else 200, *(found or (b"", ""))[:2])

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self._server.objects.pop(self._key(), None)
        self._reply(204, b"")

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _page(self) -> bytes:
        asked = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        prefix = f"{self._key()}/{asked.get('prefix', '')}"
        with self._server.lock:
            found = sorted(self._server.objects.items())
        entries = [
            [key[len(prefix) :], len(body), int(at * 1000)]
            for key, (body, _, at) in found
            if key.startswith(prefix) and key[len(prefix) :] > asked.get("after", "")
        ]
        return json.dumps({"entries": entries[:PAGE], "more": len(entries) > PAGE}).encode()

    def _reply(self, status: int, body: bytes, token: str = "") -> None:
        self.send_response(status)
        self.send_header("X-Tiny", "yes")
        self.send_header("X-Token", token)
        self.send_header("Content-Length", "0" if status == 204 else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def object_server() -> Iterator[str]:
    """Run one until the block ends; gives its URL."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(10)


class TinyClient(ObjectClient):
    """A request, a connection."""

    def __init__(self, url: str, bucket: str, timeout: float) -> None:
        self._host = urlsplit(url).netloc
        self._bucket = bucket
        self._timeout = timeout

    @property
    def endpoint(self) -> str:
        return f"http://{self._host}/{self._bucket}"

    def ask(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes, str]:
        """Status, body and token of a reply; what is no reply of the server is `TryAgainError`."""
        connection = http.client.HTTPConnection(self._host, timeout=self._timeout)
        try:
            connection.request(method, quote(target, safe="/?&=%"), body, dict(headers or {}))
            reply = connection.getresponse()
            data = reply.read()
            ours = reply.getheader("X-Tiny") is not None
        except (http.client.HTTPException, OSError) as error:
            raise TryAgainError(f"{type(error).__name__}: {error}", may_have_landed=True) from error
        finally:
            connection.close()
        foreign = not ours and b"<Code>" not in data
        if reply.status == 429:
            raise TryAgainError("busy (429)", may_have_landed=foreign)
        if reply.status >= 500 or (reply.status == 200 and not ours):
            raise TryAgainError(f"status {reply.status}", may_have_landed=True)
        if foreign and reply.status not in (404, 412):
            raise NotTheServiceError(f"{target}: somebody else said {reply.status}")
        if reply.status in (401, 403):
            raise PermissionError(f"{target}: the service said {reply.status}")
        return reply.status, data, reply.getheader("X-Token", "")

    def create(self, key: str, body: bytes, token: str) -> None:
        headers = {"If-None-Match": "*", "X-Token": token}
        status, _, _ = self.ask("PUT", self._target(key), body, headers)
        if status == 412:
            raise KeyTakenError
        if status == 404:  # there are no folders that could be missing
            raise NotTheServiceError(f"{key}: somebody else said {status}")

    def put(self, key: str, body: bytes) -> None:
        self.ask("PUT", self._target(key), body)

    def get(self, key: str) -> bytes:
        status, data, _ = self.ask("GET", self._target(key))
        if status == 404:
            raise FileNotFoundError(key)
        return data

    def owner(self, key: str) -> Owner | None:
        status, _, token = self.ask("HEAD", self._target(key))
        return None if status == 404 else Owner(token)

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        query = f"?list&prefix={quote(prefix)}&after={quote(continuation or '')}"
        found: Any = json.loads(self.ask("GET", f"/{self._bucket}{query}")[1])
        entries = [ObjectEntry(*entry) for entry in found["entries"] if "/" not in entry[0]]
        return entries, entries[-1].name if found["more"] else None

    def delete(self, key: str) -> None:
        self.ask("DELETE", self._target(key))

    def upload(self, key: str, source: Path) -> None:
        self.put(key, source.read_bytes())

    def _target(self, key: str) -> str:
        return f"/{self._bucket}/{key}"


class TinyLogStore(ObjectLogStore):
    """`tiny://bucket/key` on the endpoint that the conf names at `tiny.endpoint`."""

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        super().__init__(conf)
        self._policy = replace(self._policy, grace=0.5)

    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        bucket, _, key = path.removeprefix("tiny://").partition("/")
        return self.client(self.conf["tiny.endpoint"], bucket, self._timeout), key

    def client(self, url: str, bucket: str, timeout: float) -> ObjectClient:
        return TinyClient(url, bucket, timeout)

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        raise NotImplementedError("the fault checks need none")

    def filesystem_path(self, path: str) -> str:
        return path.removeprefix("tiny://")
