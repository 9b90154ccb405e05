"""The bearer token of a catalog: from the conf, a file, a command, or an OAuth client's login.

Spark's keys are read as Unity Catalog's own connector reads them: `auth.type` with `auth.token`, or
with `auth.oauth.uri`, `.clientId`, `.clientSecret` and `.scope`; the older `token` likewise. No
token is in a message, a `repr` or a pickle.
"""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode

from lakelog.core.errors import CatalogError, DeltaAnalysisError
from lakelog.core.forks import lock_of
from lakelog.core.wire import LostReplyError, NotSentError, Wire

if TYPE_CHECKING:
    from lakelog.core.catalogs.catalog_conf import CatalogConf
    from lakelog.core.clock import Clock

_EARLY: Final = 30.0
"""Seconds before its end from which on a token is not used."""


class TokenSource(Protocol):
    """Gives a token for each request."""

    def token(self) -> str | None:
        """The token; None for requests without one.

        Raises:
            CatalogError: it can't be had.
        """
        ...

    def forget(self) -> bool:
        """Get another one next time; false where there is no other."""
        ...


def token_source(conf: CatalogConf, clock: Clock) -> TokenSource:
    """What a catalog's conf says.

    Raises:
        DeltaAnalysisError: it says two things, or half of one.
    """
    oauth = {name: conf.get(f"auth.oauth.{name}") for name in ("uri", "clientId", "clientSecret")}
    kind = conf.get("auth.type") or ("oauth" if any(oauth.values()) else "static")
    given = {
        key: value
        for key, value in {
            conf.spark_key("auth.token"): conf.get("auth.token"),
            conf.spark_key("token"): conf.get("token"),
            conf.own_key("token.file"): conf.own("token.file"),
            conf.own_key("token.command"): conf.own("token.command"),
        }.items()
        if value
    }
    if kind == "oauth":
        missing = [
            conf.spark_key(f"auth.oauth.{name}") for name, value in oauth.items() if not value
        ]
        if missing:
            raise DeltaAnalysisError(
                f"{conf.spark_key('auth.type')} = oauth needs {', '.join(missing)} as well.",
                key=missing[0],
            )
        return _OAuth(conf, clock)
    if kind != "static":
        raise DeltaAnalysisError(
            f"{conf.spark_key('auth.type')} = {kind} is not known here: static and oauth are. A "
            "Java class can't be loaded.",
            key=conf.spark_key("auth.type"),
        )
    values = set(given.values())
    if len(values) > 1:
        raise DeltaAnalysisError(
            f"the catalog {conf.name} has more than one token: {', '.join(given)}. Keep one.",
            key=next(iter(given)),
        )
    if path := conf.own("token.file"):
        return _File(Path(path), conf.own_key("token.file"))
    if command := conf.own("token.command"):
        return _Command(command, conf.own_key("token.command"))
    return _Fixed(values.pop() if values else None)


class _Fixed:
    def __init__(self, token: str | None) -> None:
        self._token = token

    def token(self) -> str | None:
        return self._token

    def forget(self) -> bool:
        return False


class _File:
    """Read for each request: what renews it writes it anew."""

    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key = path, key

    def token(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError) as exc:
            raise CatalogError(
                f"the token in the file {self._path}, which {self._key} names, can't be read: "
                f"{type(exc).__name__}.",
                key=self._key,
            ) from None

    def forget(self) -> bool:
        return True


class _Command:
    """Run once, and again where its token was refused."""

    def __init__(self, command: str, key: str) -> None:
        self._command, self._key = command, key
        self._token: str | None = None
        self._lock = lock_of(self)

    def token(self) -> str | None:
        with self._lock:
            if self._token is None:
                self._token = self._run()
            return self._token

    def forget(self) -> bool:
        self._token = None
        return True

    def _run(self) -> str:
        try:
            words = shlex.split(self._command)
        except ValueError:
            raise CatalogError(
                f"the command of {self._key} has a quote that does not end.", key=self._key
            ) from None
        program = words[0]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            # Neither its arguments nor its output: they may be secrets.
            status = getattr(exc, "returncode", None)
            why = type(exc).__name__ if status is None else f"it ended with status {status}"
            raise CatalogError(
                f"the command of {self._key} ({program} …) gave no token: {why}.", key=self._key
            ) from None
        token = done.stdout.strip()
        if not token:
            raise CatalogError(
                f"the command of {self._key} ({program} …) printed no token.", key=self._key
            )
        return token


@dataclass(slots=True)
class _Given:
    token: str
    ends: float


class _OAuth:
    """The client credentials grant, as Unity Catalog's connector asks for it."""

    def __init__(self, conf: CatalogConf, clock: Clock) -> None:
        self._conf, self._clock = conf, clock
        self._key = conf.spark_key("auth.oauth.uri")
        self._wire = Wire(conf.get("auth.oauth.uri") or "", conf.timeout, key=self._key)
        self._given: _Given | None = None
        self._lock = lock_of(self)

    def token(self) -> str | None:
        with self._lock:
            if self._given is None or self._clock.monotonic() >= self._given.ends:
                self._given = self._ask()
            return self._given.token

    def forget(self) -> bool:
        self._given = None
        return True

    def _ask(self) -> _Given:
        client, secret = (
            self._conf.get("auth.oauth.clientId"),
            self._conf.get("auth.oauth.clientSecret"),
        )
        login = base64.b64encode(f"{client}:{secret}".encode()).decode()
        scope = self._conf.get("auth.oauth.scope") or "all-apis"
        form = urlencode({"grant_type": "client_credentials", "scope": scope}).encode()
        headers = {
            "Authorization": f"Basic {login}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        began = self._clock.monotonic()
        try:
            reply = self._wire.send("POST", "", form, headers)
        except (NotSentError, LostReplyError) as exc:
            # Of the catalog's own request: it is made again.
            raise NotSentError(f"{self._wire.url} ({self._key}) does not answer: {exc}") from None
        if reply.status == 429 or reply.status >= 500:
            raise NotSentError(f"{self._wire.url} ({self._key}) answered {reply.status}")
        try:
            value = json.loads(reply.body)
            token, lasts = _word(value["access_token"]), float(value.get("expires_in") or 300)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CatalogError(
                f"{self._wire.url} ({self._key}) gave no token: it answered {reply.status}. Check "
                "the client's id and secret.",
                key=self._key,
            ) from None
        return _Given(token, began + max(lasts - _EARLY, lasts / 2))


def _word(text: str) -> str:
    found = text.strip()
    if not found:
        raise ValueError
    return found
