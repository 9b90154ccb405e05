"""Requests to a catalog's API: what is repeated, what an answer means, and the token."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from lakelog.core.catalogs.contract import UnansweredError
from lakelog.core.catalogs.unity.tokens import token_source
from lakelog.core.errors import CatalogError, DeltaAnalysisError
from lakelog.core.wire import LostReplyError, NotSentError, Reply, Wire
from lakelog.logstores.limits import seconds_left

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.catalogs.catalog_conf import CatalogConf
    from lakelog.core.clock import Clock

LISTING_API: Final = "/api/2.1/unity-catalog"
"""Unity Catalog's own, of which the listing of tables is asked."""
API: Final = f"{LISTING_API}/delta/v1"
UNNAMED: Final = "Error"
"""The type of an error of the API's that has none."""
_TRIES: Final = 6
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
"""Seconds."""


class RefusedError(CatalogError):
    """The server answered that it will not.

    Fields: `status`, and `type`, its own word for the reason.
    """


class Requests:
    """The API of one server, with its token. Safe for threads."""

    def __init__(self, conf: CatalogConf, clock: Clock) -> None:
        """Ask nothing yet.

        Raises:
            DeltaAnalysisError: the conf lacks the server's URL, or says two things.
        """
        self._name = conf.name
        self._key = conf.spark_key("uri")
        uri = conf.get("uri")
        if uri is None:
            raise DeltaAnalysisError(
                f"the catalog {conf.name} has no server: set {self._key}.", key=self._key
            )
        # As a user of the JVM may have it: with or without the API's path, or a part of it.
        bare = uri.rstrip("/").removesuffix(API).removesuffix(LISTING_API)
        self._wire = Wire(bare, conf.timeout, key=self._key)
        self._tokens = token_source(conf, clock)
        self._clock = clock
        self.is_ahead_by_ms: int = 0
        """By how much the server's clock is ahead of ours, by its last answer; less than 0 where it
        is behind."""

    def __repr__(self) -> str:
        """The server's URL."""
        return f"Requests({self._wire.url})"

    @property
    def url(self) -> str:
        """The server's."""
        return self._wire.url

    def get(self, path: str, query: Mapping[str, str] | None = None, *, api: str = API) -> Any:
        """Ask; repeated where the answer is lost, or says that the server is busy.

        Args:
            path: after the API's.
            query: its parameters.
            api: another one's path.

        Returns:
            The JSON of the answer; None where it has none.

        Raises:
            RefusedError: the server refused.
            CatalogError: it does not answer.
        """
        text = f"{path}?{urlencode(query)}" if query else path
        return self._asked("GET", text, None, may_repeat=True, api=api)

    def post(self, path: str, body: object, *, may_repeat: bool = False) -> Any:
        """Have something done.

        Args:
            path: after the API's.
            body: as JSON has it.
            may_repeat: whether doing it twice is the same as once.

        Raises:
            RefusedError: the server refused; nothing was done.
            UnansweredError: whether it was done is not known.
            CatalogError: the request did not reach the server; nothing was done.
        """
        return self._asked("POST", path, json.dumps(body).encode(), may_repeat=may_repeat)

    def delete(self, path: str) -> None:
        """Remove what a path names; never repeated.

        Args:
            path: after the API's.

        Raises:
            RefusedError: the server refused; nothing was done.
            UnansweredError: whether it was done is not known.
            CatalogError: the request did not reach the server; nothing was done.
        """
        self._asked("DELETE", path, None, may_repeat=False)

    def close(self) -> None:
        """Release the connections."""
        self._wire.close()

    def _asked(
        self, method: str, path: str, body: bytes | None, *, may_repeat: bool, api: str = API
    ) -> Any:
        began, renewed = self._clock.monotonic(), False
        left = seconds_left()
        lost, why = False, ""
        for number in range(1, _TRIES + 1):
            reply: Reply | None = None
            token: str | None = None
            try:
                token = self._tokens.token()
                reply = self._wire.send(method, api + path, body, self._headers(token, body))
                why = f"it answered {reply.status}: {_said(reply, token)[1]}"
            except NotSentError as exc:
                lost, why = False, str(exc)
            except LostReplyError as exc:
                lost, why = True, str(exc)
            if reply is not None:
                if reply.said_at_ms is not None:
                    self.is_ahead_by_ms = reply.said_at_ms - self._clock.now_ms()
                if reply.status < 300 and _is_json(reply):
                    return json.loads(reply.body) if reply.body else None
                if reply.status == 401 and not renewed and self._tokens.forget():
                    renewed = True  # it was refused before anything was done
                    continue
                kind, message = _said(reply, token)
                # Refused before it was looked at; other than a full table, which is no passing one.
                busy = reply.status == 429 and "ResourceExhausted" not in kind
                # What is no JSON was cut off, or some other server answers: it may have been done.
                # By 408 a proxy says that it has waited long enough.
                lost = reply.status >= 500 or reply.status < 300 or reply.status == 408
                if not busy and not lost:
                    raise self._refusal(reply, kind, message, token)
            wait = self._wait(number, None if reply is None else reply.retry_after)
            took = self._clock.monotonic() - began
            if number == _TRIES or took + wait > left or (lost and not may_repeat):
                break
            self._clock.sleep(wait)
        text = f"the catalog {self._name} ({self._wire.url}) did not answer {method} {path}: {why}"
        if lost and not may_repeat:
            raise UnansweredError(text)
        text += "." if may_repeat else ". Nothing was done."
        raise CatalogError(
            f"{text} Check {self._key} and that the server runs, and try again.",
            key=self._key,
        )

    def _headers(self, token: str | None, body: bytes | None) -> dict[str, str]:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise CatalogError(
                f"the token of the catalog {self._name} is none: it has line breaks, or characters "
                "other than those of ASCII. Nothing was sent.",
                key=self._key,
            )
        found = {} if token is None else {"Authorization": f"Bearer {token}"}
        return found if body is None else {**found, "Content-Type": "application/json"}

    def _wait(self, number: int, asked: float | None) -> float:
        if asked is not None:
            return min(asked, _LONGEST_WAIT)
        most = min(_FIRST_WAIT * 2 ** (number - 1), _LONGEST_WAIT)
        return random.uniform(0, most)  # noqa: S311, RUF100  # no secret

    def _refusal(self, reply: Reply, kind: str, message: str, token: str | None) -> RefusedError:
        status, advice = reply.status, ""
        if reply.leads_to is not None:
            advice = f" It leads to {reply.leads_to}: set {self._key} to where the API is."
        elif status == 401:
            of = self._key.removesuffix(".uri")
            advice = f" Check the token of {of}."
            if token is None:
                advice = (
                    f" No token was sent: set {of}.auth.token; where a Spark Connect server hides "
                    "it, in the file that LAKELOG_CONF_FILE names."
                )
        elif status == 403:
            advice = " Ask the catalog's owner for the privilege."
        return RefusedError(
            f"the catalog {self._name} ({self._wire.url}) refused: {message} ({status} {kind})."
            f"{advice}",
            status=status,
            type=kind,
            reason=message,
        )


def _said(reply: Reply, token: str | None) -> tuple[str, str]:
    """The type and the message of an error, without the token: some servers repeat a request."""
    try:
        error = json.loads(reply.body)["error"]
        kind = str(error.get("type") or UNNAMED).removesuffix("Exception")
        text = str(error["message"]).rstrip(".")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        kind, text = "", reply.body.decode(errors="replace") or "nothing more"
    if token:
        text = text.replace(token, "******")
    return kind, text if kind else text[:200]


def _is_json(reply: Reply) -> bool:
    """Whether there is nothing, or an object of JSON: all that the API answers."""
    try:
        return not reply.body or isinstance(json.loads(reply.body), dict)
    except (ValueError, RecursionError):
        return False
