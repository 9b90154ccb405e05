"""As much of Alibaba Cloud OSS as its API reference says a log needs, in this process.

PutObject with `x-oss-forbid-overwrite` and `x-oss-meta-*`, GetObject, HeadObject, DeleteObject,
ListObjectsV2 and GetBucketVersioning. Signatures are not checked. It is written from the
documentation, so a test on it shows that the client speaks as documented, and no more.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class OSSServer:
    """A bucket of any name, and what may be wrong with it."""

    url: str = ""
    versioning: str | None = None
    denied: str | None = None
    """An error code that every request gets with a 403."""
    objects: dict[str, tuple[bytes, dict[str, str], float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextlib.contextmanager
def oss_server() -> Iterator[OSSServer]:
    """A server on a free port of 127.0.0.1, until the block ends."""
    state = OSSServer()

    class Handler(_Handler):
        oss = state

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
    oss: OSSServer

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kept = {
            k.lower(): v for k, v in self.headers.items() if k.lower().startswith("x-oss-meta-")
        }
        once = self.headers.get("x-oss-forbid-overwrite") == "true" and not self.oss.versioning
        if self._refused():
            return
        with self.oss.lock:
            if once and self._key() in self.oss.objects:
                self._error(409, "FileAlreadyExists")
                return
            self.oss.objects[self._key()] = (body, kept, time.time())
        self._send(200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if self._refused():
            return
        if "versioning" in query:
            status = self.oss.versioning
            inner = f"<Status>{status}</Status>" if status else ""
            self._xml(f"<VersioningConfiguration>{inner}</VersioningConfiguration>")
        elif "list-type" in query:
            self._list({name: values[0] for name, values in query.items()})
        else:
            self._object(with_body=True)

    def do_HEAD(self) -> None:
        if not self._refused():
            self._object(with_body=False)

    def do_DELETE(self) -> None:
        if not self._refused():
            self.oss.objects.pop(self._key(), None)
            self._send(204, b"", {})

    def _object(self, *, with_body: bool) -> None:
        found = self.oss.objects.get(self._key())
        if found is None:
            self._error(404, "NoSuchKey")
            return
        body, kept, changed = found
        headers = {**kept, "Last-Modified": formatdate(changed, usegmt=True)}
        self._send(200, body, headers, silent=not with_body)

    def _list(self, query: dict[str, str]) -> None:
        bucket = urlsplit(self.path).path.strip("/")
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        after = base64.b64decode(query.get("continuation-token", "")).decode() or after
        items: dict[str, str] = {}
        for full in sorted(self.oss.objects, key=str.encode):
            name = full.removeprefix(bucket + "/")
            body, _, changed = self.oss.objects[full]
            rest = name.removeprefix(prefix)
            if not full.startswith(f"{bucket}/") or not name.startswith(prefix) or name <= after:
                continue
            if "/" in rest:
                folder = prefix + rest.split("/")[0] + "/"
                if folder > after:
                    inner = f"<Prefix>{quote(folder)}</Prefix>"
                    items[folder] = f"<CommonPrefixes>{inner}</CommonPrefixes>"
                continue
            when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(changed))
            items[name] = (
                f"<Contents><Key>{quote(name)}</Key><Size>{len(body)}</Size>"
                f"<LastModified>{when}</LastModified></Contents>"
            )
        most = int(query.get("max-keys", "100"))
        names = sorted(items, key=str.encode)
        more = ""
        if len(names) > most:
            token = base64.b64encode(names[most - 1].encode()).decode()
            more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>"
        shown = "".join(items[name] for name in names[:most])
        self._xml(
            f"<ListBucketResult><EncodingType>url</EncodingType>{shown}"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}</ListBucketResult>"
        )

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    def _refused(self) -> bool:
        if self.oss.denied is not None:
            self._error(403, self.oss.denied)
        return self.oss.denied is not None

    def _error(self, status: int, code: str) -> None:
        self._xml(f"<Error><Code>{code}</Code><Message>no</Message></Error>", status, code)

    def _xml(self, text: str, status: int = 200, code: str = "") -> None:
        body = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
        packed = base64.b64encode(body).decode()
        headers = {"x-oss-err": packed} if code else {}
        silent = self.command == "HEAD"
        self._send(status, body, {"Content-Type": "application/xml", **headers}, silent=silent)

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], *, silent: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.send_header("x-oss-request-id", binascii.hexlify(self.path.encode()[:8]).decode())
        self.end_headers()
        if not silent:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base has it
        pass
