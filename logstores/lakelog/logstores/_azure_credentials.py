"""The ways to prove who one is to Azure storage, as values: hashable, picklable, never printed.

Each opens as what the SDK takes for `credential=`. The names are those of azure-identity.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from lakelog.logstores.errors import LogStoreConfError, MissingExtraError

__all__ = [
    "ClientSecret",
    "Credential",
    "DefaultChain",
    "ManagedIdentity",
    "SasToken",
    "SharedKey",
    "WorkloadIdentity",
]


@dataclass(frozen=True, slots=True)
class SharedKey:
    """One of the account's two keys: may do everything."""

    account: str
    key: str = field(repr=False)

    def open(self) -> Any:
        """For the SDK.

        Raises:
            LogStoreConfError: the key is not written as keys are.
        """
        try:
            base64.b64decode(self.key, validate=True)
        except ValueError:
            raise LogStoreConfError(
                f"the key of the account {self.account!r} is no base64 text: copy it again"
            ) from None
        return {"account_name": self.account, "account_key": self.key}


@dataclass(frozen=True, slots=True)
class SasToken:
    """A shared access signature: certain rights until a certain time."""

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
