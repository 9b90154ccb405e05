"""Credentials for Azure storage, as values: hashable, picklable, never printed.

`open` gives what the SDK takes for `credential=`. The names are those of azure-identity.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from lakelog.logstores.errors import LogStoreConfError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class SharedKey:
    """One of the account's two keys, which allows everything."""

    account: str
    key: str = field(repr=False)

    def open(self) -> Any:
        """For the SDK.

        Raises:
            LogStoreConfError: the key is not valid base64.
        """
        try:
            base64.b64decode(self.key, validate=True)
        except ValueError:
            raise LogStoreConfError(
                f"the key of the account {self.account!r} is not valid base64: copy it again"
            ) from None
        return {"account_name": self.account, "account_key": self.key}


@dataclass(frozen=True, slots=True)
class SasToken:
    """A shared access signature: certain permissions until a certain time."""

    token: str = field(repr=False)
    """The query string, without its question mark."""

    def open(self) -> Any:
        """For the SDK."""
        from azure.core.credentials import AzureSasCredential

        return AzureSasCredential(self.token)


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A service principal with a secret."""

    tenant: str
    client: str
    secret: str = field(repr=False)
    authority: str | None = None
    """Host of the sign-in service; `None` for the public cloud's."""

    def open(self) -> Any:
        """For the SDK."""
        return _identity().ClientSecretCredential(
            self.tenant, self.client, self.secret, **_authority(self.authority)
        )


@dataclass(frozen=True, slots=True)
class ManagedIdentity:
    """The identity that Azure gave to the machine."""

    client: str | None = None
    """Which one, where the machine has several."""

    def open(self) -> Any:
        """For the SDK."""
        return _identity().ManagedIdentityCredential(client_id=self.client)


@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """A Kubernetes service account that Azure trusts."""

    tenant: str
    client: str
    token_file: str
    authority: str | None = None

    def open(self) -> Any:
        """For the SDK."""
        return _identity().WorkloadIdentityCredential(
            tenant_id=self.tenant,
            client_id=self.client,
            token_file_path=self.token_file,
            **_authority(self.authority),
        )


@dataclass(frozen=True, slots=True)
class DefaultChain:
    """azure-identity's own search: environment, workload, managed identity, developer tools."""

    def open(self) -> Any:
        """For the SDK."""
        return _identity().DefaultAzureCredential()


Credential = SharedKey | SasToken | ClientSecret | ManagedIdentity | WorkloadIdentity | DefaultChain


def _authority(host: str | None) -> dict[str, str]:
    return {"authority": host} if host else {}


def _identity() -> Any:
    try:
        import azure.identity
    except ModuleNotFoundError:
        raise MissingExtraError("azure", "signing in to Azure") from None
    return azure.identity


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
        LogStoreConfError: a setting lacks others that it needs, or the
            provider's class exists in Java only.
    """
    provider = (setting(PROVIDER) or "").rpartition(".")[2]
    if provider and provider not in _KNOWN:
        raise LogStoreConfError(
            f"{PROVIDER} = {provider} is a Java class with no counterpart here: use one of "
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
        raise LogStoreConfError(f"a service principal also needs {', '.join(missing)}")
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
        raise LogStoreConfError(f"a workload identity also needs {', '.join(missing)}")
    host = urlsplit(setting(AUTHORITY) or "").hostname
    return WorkloadIdentity(tenant, client, token_file, _foreign(host))


def _foreign(host: str | None) -> str | None:
    return None if host in (None, "login.microsoftonline.com") else host
