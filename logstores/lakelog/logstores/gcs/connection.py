"""One connection to Google Cloud Storage a process and settings: credentials, session, SDK client.

A token is good for an hour and a connection for many requests, so all stores of a process share
them. They last as long as the process; one that was forked makes its own.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.errors import MissingExtraError
from lakelog.logstores.gcs.credentials import credentials_of
from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from lakelog.logstores.gcs.conf import GCSSettings

_POOL: Final = 64
"""Connections kept open; the default of 10 would close and reopen them under many threads."""
_UNUSED_PROJECT: Final = "lakelog"
"""The SDK wants a project, for requests that list or make buckets; none is made here."""


class GCSConnection:
    """What requests need. Safe for use by several threads.

    Attributes:
        settings: what it was made from.
        session: of google-auth: puts the token on each request, renews it, repeats nothing else.
        auth_request: asks for tokens, without a token on its own requests.
        client: of google-cloud-storage, on that session.
    """

    def __init__(self, settings: GCSSettings) -> None:
        """Find the credentials; send nothing.

        Raises:
            MissingExtraError: the extra `gcs` is not installed.
            LogStoreConfError: there are no credentials, or bad ones.
        """
        try:
            import requests
            from google.auth.credentials import AnonymousCredentials
            from google.auth.transport.requests import AuthorizedSession, Request
            from google.cloud import storage
            from requests.adapters import HTTPAdapter
        except ImportError as error:
            raise MissingExtraError("gcs", "Google Cloud Storage") from error

        self.settings = settings
        tokens = requests.Session()
        self.auth_request: Any = Request(tokens)
        credentials = credentials_of(settings)
        self.session: Any = AuthorizedSession(
            credentials,
            auth_request=self.auth_request,
            # Without credentials there is nothing to renew, and the source of a 401 has to be
            # visible.
            refresh_status_codes=() if isinstance(credentials, AnonymousCredentials) else (401,),
        )
        for scheme in ("http://", "https://"):
            adapter = HTTPAdapter(pool_connections=4, pool_maxsize=_POOL, max_retries=0)
            self.session.mount(scheme, adapter)
        if settings.proxy:
            self.session.proxies = {"http": settings.proxy, "https": settings.proxy}
            # Else the environment's proxy, or its exceptions, would win over the conf's.
            self.session.trust_env = tokens.trust_env = False
            # Not for plain HTTP: a machine's own metadata server is asked directly.
            tokens.proxies = {"https": settings.proxy}
        self.client: Any = storage.Client(
            settings.project or _UNUSED_PROJECT,
            credentials=self.session.credentials,
            _http=self.session,
            client_options={"api_endpoint": settings.root_url},
        )
        # A thread of newer SDKs looks at each bucket, traced or not: a request that
        # was not asked for, and a permission (storage.buckets.get) that a table does not need.
        if hasattr(self.client, "_bucket_metadata_cache"):
            self.client._bucket_metadata_cache = None

    def bucket(self, name: str) -> Any:
        """The SDK's bucket, with the project that pays for its requests; no request is made."""
        return self.client.bucket(name, user_project=self.settings.payer(name))


_lock = threading.Lock()
_connections: dict[tuple[int, GCSSettings], GCSConnection] = {}


def connection_of(settings: GCSSettings) -> GCSConnection:
    """The process's connection for settings, made at the first call.

    Raises:
        MissingExtraError: the extra `gcs` is not installed.
        LogStoreConfError: there are no credentials, or bad ones.
    """
    key = (os.getpid(), settings)
    found = _connections.get(key)
    if found is None:
        with _lock:
            found = _connections.get(key)
            if found is None:
                found = _connections[key] = GCSConnection(settings)
    return found


# A fork may copy the lock while another thread holds it.
after_fork(lambda: globals().update(_lock=threading.Lock()))
