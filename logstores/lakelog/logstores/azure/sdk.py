"""Connections to accounts: one a process for equal settings, made at the first use.

A connection pool must not cross a fork, so the process is part of its key. The few
latest are kept, so that a store which is made for a single call need not connect again.
"""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.azure.credentials import SasToken, SharedKey
from lakelog.logstores.azure.wire import Wire
from lakelog.logstores.errors import LogStoreConfError, MissingExtraError

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient

    from lakelog.logstores.azure.conf import AzureSettings

_KEPT: Final = 16
_EMULATED_VERSION: Final = "2025-11-05"
"""Azurite refuses versions that are newer than itself, and SDKs are ahead of it."""
_ONE_PUT: Final = 5000 << 20
"""Bytes that Azure takes in a single request, since 2019-12-12. A create is never cut into blocks
by the SDK, whose ids are numbers: two writers' blocks of one name would mix."""
_ONE_GET: Final = 64 << 20
_POOL: Final = 64
"""Connections kept open; the default of 10 would close and reopen them under many threads."""
_PIECE: Final = 256 << 10
"""Bytes of a reply that are taken at once, as the SDK sets it where it makes the transport."""

_connections: dict[tuple[int, AzureSettings], tuple[BlobServiceClient, Wire]] = {}


def blob_service(settings: AzureSettings) -> BlobServiceClient:
    """The process's connection for these settings.

    Raises:
        MissingExtraError: azure-storage-blob is not installed.
        LogStoreConfError: the version of the protocol is unknown to it.
    """
    return _connection(settings)[0]


def wire(settings: AzureSettings) -> Wire:
    """The same connection, for GETs of whole blobs.

    Raises:
        MissingExtraError: azure-storage-blob is not installed.
        LogStoreConfError: the version of the protocol is unknown to it.
    """
    return _connection(settings)[1]


def _connection(settings: AzureSettings) -> tuple[BlobServiceClient, Wire]:
    slot = (os.getpid(), settings)
    found = _connections.get(slot)
    if found is None:
        # Two threads may both come here: the loser's connection has not been opened yet.
        found = _connections.setdefault(slot, _connected(settings))
        while len(_connections) > _KEPT:
            # Current users keep it open; urllib3 closes it after them.
            _connections.pop(next(iter(_connections)), None)
    return found


def no_retries() -> dict[str, Any]:
    """What keeps the SDK from repeating a request: a repeated create meets its own blob."""
    return {"retry_total": 0, "retry_connect": 0, "retry_read": 0, "retry_status": 0}


def _connected(settings: AzureSettings) -> tuple[BlobServiceClient, Wire]:
    try:
        from azure.storage.blob import BlobServiceClient
    except ModuleNotFoundError:
        raise MissingExtraError("azure", "Azure storage") from None
    if isinstance(settings.credential, SasToken):
        _hide_signatures()
    elif not isinstance(settings.credential, SharedKey) and settings.endpoint.startswith("http:"):
        raise LogStoreConfError(
            f"{settings.endpoint}: tokens of an identity are sent over https only. Give an https "
            "endpoint, or an account key or SAS"
        )
    options: dict[str, Any] = {
        **no_retries(),
        # A signature or token would go along to wherever a proxy's redirect leads.
        "permit_redirects": False,
        "max_single_put_size": _ONE_PUT,
        "max_single_get_size": _ONE_GET,
        "user_agent": "lakelog",
    }
    if settings.api_version:
        options["api_version"] = settings.api_version
    credential, transport = settings.credential.open(), _transport(settings)

    def connect(**more: Any) -> BlobServiceClient:
        return BlobServiceClient(
            settings.endpoint,
            credential=credential,
            transport=transport,
            **options,
            **more,
        )

    try:
        service = connect()
    except ValueError as error:
        if "api version" not in str(error).lower():
            raise
        raise LogStoreConfError(
            f"spark.lakelog.azure.apiVersion = {settings.api_version!r} is unknown to the "
            "installed azure-storage-blob"
        ) from None
    if settings.is_emulator and not settings.api_version:
        own = str(service.api_version)
        if own > _EMULATED_VERSION:
            service = connect(api_version=_EMULATED_VERSION)
    return service, Wire(service, transport, settings.endpoint)


def _transport(settings: AzureSettings) -> Any:
    """The SDK's own, on a session that keeps more connections."""
    import requests
    from azure.core.pipeline.transport import RequestsTransport
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    session = requests.Session()
    for scheme in ("http://", "https://"):
        # No retries, as on the SDK's session.
        never = Retry(total=False, redirect=False, raise_on_status=False)
        session.mount(scheme, HTTPAdapter(4, _POOL, max_retries=never))
    return RequestsTransport(
        session=session,
        connection_timeout=settings.timeout,
        read_timeout=settings.timeout,
        connection_data_block_size=_PIECE,
    )


class _SignatureFilter(logging.Filter):
    """Blacks out signatures in urllib3's debug log, which prints whole URLs."""

    pattern = re.compile(r"(?i)\bsig=[^&\s\"']+")

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if "sig=" in text.lower():
            record.msg, record.args = self.pattern.sub("sig=******", text), ()
        return True


_filter = _SignatureFilter()


def _hide_signatures() -> None:
    logging.getLogger("urllib3.connectionpool").addFilter(_filter)
