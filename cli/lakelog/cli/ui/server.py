"""The server of `lakelog ui`: loopback, read-only, and closed to who lacks the token.

Who may ask: a browser that has opened the printed address, which sets a cookie. The name of the
host is checked, so that no web page reaches the server by a name of its own that leads to
127.0.0.1; what other pages of the browser ask for is refused.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from lakelog.cli.bounded_server import BoundedHandler, BoundedServer, is_same
from lakelog.cli.ui.frame import bare_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOST: Final = "127.0.0.1"
_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""By which a browser of this host, or one behind `ssh -L`, may call the server."""
_METHODS: Final = ("GET", "HEAD")
_CONNECTIONS: Final = 64
_COOKIE_SECONDS: Final = 7 * 24 * 60 * 60
_ASSETS: Final = {
    "report.css": ("lakelog.cli.report", "text/css"),
    "report.js": ("lakelog.cli.report", "text/javascript"),
    "ui.css": ("lakelog.cli.ui", "text/css"),
    "ui.js": ("lakelog.cli.ui", "text/javascript"),
    "icon.svg": ("lakelog.cli.ui", "image/svg+xml"),
}
"""They say nothing of any table, and are given without the token."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_logger = logging.getLogger("lakelog")


class Answer(NamedTuple):
    """What is sent back."""

    body: str
    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/html"


class UiServer(BoundedServer):
    """Serves pages on 127.0.0.1, each request in a thread."""

    def __init__(self, port: int, answer: Callable[[str, Mapping[str, str]], Answer]) -> None:
        """Listen; nothing is answered before `serve_forever`.

        Args:
            port: 0 for any that is free.
            answer: gives the page of a path and the fields of its query.

        Raises:
            OSError: the port is taken.
        """
        self.answer = answer
        self._token = secrets.token_urlsafe(32)
        # Of its own, as all servers behind 127.0.0.1 share one jar of cookies.
        self.cookie: str = f"lakelog-ui-{hashlib.sha256(self._token.encode()).hexdigest()[:12]}"
        super().__init__((HOST, port), _Handler, connections=_CONNECTIONS)

    @property
    def url(self) -> str:
        """The address that opens the pages; whoever has it may see them."""
        return f"http://{HOST}:{self.server_port}/?{urlencode({'token': self._token})}"

    def is_token(self, given: str) -> bool:
        """Whether this is the token; the time that it takes does not say how much of it fits."""
        return is_same(given, self._token)

    def cookie_header(self) -> str:
        """What lets a browser in."""
        return (
            f"{self.cookie}={self._token}; HttpOnly; SameSite=Lax; Path=/; "
            f"Max-Age={_COOKIE_SECONDS}"
        )


class _Handler(BoundedHandler):
    timeout = 30.0

    def do_GET(self) -> None:  # noqa: N802 (the name that the library calls)
        try:
            url = urlsplit(self.path)
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        fields = {
            name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()
        }
        refusal = self._refusal()
        if refusal is not None:
            self._send(refusal)
        elif url.path.startswith("/assets/"):
            self._send_asset(url.path.removeprefix("/assets/"))
        elif "token" in fields:
            self._let_in(url.path, fields)
        elif not self._is_let_in():
            self._send(_REFUSED)
        else:
            self.begin_to_answer()
            self._send(self._answered(url.path, fields))

    def do_HEAD(self) -> None:  # noqa: N802 (the name that the library calls)
        self.do_GET()

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command in _METHODS:
            return True
        words = f"lakelog ui only shows, by {' and '.join(_METHODS)}.\n"
        refused = Answer(words, HTTPStatus.METHOD_NOT_ALLOWED, _TEXT)
        self._send(refused, {"Allow": ", ".join(_METHODS)})
        return False

    def refuse(self, status: HTTPStatus) -> None:
        self._send(Answer(f"{status.phrase}.\n", status, _TEXT))

    @property
    def _ui(self) -> UiServer:
        assert isinstance(self.server, UiServer)
        return self.server

    def _refusal(self) -> Answer | None:
        name = self.headers.get("Host", "").rpartition(":")
        host = name[0] if name[2].isdecimal() else "".join(name)
        if host.lower() not in _NAMES:
            words = f"lakelog ui answers to {', '.join(_NAMES)} only.\n"
            return Answer(words, HTTPStatus.MISDIRECTED_REQUEST, _TEXT)
        site, mode = (self.headers.get(f"Sec-Fetch-{each}") for each in ("Site", "Mode"))
        if site not in (None, "same-origin", "none") and mode != "navigate":
            return Answer("Other pages may not ask.\n", HTTPStatus.FORBIDDEN, _TEXT)
        return None

    def _let_in(self, path: str, fields: dict[str, str]) -> None:
        if not self._ui.is_token(fields.pop("token")):
            self._send(_REFUSED)
            return
        # On to the same page without the token, which would stay in the address bar.
        rest = f"?{urlencode(fields)}" if fields else ""
        headers = {
            "Location": quote("/" + path.lstrip("/"), safe="/%") + rest,
            "Set-Cookie": self._ui.cookie_header(),
        }
        self._send(Answer("", HTTPStatus.SEE_OTHER, _TEXT), headers)

    def _is_let_in(self) -> bool:
        # Not by SimpleCookie, which reads none after one that another server set against its rules.
        given = (each.strip().partition("=") for each in self.headers.get("Cookie", "").split(";"))
        return any(name == self._ui.cookie and self._ui.is_token(value) for name, _, value in given)

    def _answered(self, path: str, fields: Mapping[str, str]) -> Answer:
        try:
            return self._ui.answer(path, fields)
        except Exception as error:
            _logger.exception("lakelog ui can't show %s", path)
            words = f"This page can't be shown: {type(error).__name__}. The terminal says more."
            return Answer(bare_page("Error", words), HTTPStatus.INTERNAL_SERVER_ERROR)

    def _send_asset(self, name: str) -> None:
        if name not in _ASSETS:
            self._send(Answer("There is no such file.\n", HTTPStatus.NOT_FOUND, _TEXT))
            return
        package, kind = _ASSETS[name]
        text = resources.files(package).joinpath(name).read_text("utf-8")
        self._send(Answer(text, kind=kind))

    def _send(self, answer: Answer, headers: Mapping[str, str] | None = None) -> None:
        body = answer.body.encode("utf-8", "replace")
        tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
        status = answer.status
        if status is HTTPStatus.OK and self.headers.get("If-None-Match") == tag:
            status, body = HTTPStatus.NOT_MODIFIED, b""
        self.send_response(status)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", tag)
        for name, value in {**_HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


_TEXT: Final = "text/plain"
_REFUSED: Final = Answer(
    bare_page(
        "Closed",
        "This browser has not opened the address that lakelog ui printed when it began, or that "
        "was another time: each start has a token of its own. Open the address that the terminal "
        "shows once.",
    ),
    HTTPStatus.FORBIDDEN,
)
