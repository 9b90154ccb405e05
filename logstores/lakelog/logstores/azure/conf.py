"""Which service, which account and which credential a conf means for a path.

The names are those of Hadoop's ABFS and WASB drivers, so that a `spark-defaults.conf` that leads
there works unchanged. A name with the account after it beats the same name without.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lakelog.logstores import keys
from lakelog.logstores.azure.credentials import DefaultChain, SasToken, SharedKey, oauth_credential
from lakelog.logstores.azure.uri import DEFAULT_SUFFIX
from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.settings import hadoop_setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.logstores.azure.credentials import Credential
    from lakelog.logstores.azure.uri import AzurePath

ENDPOINT_KEY: Final = keys.AZURE_ENDPOINT.name
"""URL of the blob service, for emulators and custom endpoints; `.<account>` may follow."""
ACCOUNT_KEY: Final = keys.AZURE_ACCOUNT.name
"""The account for URIs that name none."""
VERSION_KEY: Final = keys.AZURE_API_VERSION.name
"""x-ms-version of the requests, for services that do not speak the SDK's."""

_KEY: Final = "fs.azure.account.key"
_AUTH_TYPE: Final = "fs.azure.account.auth.type"
_FIXED_SAS: Final = "fs.azure.sas.fixed.token"
_KINDS: Final = ("SharedKey", "OAuth", "SAS")


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """All that a connection to an account depends on; equal settings may share one."""

    account: str
    endpoint: str
    """URL of the blob service, without a slash at its end."""
    credential: Credential
    api_version: str | None = None
    """`None` for the SDK's own."""
    timeout: float = 20.0
    """Seconds to connect, and again between two bytes of a reply."""

    @property
    def is_emulator(self) -> bool:
        """Whether this is the account that emulators have, and that no real account can have."""
        return self.account == "devstoreaccount1"


@dataclass(frozen=True, slots=True)
class _Environment:
    """What the environment says, under the names of the az tool, of object_store and of adlfs."""

    account: str | None
    key: str | None = field(repr=False)
    sas: str | None = field(repr=False)
    endpoint: str | None

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> _Environment:
        parts = _connection_string(environ.get("AZURE_STORAGE_CONNECTION_STRING", ""))
        account = _first(
            environ.get("AZURE_STORAGE_ACCOUNT"),
            environ.get("AZURE_STORAGE_ACCOUNT_NAME"),
            parts.get("accountname"),
        )
        endpoint = parts.get("blobendpoint")
        if not endpoint and account and "endpointsuffix" in parts:
            endpoint = f"https://{account}.blob.{parts['endpointsuffix']}"
        return cls(
            account,
            _first(
                environ.get("AZURE_STORAGE_KEY"),
                environ.get("AZURE_STORAGE_ACCOUNT_KEY"),
                parts.get("accountkey"),
            ),
            _first(environ.get("AZURE_STORAGE_SAS_TOKEN"), parts.get("sharedaccesssignature")),
            endpoint,
        )


def azure_settings(
    conf: Mapping[str, str],
    path: AzurePath,
    timeout: float = 20.0,
    environ: Mapping[str, str] | None = None,
) -> AzureSettings:
    """Read the settings for the account of a path.

    Raises:
        LogStoreConfError: no account, an endpoint that is not a URL or belongs to another
            account, credentials that are incomplete or supported in Java only.
    """
    env = _Environment.read(os.environ if environ is None else environ)
    given = path.account or _text(conf, ACCOUNT_KEY)
    endpoint = _endpoint(conf, given)
    account = given or (_account_of(endpoint) if endpoint else env.account)
    if account is None:
        raise LogStoreConfError(
            f"which storage account has the container {path.root!r}? Write container@account."
            f"dfs.{DEFAULT_SUFFIX}, or set {ACCOUNT_KEY}"
        )
    if endpoint is None and account == env.account and path.host is None:
        endpoint = _checked_url(env.endpoint, "BlobEndpoint of AZURE_STORAGE_CONNECTION_STRING")
    if endpoint is None:
        endpoint = _default_endpoint(path, account)
    credential = _credential(conf, path, account, env)
    return AzureSettings(account, endpoint, credential, _text(conf, VERSION_KEY), timeout)


def _endpoint(conf: Mapping[str, str], account: str | None) -> str | None:
    own = f"{ENDPOINT_KEY}.{account}"
    if account and _text(conf, own):
        return _checked_url(_text(conf, own), own)
    endpoint = _checked_url(_text(conf, ENDPOINT_KEY), ENDPOINT_KEY)
    named = _account_of(endpoint) if endpoint else None
    if account and named and named != account:
        raise LogStoreConfError(
            f"{ENDPOINT_KEY} leads to the account {named!r}, but the URI names {account!r}. "
            f"For several accounts set {ENDPOINT_KEY}.<account> for each"
        )
    return endpoint


def _checked_url(text: str | None, key: str) -> str | None:
    if not text:
        return None
    parts = urlsplit(text)
    # The text is not shown: people paste URLs with a signature here.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise LogStoreConfError(
            f"{key} must be just the URL of a blob service, such as "
            f"https://account.blob.{DEFAULT_SUFFIX} or http://127.0.0.1:10000/devstoreaccount1"
        )
    return text.rstrip("/")


def _account_of(endpoint: str) -> str | None:
    """`http://host:port/account` or `https://account.blob.suffix`."""
    parts = urlsplit(endpoint)
    if parts.path.strip("/"):
        return parts.path.strip("/").split("/", 1)[0]
    label, dot, rest = (parts.hostname or "").partition(".")
    return label if dot and (rest.startswith("blob.") or ".blob." in rest) else None


def _default_endpoint(path: AzurePath, account: str) -> str:
    if path.host is None:
        return f"https://{account}.blob.{DEFAULT_SUFFIX}"
    if path.blob_host is None:
        raise LogStoreConfError(
            f"{path.host!r} is not a host of Azure storage (account.dfs.{DEFAULT_SUFFIX}). For an "
            f"emulator or an endpoint of your own set {ENDPOINT_KEY} to its URL"
        )
    return f"https://{path.blob_host}"


def _credential(
    conf: Mapping[str, str], path: AzurePath, account: str, env: _Environment
) -> Credential:
    def setting(*keys: str) -> str | None:
        return hadoop_setting(conf, *(name for key in keys for name in _names(key, path, account)))

    key, sas = setting(_KEY), _sas(conf, path, account)
    kind = setting(_AUTH_TYPE)
    if kind is not None:
        return _named(kind, account, key, sas, lambda: oauth_credential(setting))
    if key:
        return SharedKey(account, key)
    if sas:
        return SasToken(sas)
    oauth = oauth_credential(setting)
    if oauth is not None:
        return oauth
    if env.account in (None, account):
        if env.key:
            return SharedKey(account, env.key)
        if env.sas:
            return SasToken(env.sas.lstrip("?"))
    return DefaultChain()


def _named(
    kind: str,
    account: str,
    key: str | None,
    sas: str | None,
    oauth: Callable[[], Credential | None],
) -> Credential:
    """Only the credential that `fs.azure.account.auth.type` asks for."""
    lowered = kind.lower()
    if lowered == "sharedkey" and key:
        return SharedKey(account, key)
    if lowered == "sas" and sas:
        return SasToken(sas)
    if lowered == "oauth":
        return oauth() or DefaultChain()
    if lowered not in [known.lower() for known in _KINDS]:
        raise LogStoreConfError(
            f"{_AUTH_TYPE} = {kind} is not supported here: use one of {', '.join(_KINDS)}"
        )
    missing = f"{_KEY}.{account}" if lowered == "sharedkey" else f"{_FIXED_SAS}.{account}"
    raise LogStoreConfError(f"{_AUTH_TYPE} = {kind}, but {missing} is not set")


def _sas(conf: Mapping[str, str], path: AzurePath, account: str) -> str | None:
    tails = (f"{account}.blob.{path.suffix}", f"{account}.dfs.{path.suffix}", account)
    own = [f"fs.azure.sas.{path.container}.{tail}" for tail in tails]
    own += [f"{_FIXED_SAS}.{path.container}.{tail}" for tail in tails]
    token = hadoop_setting(conf, *own, *_names(_FIXED_SAS, path, account))
    return token.lstrip("?") if token else None


def _names(key: str, path: AzurePath, account: str) -> list[str]:
    """The spellings of a key for an account, the most specific first."""
    hosts = [path.host] if path.host else []
    hosts += [f"{account}.dfs.{path.suffix}", f"{account}.blob.{path.suffix}", account]
    return [*(f"{key}.{host}" for host in dict.fromkeys(hosts)), key]


def _connection_string(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if value}


def _text(conf: Mapping[str, str], key: str) -> str | None:
    return conf.get(key, "").strip() or None


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value), None)
