"""A conditional put as the bytes that go over the wire, for races between sockets."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from lakelog.logstores.object_store.store import TOKEN_NAME, PreparedRequest
from lakelog.logstores.s3.sdk import new_sdk_client

if TYPE_CHECKING:
    from lakelog.logstores.s3.conf import S3Settings

_OURS = ("expect", "connection", "host", "transfer-encoding")


class _Caught(Exception):  # noqa: N818  # carries a request, is not an error
    def __init__(self, request: Any) -> None:
        super().__init__("a signed request")
        self.request = request


def prepared_put(
    settings: S3Settings,
    storing: dict[str, Any],
    key: str,
    body: bytes,
    token: str,
    *,
    signs_body: bool = True,
) -> PreparedRequest:
    """Let the SDK sign a put with `If-None-Match: *`, and keep it from sending it.

    The request is good for the time that the service allows a clock to differ (15 minutes).
    """
    request = _signed(
        settings,
        signs_body,
        Key=key, Body=body, IfNoneMatch="*", Metadata={TOKEN_NAME: token}, **storing,
    )  # fmt: skip
    parts = urlsplit(request.url)
    tls = parts.scheme == "https"
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = {
        name: value.decode() if isinstance(value, bytes) else str(value)
        for name, value in request.headers.items()
        if name.lower() not in _OURS
    }
    lines = [f"PUT {target} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Connection: close", "", ""]
    port = parts.port or (443 if tls else 80)
    return PreparedRequest(parts.hostname or "", port, tls, "\r\n".join(lines).encode() + body)


def _signed(settings: S3Settings, signs_body: bool, /, **put: Any) -> Any:
    try:
        _catching_client(settings, signs_body).put_object(**put)
    except _Caught as caught:
        return caught.request
    raise AssertionError("the SDK did not ask whether to send")


@lru_cache(maxsize=4)
def _catching_client(settings: S3Settings, signs_body: bool) -> Any:
    client = new_sdk_client(settings, signs_body=signs_body)
    client.meta.events.register("before-send.s3", _catch)
    return client


def _catch(request: Any, **_: Any) -> NoReturn:
    raise _Caught(request)
