"""The log on Azure storage: blob accounts, and ADLS Gen2 accounts through their blob endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.logstores import keys
from lakelog.logstores.azure.client import AzureClient
from lakelog.logstores.azure.conf import azure_settings
from lakelog.logstores.azure.lease import LeaseTerms, lease
from lakelog.logstores.azure.uri import parse_azure_uri
from lakelog.logstores.lines import encode_lines
from lakelog.logstores.object_store.create_once import create_once
from lakelog.logstores.object_store.store import ObjectLogStore
from lakelog.logstores.object_store.trust import ensure_trusted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow.fs

LEASE_KEY = keys.AZURE_LEASE_DURATION.name
"""Seconds of a lease, 15 to 60."""


class AzureConditionalLogStore(ObjectLogStore):
    """A log in a container of Azure storage. A commit is one conditional Put Blob.

    `If-None-Match: *` makes the service refuse a name that exists (409 BlobAlreadyExists), for
    every writer that reaches it; block blobs appear whole; reads and listings are strongly
    consistent. See `docs/backends/azure.md` for the conf and for what was tested.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a retry setting is not a number.
        """
        super().__init__(conf)
        self._clients: dict[str, AzureClient] = {}

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """All accounts that the conf leads to; the account is part of the path."""
        from lakelog.logstores.azure.filesystem import azure_filesystem

        return azure_filesystem(self.conf, self._timeout, self._policy.budget)

    def filesystem_path(self, path: str) -> str:
        """`container@host/path`, or `container/path` where the URI has no host."""
        found = parse_azure_uri(path)
        key = found.key.strip("/")
        return f"{found.root}/{key}" if key else found.root

    def close(self) -> None:
        """Drop the clients. The process's connections are shared and stay open for others."""
        self._clients.clear()

    def _locate(self, path: str) -> tuple[AzureClient, str]:
        found = parse_azure_uri(path)
        client = self._clients.get(found.root)
        if client is None:
            settings = azure_settings(self.conf, found, self._timeout)
            client = AzureClient(settings, found.container)
            self._clients[found.root] = client
        return client, found.key

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_clients": {}}


class AzureLeaseLogStore(AzureConditionalLogStore):
    """The same, and writers take turns by the lease of one blob next to the log.

    The conditional create is made all the same and alone decides who wins, so a writer that
    stalls past its lease, loses it, or can't get one still never overwrites a commit. What the
    turn adds is that a writer whose version has been taken meanwhile learns so before it sends
    its file. It costs two requests a commit.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a setting of retries or leases is not a number, or out of range.
        """
        super().__init__(conf)
        seconds = keys.AZURE_LEASE_DURATION.of(self.conf)
        self._terms = LeaseTerms(
            seconds=seconds,
            wait=keys.AZURE_LEASE_WAIT.of(self.conf),
            renew_every=seconds / 3,
        )

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        """Write in turn; an overwrite needs no turn, since no writer can lose by it."""
        if overwrite:
            super().write(path, lines, overwrite=True)
            return
        body = b"".join(encode_lines(lines))
        client, key = self._locate(path)
        ensure_trusted(client, key, self.conf, self._timeout)
        with lease(client, key, path, self._terms):
            create_once(client, key, body, path, self._policy)
