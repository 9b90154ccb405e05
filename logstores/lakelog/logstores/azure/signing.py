"""A conditional create as bytes for a socket, signed by the SDK itself.

The SDK makes the request, with whatever credential there is, and hands it to a transport that sends
nothing and keeps it. So there is no second implementation of Azure's signatures here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakelog.logstores.azure.sdk import blob_service, no_retries
from lakelog.logstores.object_store.client import TOKEN_NAME, PreparedRequest

if TYPE_CHECKING:
    from lakelog.logstores.azure.conf import AzureSettings


class _KeptError(Exception):
    """The request has reached the network."""

    def __init__(self, request: Any) -> None:
        super().__init__("kept, not sent")
        self.request = request


def prepared_put(
    settings: AzureSettings, container: str, key: str, body: bytes, token: str
) -> PreparedRequest | None:
    """The bytes of `AzureClient.create`; good for the 15 minutes that Azure allows a date."""
    from azure.core.pipeline.transport import RequestsTransport
    from azure.storage.blob import BlobClient

    class Keeper(RequestsTransport):  # type: ignore[misc]  # untyped where mypy looks
        def send(self, request: Any, **_: Any) -> Any:
            raise _KeptError(request)

    service = blob_service(settings)
    blob = BlobClient(
        settings.endpoint,
        container,
        key,
        credential=settings.credential.open(),
        api_version=service.api_version,
        transport=Keeper(),
        **no_retries(),
    )
    try:
        blob.upload_blob(body, length=len(body), overwrite=False, metadata={TOKEN_NAME: token})
    except _KeptError as kept:
        return _as_bytes(kept.request, body)
    return None


def _as_bytes(request: Any, body: bytes) -> PreparedRequest:
    parts = urlsplit(request.url)
    tls = parts.scheme == "https"
    port = parts.port or (443 if tls else 80)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers |= {"host": parts.netloc, "content-length": str(len(body))}
    lines = [f"{request.method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return PreparedRequest(parts.hostname or "", port, tls, head.encode("ascii") + body)
