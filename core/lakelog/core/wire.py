"""One server, by HTTP: connections that are kept, time-outs, TLS, proxies.

Only the standard library: where a catalog or a service is used, no extra has to be installed. The
environment's proxies are those that the stores use; certificates come from `SSL_CERT_FILE` and the
system, as of any Python program.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import os
import select
import ssl
import zlib
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.version import __version__
from lakelog.logstores.environment import environment_proxy
from lakelog.logstores.locations import without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT: Final = 8
"""Idle connections."""
_MOST: Final = 256 << 20
"""Bytes of a reply."""


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    retry_after: float | None
    """Seconds that it asks to wait."""
    leads_to: str | None
    """Where it says that it moved to, without secrets. No redirect is followed, so that no other
    host gets the token."""
    said_at_ms: int | None = None
    """Its clock, when it answered: milliseconds since the epoch, to the second."""


class NotSentError(Exception):
    """The request did not reach the server."""


class LostReplyError(Exception):
    """The request may have reached the server, and what it answered did not come back."""


class Wire:
    """Requests to one host. Safe for threads; a forked child makes its own connections."""

    def __init__(
        self,
        url: str,
        timeout: float,
        *,
        key: str,
        trust: ssl.SSLContext | None = None,
        is_direct_here: bool = False,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: of the server; a path in it precedes that of each request.
            timeout: seconds that connecting may take, and each wait for bytes.
            key: of the conf, for errors.
            trust: the certificates that are believed; those of the system if None.
            is_direct_here: whether no proxy is asked for a server of this host.

        Raises:
            DeltaAnalysisError: it is no HTTP URL, or holds a password or a query.
        """
        try:
            parts = urlsplit(url)
            _ = parts.port  # which may be none
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = without_secrets(url.rpartition("@")[2])
            raise DeltaAnalysisError(f"{key} must be an http or https URL, not {shown!r}.", key=key)
        if parts.username or parts.password:
            raise DeltaAnalysisError(
                f"{key} holds a user or a password ({without_secrets(url)}). Give a token instead.",
                key=key,
            )
        if parts.query or parts.fragment or not _is_sendable(parts.path):
            raise DeltaAnalysisError(
                f"{key} must be a URL without a query, its path percent-encoded.", key=key
            )
        self.url: str = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts = parts
        self._timeout = timeout
        self._trust = trust
        self._is_direct = is_direct_here and _is_loopback(parts.hostname)
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()

    def __del__(self, suppress: type[contextlib.suppress] = contextlib.suppress) -> None:
        # Made for one conf, and dropped with it: nobody is there to close it. At the end of the
        # interpreter the module's own names may be gone.
        with suppress(Exception):
            self.close()

    def __repr__(self) -> str:
        """The URL, which holds no secret."""
        return f"Wire({self.url})"

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: float | None = None,
    ) -> Reply:
        """Make one request, once.

        Args:
            method: of HTTP.
            path: after the URL's own; percent-encoded, with its query.
            body: None for none.
            headers: beside those that HTTP needs.
            timeout: seconds that each wait for bytes may take, once there is a connection; as for
                connecting if None.

        Raises:
            NotSentError: nothing reached the server.
            LostReplyError: it may have.
        """
        connection = self._connected()
        target = f"{self._parts.path.rstrip('/')}{path}"
        if self._proxy() is not None and self._parts.scheme == "http":
            target = f"http://{self._parts.netloc}{target}"
        sent = {"User-Agent": f"lakelog/{__version__}", "Accept": "application/json", **headers}
        if self._proxy() is not None and self._parts.scheme == "http":
            sent |= self._proxy_login()
        connection.sock.settimeout(self._timeout if timeout is None else timeout)
        try:
            connection.request(method, target, body, sent)
            answer = connection.getresponse()
            text = answer.read(_MOST)
            missing = answer.length  # `read` with a size does not mind an end that comes early
        except BaseException as exc:
            connection.close()
            if isinstance(exc, OSError | http.client.HTTPException):
                raise LostReplyError(f"{type(exc).__name__}: {exc}") from exc
            raise
        if missing:
            connection.close()
            raise LostReplyError(f"{missing} bytes of the reply are missing")
        if answer.will_close or self._process != os.getpid():
            connection.close()
        else:
            self._keep(connection)
        # Nothing but plain bytes was asked for; some proxies compress all the same.
        packing = (answer.getheader("Content-Encoding") or "").strip().lower()
        if text and packing in ("gzip", "x-gzip"):  # a 204 has nothing to unpack
            text = _unpacked(text)
        leads_to = answer.getheader("Location")
        return Reply(
            answer.status,
            text,
            _seconds(answer.getheader("Retry-After")),
            None if leads_to is None else without_secrets(leads_to.partition("?")[0]),
            _milliseconds(answer.getheader("Date")),
        )

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()

    def _connected(self) -> http.client.HTTPConnection:
        if self._process != os.getpid():
            # The parent's sockets: closing them here ends nothing there.
            self._idle, self._process = [], os.getpid()
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread's
                kept = self._idle.pop()
                if _is_open(kept):
                    return kept
                kept.close()
        made: http.client.HTTPConnection | None = None
        try:
            made = self._made()
            made.connect()
        except (OSError, http.client.HTTPException, ValueError) as exc:
            if made is not None:
                made.close()
            if type(exc) is ValueError:  # which shows a part of the URL, of a password perhaps
                raise NotSentError("the environment's proxy is no URL") from None
            raise NotSentError(f"{type(exc).__name__}: {exc}") from exc
        return made

    def _made(self) -> http.client.HTTPConnection:
        parts, proxy = self._parts, self._proxy()
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "http":
            if proxy is not None:
                host, port = proxy.hostname or "", proxy.port or 80
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        context = self._trust or ssl.create_default_context()
        if proxy is None:
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=context)
        made = http.client.HTTPSConnection(
            proxy.hostname or "", proxy.port or 80, timeout=self._timeout, context=context
        )
        made.set_tunnel(host, port or 443, headers=self._proxy_login())
        return made

    def _proxy(self) -> SplitResult | None:
        found = None if self._is_direct else environment_proxy(self.url)
        return None if found is None else urlsplit(found)

    def _proxy_login(self) -> dict[str, str]:
        proxy = self._proxy()
        if proxy is None or proxy.username is None:
            return {}
        login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        return {"Proxy-Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        if len(self._idle) < _KEPT:
            self._idle.append(connection)
        else:
            connection.close()


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has not closed an idle connection: then there is nothing to read."""
    if connection.sock is None:
        return False
    try:
        return not select.select([connection.sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False


def _unpacked(data: bytes) -> bytes:
    """What gzip has packed.

    Raises:
        LostReplyError: it is damaged, or too large.
    """
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpack.decompress(data, _MOST)
    except zlib.error as exc:
        raise LostReplyError(f"the reply is not what gzip has packed: {exc}") from exc
    if not unpack.eof:
        why = "it is too large" if len(found) >= _MOST else "a part of it is missing"
        raise LostReplyError(f"the packed reply can't be used: {why}")
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_sendable(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _milliseconds(date: str | None) -> int | None:
    try:
        found = None if date is None else parsedate_to_datetime(date)
    except ValueError:
        return None
    # One without a zone is no date of HTTP.
    return None if found is None or found.tzinfo is None else int(found.timestamp() * 1000)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
