"""An SDK client's requests on connections of our own, and its GETs without its machinery.

Validating, routing and parsing one `get_object` costs the SDK twice what sending it costs, and a
log of a thousand commits pays that a thousand times. What makes such a request right is the SDK's
all the same: once a bucket it builds one, up to the moment of sending, and every GET after it is
that request with another key, signed by the SDK's signer, sent by its HTTP session and, where it is
refused, read by its parser. A request that is anything but SigV4 over headers is left to the SDK.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

_DRAFT_KEY: Final = "lakelog"
_SIGNED: Final = "s3v4"
_OF_ONE_REQUEST: Final = (
    "authorization",
    "x-amz-date",
    "x-amz-security-token",
    "x-amz-content-sha256",
    "amz-sdk-",
)
"""How the headers begin that belong to the request they came with."""
_ASKED: Final = 1 << 20
"""Bytes of a body from which on a service is asked whether it wants them, before they are sent."""
_OF_ONE_CALL: Final = ("request_credentials", "identity_cache")
"""What tells that other credentials than the client's sign."""


class _Drafted(Exception):  # noqa: N818  # carries a request, is not an error
    def __init__(self, request: Any) -> None:
        super().__init__("a signed request")
        self.request = request


@dataclass(frozen=True, slots=True)
class _Draft:
    """What all GETs of a bucket have in common."""

    base: str
    """URL, to which a quoted key is appended."""
    headers: dict[str, str]
    signer: Any
    """botocore's `RequestSigner`: it has the credentials, and renews them."""
    signing_name: str
    region: str


class _Drafting(threading.local):
    """Whether this thread has a request built only to look at it, and how that is signed."""

    now = False
    signing: dict[str, Any] | None = None

    def begin(self) -> None:
        self.now, self.signing = True, None


class Wire:
    """One SDK client and its connections, shared by the threads of a process."""

    def __init__(self, client: Any, verify: str | bool | None) -> None:
        """Take over the sending from a client; nothing is connected yet.

        Args:
            client: of S3, by boto3; its requests go over these connections from now on.
            verify: the file of certificates in force, `None` for those of the SDK.
        """
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        self.client = client
        checked: Any = os.environ.get("REQUESTS_CA_BUNDLE", True) if verify is None else verify
        config = client.meta.config
        proxies = config.proxies
        if proxies is None:
            proxies = get_environ_proxies(client.meta.endpoint_url)
        self._http = URLLib3Session(
            verify=checked,
            proxies=proxies,
            timeout=(config.connect_timeout, config.read_timeout),
            max_pool_connections=config.max_pool_connections,
            socket_options=_socket_options(),
        )
        self._drafting = _Drafting()
        self._drafts: dict[str, _Draft | None] = {}
        events = client.meta.events
        events.register("before-sign.s3", self._before_sign)
        events.register("before-send.s3", self._before_send)

    def get(self, key: str, always: Mapping[str, Any]) -> dict[str, Any] | None:
        """Begin one GET of an object.

        Args:
            key: of the object.
            always: `Bucket`, and what else `get_object` takes for each object of this bucket.

        Returns:
            Of what `get_object` returns: `Body`, and `ContentLength` and `ETag`, if sent; without
            an `ETag` the `ResponseMetadata`. `None`, with nothing sent, where only the SDK can
            send this.

        Raises:
            ClientError: the service refused, as of `get_object`.
            BotoCoreError: nothing was sent, or no reply came.
        """
        bucket = always["Bucket"]
        if bucket not in self._drafts:
            self._drafts[bucket] = self._draft(always)
        draft = self._drafts[bucket]
        if draft is None or not key:
            return None
        response = self._http.send(_signed(draft, key))
        if response.status_code >= 300:
            raise self._refusal(response)
        return _reply(response)

    def _draft(self, always: Mapping[str, Any]) -> _Draft | None:
        drafting = self._drafting
        drafting.begin()
        request: Any = None
        try:
            self.client.get_object(Key=_DRAFT_KEY, **always)
        except _Drafted as drafted:
            request = drafted.request
        finally:
            drafting.now = False
        signing = drafting.signing
        if request is None or signing is None or not request.url.endswith(f"/{_DRAFT_KEY}"):
            return None
        headers = {
            name: value.decode() if isinstance(value, bytes) else str(value)
            for name, value in request.headers.items()
            if not name.lower().startswith(_OF_ONE_REQUEST)
        }
        return _Draft(request.url.removesuffix(_DRAFT_KEY), headers, **signing)

    def _before_sign(
        self,
        request: Any,
        signing_name: str,
        region_name: str,
        signature_version: Any,
        request_signer: Any,
        **_: Any,
    ) -> None:
        context = request.context.get("signing", {})
        usual = signature_version == _SIGNED and not any(context.get(k) for k in _OF_ONE_CALL)
        if self._drafting.now and usual:
            self._drafting.signing = {
                "signer": request_signer,
                "signing_name": context.get("signing_name") or signing_name,
                "region": context.get("region") or region_name,
            }

    def _before_send(self, request: Any, **_: Any) -> Any:
        if self._drafting.now:
            _stop(request)
        _without_asking(request)
        return self._http.send(request)

    def _refusal(self, response: Any) -> Exception:
        """The SDK's exception for a reply that reports an error."""
        from botocore.exceptions import ClientError
        from botocore.parsers import create_parser

        service = self.client.meta.service_model
        shape = service.operation_model("GetObject").output_shape
        parser = create_parser(service.metadata["protocol"])
        parts = {
            "status_code": response.status_code,
            "headers": response.headers,
            "body": response.content,
            "context": {"operation_name": "GetObject"},
        }
        refusal: Exception = ClientError(parser.parse(parts, shape), "GetObject")
        return refusal


def _signed(draft: _Draft, key: str) -> Any:
    from botocore.awsrequest import AWSRequest

    # As botocore quotes the keys of S3.
    url = draft.base + quote(key, safe="/-._~")
    request = AWSRequest("GET", url, headers=dict(draft.headers))
    auth = draft.signer.get_auth_instance(draft.signing_name, draft.region, _SIGNED)
    auth.add_auth(request)
    prepared = request.prepare()
    prepared.stream_output = True  # the reply is measured before its body is read
    return prepared


def _without_asking(request: Any) -> None:
    """Let a small body follow its headers at once.

    The SDK first asks whether the body is welcome (`Expect: 100-continue`, which no signature
    covers), and waits a round trip for the answer: every commit's second one.
    """
    headers = request.headers
    if int(headers.get("Content-Length") or _ASKED) < _ASKED:
        headers.pop("Expect", None)


def _reply(response: Any) -> dict[str, Any]:
    from botocore.response import StreamingBody

    headers = response.headers
    length = headers.get("content-length")
    reply: dict[str, Any] = {"Body": StreamingBody(response.raw, length)}
    if length is not None:
        reply["ContentLength"] = length
    if "etag" in headers:
        reply["ETag"] = headers["etag"]
    else:  # of interest only where it is not S3's
        named = {name.lower(): value for name, value in headers.items()}
        reply["ResponseMetadata"] = {"HTTPHeaders": named}
    return reply


def _stop(request: Any) -> NoReturn:
    raise _Drafted(request)


def _socket_options() -> list[tuple[int, int, int]]:
    import socket

    # Those of the SDK, and keepalive, which the conf of every client asks for.
    return [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    ]
