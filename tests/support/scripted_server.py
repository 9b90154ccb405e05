"""An HTTP server in this process that says what a test tells it to, and keeps what it heard."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Heard:
    """A request."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class ScriptedServer:
    """What it says to every request, until it is told otherwise."""

    url: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    heard: list[Heard] = field(default_factory=list)

    def say(self, status: int, body: object, **headers: str) -> None:
        """Answer so from now on. What is no bytes is sent as JSON."""
        self.status = status
        raw = isinstance(body, bytes)
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "text/html" if raw else "application/json; charset=UTF-8"
        self.headers = {"Content-Type": kind}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}


@contextlib.contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """A server on a free port of 127.0.0.1, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two segments, and the second would wait for a delayed acknowledgement.
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.heard.append(Heard(self.requestline, dict(self.headers), body))
            # A client goes on once it has the headers, and may have another answer set by then.
            status, headers, answer = script.status, script.headers, script.body
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815  # as the base calls

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base has it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script = ScriptedServer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
