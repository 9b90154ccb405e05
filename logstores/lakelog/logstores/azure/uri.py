"""The URIs of Azure storage: which container, on which account, and which key in it.

    abfss://container@account.dfs.core.windows.net/path     Hadoop's ABFS driver, and Spark's users
    wasbs://container@account.blob.core.windows.net/path    Hadoop's older driver
    az://container/path                                     the account comes from the conf

All of them lead to the *blob* endpoint here: it has the conditional put and the leases, on accounts
with and without a hierarchical namespace. The two drivers' hosts differ in one label only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.locations import shown

SCHEMES: Final = frozenset({"abfs", "abfss", "wasb", "wasbs", "az"})
DEFAULT_SUFFIX: Final = "core.windows.net"

_SERVICE_HOST: Final = re.compile(
    r"(?P<account>[^.:]+)(?P<middle>\..+)?\.(?:dfs|blob)\.(?P<suffix>.+)"
)
_BARE_ACCOUNT: Final = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class AzurePath:
    """What a URI says."""

    container: str
    host: str | None
    """What follows the `@`, in lower case; `None` where the conf has to say."""
    key: str
    """The blob's name: no slash in front, nothing encoded."""

    @property
    def account(self) -> str | None:
        """The account's name, where the host gives it: not for an IP address, say."""
        if self.host is None or self.host == "localhost":
            return None
        found = _SERVICE_HOST.fullmatch(self.host)
        if found:
            return found["account"]
        return self.host if _BARE_ACCOUNT.fullmatch(self.host) else None

    @property
    def suffix(self) -> str:
        """The cloud's domain, such as `core.chinacloudapi.cn`."""
        found = _SERVICE_HOST.fullmatch(self.host or "")
        return found["suffix"] if found else DEFAULT_SUFFIX

    @property
    def blob_host(self) -> str | None:
        """The host of the blob endpoint; `None` where the URI does not give it."""
        account = self.account
        if account is None or self.host is None:
            return None
        found = _SERVICE_HOST.fullmatch(self.host)
        middle = (found["middle"] or "") if found else ""
        return f"{account}{middle}.blob.{self.suffix}"

    @property
    def root(self) -> str:
        """`container@host`, or `container` alone: the part before the key."""
        return f"{self.container}@{self.host}" if self.host else self.container


def parse_azure_uri(uri: str) -> AzurePath:
    """Split a URI into its parts.

    Raises:
        LogStoreConfError: it is not one of these, or names no container.
    """
    scheme, colon, rest = uri.partition("://")
    if not colon or scheme.lower() not in SCHEMES:
        raise LogStoreConfError(
            f"{shown(uri)} is not a URI of Azure storage: give abfss://container@account."
            f"dfs.{DEFAULT_SUFFIX}/path, or az://container/path with the account in the conf"
        )
    authority, _, key = rest.partition("/")
    container, at, host = authority.partition("@")
    if not container or (at and not host) or (not at and "." in container):
        raise LogStoreConfError(
            f"{shown(uri)} names no container: write {scheme}://container@account."
            f"dfs.{DEFAULT_SUFFIX}/path"
        )
    return AzurePath(container, host.lower() or None, key)
