"""GETs of whole blobs by the SDK's signature and transport, without the rest of its machinery.

A `download_blob` passes sixteen policies, and its reply as many on the way back. A log of a
thousand commits pays that a thousand times, and so does each commit that looks for a newer version.
What makes such a request right is the SDK's all the same: its policy signs, and its transport
sends, on the same connections. What is refused is explained as the SDK's own refusals are.
"""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from lakelog.logstores.limits import check_declared_length
from lakelog.logstores.object_store.client import TryAgainError

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient

_SCOPE: Final = "https://storage.azure.com/.default"
_UNAUTHORIZED: Final = 401


class Wire:
    """One service client of the SDK and its connections, shared by the threads of a process."""

    def __init__(self, service: BlobServiceClient, transport: Any, endpoint: str) -> None:
        """Take over credential and version; nothing is sent.

        Args:
            service: of the SDK.
            transport: that of the service.
            endpoint: URL, to which container and key are appended.
        """
        self._transport = transport
        self._endpoint = endpoint
        self._version = str(service.api_version)
        self._policy = _policy(service.credential)

    def get(self, container: str, key: str, where: str) -> bytes | None:
        """The bytes of a blob.

        Args:
            container: its name.
            key: the blob's.
            where: the blob, for messages.

        Returns:
            `None`, where only the SDK can tell: a credential of another kind, or a sign-in that
            has to be repeated with what the service asks for.

        Raises:
            HttpResponseError: the service refused.
            FileTooLargeError: it is more than the caller allows.
            TryAgainError: the reply is not the whole blob.
            AzureError: nothing was sent, or no reply came.
        """
        if self._policy is None:
            return None
        from azure.core.exceptions import HttpResponseError
        from azure.core.pipeline import PipelineContext, PipelineRequest
        from azure.core.pipeline.transport import HttpRequest

        # As the SDK quotes the names of blobs.
        request = HttpRequest("GET", f"{self._endpoint}/{container}/{quote(key, safe='~/')}")
        request.headers.update(
            {
                "Accept": "application/xml",
                "Accept-Encoding": "identity",
                "User-Agent": "lakelog",
                "x-ms-date": formatdate(usegmt=True),
                "x-ms-version": self._version,
            }
        )
        signed: Any = PipelineRequest(request, PipelineContext(self._transport))
        self._policy.on_request(signed)
        response = self._transport.send(request, stream=True)
        headers, reply = response.headers, response.internal_response
        if response.status_code == _UNAUTHORIZED and hasattr(self._policy, "on_challenge"):
            reply.close()
            return None
        if response.status_code >= 300:
            text = reply.content.decode("utf-8", "replace")
            raise HttpResponseError(message=text, response=response)
        length = headers.get("Content-Length")
        check_declared_length(length)
        data = bytes(reply.content)
        if "ETag" not in headers or length != str(len(data)):
            # A page of a proxy has no ETag.
            raise TryAgainError(f"{where}: the reply is not the whole blob", may_have_landed=False)
        return data


def _policy(credential: Any) -> Any:
    """What signs requests with a credential of the SDK; `None` for one of another kind."""
    from azure.core.credentials import AzureSasCredential
    from azure.core.pipeline.policies import (
        AzureSasCredentialPolicy,
        BearerTokenCredentialPolicy,
        SansIOHTTPPolicy,
    )

    if isinstance(credential, SansIOHTTPPolicy):  # an account's key
        return credential
    if isinstance(credential, AzureSasCredential):
        return AzureSasCredentialPolicy(credential)
    if hasattr(credential, "get_token"):
        return BearerTokenCredentialPolicy(credential, _SCOPE)
    return None
