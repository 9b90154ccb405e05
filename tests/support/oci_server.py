"""As much of Oracle's Object Storage as its API reference says a log needs, in this process.

PutObject with `if-none-match: *` and `opc-meta-*`, GetObject, HeadObject, DeleteObject and
ListObjects. Signatures are not checked. It is written from the documentation, so a test on it
shows that the client speaks as documented, and no more.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class OCIServer:
    """A bucket of any name, and what may be wrong with it."""

    url: str = ""
    denied: tuple[int, str] | None = None
    """Status and code that every request gets."""
    objects: dict[str, tuple[bytes, dict[str, str], float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextlib.contextmanager
def oci_server() -> Iterator[OCIServer]:
    """A server on a free port of 127.0.0.1, until the block ends."""
    state = OCIServer()

    class Handler(_Handler):
        oci = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    oci: OCIServer

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        named = ((name.lower(), value) for name, value in self.headers.items())
        kept = {name: value for name, value in named if name.startswith("opc-meta-")}
        if self._refused():
            return
        with self.oci.lock:
            if self.headers.get("if-none-match") == "*" and self._key() in self.oci.objects:
                self._error(412, "IfNoneMatchFailed")
                return
            self.oci.objects[self._key()] = (body, kept, time.time())
        self._send(200, b"", {"ETag": "x"})

    def do_GET(self) -> None:
        if self._refused():
            return
        if urlsplit(self.path).path.endswith("/o"):
            self._list()
        else:
            self._object()

    def do_HEAD(self) -> None:
        if not self._refused():
            self._object()

    def do_DELETE(self) -> None:
        if self._refused():
            return
        if self.oci.objects.pop(self._key(), None) is None:
            self._error(404, "ObjectNotFound")
        else:
            self._send(204, b"", {})

    def _object(self) -> None:
        found = self.oci.objects.get(self._key())
        if found is None:
            self._error(404, "ObjectNotFound")
        else:
            self._send(200, found[0], found[1])

    def _list(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        base = unquote(parts.path).lstrip("/") + "/"
        prefix, start = query.get("prefix", ""), query.get("start", "")
        items: dict[str, dict[str, Any] | None] = {}
        for full in sorted(self.oci.objects, key=str.encode):
            name = full.removeprefix(base)
            rest = name.removeprefix(prefix)
            if not full.startswith(base) or not name.startswith(prefix) or name < start:
                continue
            if "/" in rest:
                items[prefix + rest.split("/")[0] + "/"] = None
                continue
            body, _, changed = self.oci.objects[full]
            when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(changed))
            items[name] = {"name": name, "size": len(body), "timeModified": when}
        names = sorted(items, key=str.encode)
        most = int(query.get("limit", "1000"))
        shown = {name: items[name] for name in names[:most]}
        answer: dict[str, Any] = {
            "objects": [item for item in shown.values() if item],
            "prefixes": [name for name, item in shown.items() if item is None],
        }
        if len(names) > most:
            answer["nextStartWith"] = names[most]
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    def _refused(self) -> bool:
        if self.oci.denied is not None:
            self._error(*self.oci.denied)
        return self.oci.denied is not None

    def _error(self, status: int, code: str) -> None:
        body = json.dumps({"code": code, "message": "no"}).encode()
        self._send(status, body, {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.send_header("opc-request-id", "1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base has it
        pass
