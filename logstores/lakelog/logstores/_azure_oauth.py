"""Hadoop's OAuth settings for Azure, as credentials of azure-identity."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lakelog.logstores._azure_credentials import ClientSecret, ManagedIdentity, WorkloadIdentity
from lakelog.logstores.errors import LogStoreConfError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores._azure_credentials import Credential

__all__ = ["oauth_credential"]

PROVIDER: Final = "fs.azure.account.oauth.provider.type"
_PREFIX: Final = "fs.azure.account.oauth2."
CLIENT: Final = _PREFIX + "client.id"
SECRET: Final = _PREFIX + "client.secret"
ENDPOINT: Final = _PREFIX + "client.endpoint"
TENANT: Final = _PREFIX + "msi.tenant"
AUTHORITY: Final = _PREFIX + "msi.authority"
TOKEN_FILE: Final = _PREFIX + "token.file"
_KNOWN: Final = ("ClientCredsTokenProvider", "MsiTokenProvider", "WorkloadIdentityTokenProvider")


def oauth_credential(setting: Callable[..., str | None]) -> Credential | None:
    """The credential that the settings name; `None` where they name none.

    Args:
        setting: gives the value of a key, for the account in question.

    Raises:
        LogStoreConfError: one setting is there without the others that it needs, or the class
            of the provider is one that only Java has.
    """
    provider = (setting(PROVIDER) or "").rpartition(".")[2]
    if provider and provider not in _KNOWN:
        raise LogStoreConfError(
            f"{PROVIDER} = {provider} is a Java class without an equal here: use one of "
            f"{', '.join(_KNOWN)}, or leave it out for azure-identity's default chain"
        )
    client = setting(CLIENT)
    if provider == "MsiTokenProvider":
        return ManagedIdentity(client)
    if provider == "WorkloadIdentityTokenProvider":
        return _workload(setting, client)
    if provider or setting(SECRET):
        return _client_secret(setting, client)
    return None


def _client_secret(setting: Callable[..., str | None], client: str | None) -> ClientSecret:
    secret, endpoint = setting(SECRET), setting(ENDPOINT)
    if not (client and secret and endpoint):
        values = {CLIENT: client, SECRET: secret, ENDPOINT: endpoint}
        missing = [key for key, value in values.items() if not value]
        raise LogStoreConfError(f"a service principal needs {', '.join(missing)} as well")
    parts = urlsplit(endpoint)
    tenant = parts.path.strip("/").split("/", 1)[0]
    if parts.scheme != "https" or not parts.hostname or not tenant:
        raise LogStoreConfError(
            f"{ENDPOINT} must be like https://login.microsoftonline.com/<tenant>/oauth2/token, "
            f"but it is {endpoint!r}"
        )
    return ClientSecret(tenant, client, secret, _foreign(parts.hostname))


def _workload(setting: Callable[..., str | None], client: str | None) -> WorkloadIdentity:
    # The names in the environment are those that Azure's webhook puts into a pod.
    client = client or os.environ.get("AZURE_CLIENT_ID")
    tenant = setting(TENANT) or os.environ.get("AZURE_TENANT_ID")
    token_file = setting(TOKEN_FILE) or os.environ.get("AZURE_FEDERATED_TOKEN_FILE")
    if not (client and tenant and token_file):
        values = {CLIENT: client, TENANT: tenant, TOKEN_FILE: token_file}
        missing = [key for key, value in values.items() if not value]
        raise LogStoreConfError(f"a workload identity needs {', '.join(missing)} as well")
    host = urlsplit(setting(AUTHORITY) or "").hostname
    return WorkloadIdentity(tenant, client, token_file, _foreign(host))


def _foreign(host: str | None) -> str | None:
    return None if host in (None, "login.microsoftonline.com") else host
