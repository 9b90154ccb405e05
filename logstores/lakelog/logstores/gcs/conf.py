"""The settings of a conf for Google Cloud Storage, by the names of Google's Hadoop connector.

Keys of authentication have two prefixes there, `fs.gs.auth.` and the older `google.cloud.auth.`;
both are read. Source: `gcs/CONFIGURATION.md` of GoogleCloudDataproc/hadoop-connectors.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NoReturn
from urllib.parse import quote, urlsplit

from lakelog.logstores import keys
from lakelog.logstores.errors import InconsistentLogStoreConfError, LogStoreConfError
from lakelog.logstores.settings import hadoop_setting

if TYPE_CHECKING:
    from collections.abc import Mapping

GOOGLE: Final = "https://storage.googleapis.com"
PREFIXES: Final = ("fs.gs.auth.", "google.cloud.auth.")

Auth = Literal["default", "anonymous", "keyfile", "key", "federation", "user", "token"]

_TYPES: Final[Mapping[str, Auth]] = {
    "APPLICATION_DEFAULT": "default",
    "COMPUTE_ENGINE": "default",
    "SERVICE_ACCOUNT_JSON_KEYFILE": "keyfile",
    "UNAUTHENTICATED": "anonymous",
    "USER_CREDENTIALS": "user",
    "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE": "federation",
}
_KEYFILE: Final = "service.account.json.keyfile"
_KEY_PARTS: Final = ("service.account.private.key", "service.account.private.key.id")
_FEDERATION: Final = "workload.identity.federation.credential.config.file"
_USER: Final = ("client.id", "client.secret", "refresh.token")


@dataclass(frozen=True, slots=True)
class GCSSettings:
    """All settings of a client of Google Cloud Storage. Its `repr` shows no secret."""

    root_url: str = GOOGLE
    project: str | None = None
    auth: Auth = "default"
    file: str | None = None
    """The JSON key of a service account, or the configuration of a federation."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """E-mail, key id and key of a service account; client id, client secret, refresh token; or an
    access token."""
    impersonated: str | None = None
    """The service account to act as."""
    paying_project: str | None = None
    """The project that pays the requests to a bucket whose owner does not."""
    paying_buckets: frozenset[str] | None = None
    """The buckets that it pays for; `None` for all."""
    proxy: str | None = field(default=None, repr=False)
    """URL of an HTTP proxy, with user and password where it wants them."""
    timeout: float = 20.0
    """Seconds to connect, and between two bytes of a reply."""

    def payer(self, bucket: str) -> str | None:
        """The project that pays the requests to a bucket; `None` for its owner."""
        if self.paying_buckets is None or bucket in self.paying_buckets:
            return self.paying_project
        return None


def gcs_settings(conf: Mapping[str, str], timeout: float) -> GCSSettings:
    """The settings in a conf; the rest is left to Application Default Credentials.

    Args:
        conf: the whole Spark conf.
        timeout: seconds of a request.

    Raises:
        LogStoreConfError: a setting is wrong, contradicts another, or asks for what only the JVM
            has. No secret is shown.
    """
    _refuse_what_only_the_jvm_has(conf)
    root_url = _root_url(conf)
    auth = _auth(conf, root_url)
    file, secrets = _identity(conf, auth)
    paying, buckets = _requester_pays(conf)
    return GCSSettings(
        root_url=root_url,
        project=hadoop_setting(conf, "fs.gs.project.id"),
        auth=auth,
        file=file,
        secrets=secrets,
        impersonated=_impersonated(conf, auth),
        paying_project=paying,
        paying_buckets=buckets,
        proxy=_proxy(conf),
        timeout=timeout,
    )


def _auth_setting(conf: Mapping[str, str], name: str) -> str | None:
    """A key of authentication under either prefix; two values are refused."""
    found = {value for prefix in PREFIXES if (value := hadoop_setting(conf, prefix + name))}
    if len(found) > 1:
        raise InconsistentLogStoreConfError(
            f"{PREFIXES[0]}{name} and {PREFIXES[1]}{name} have two values. Keep one of them."
        )
    return found.pop() if found else None


def _refuse_what_only_the_jvm_has(conf: Mapping[str, str]) -> None:
    for name in ("access.token.provider", "access.token.provider.impl"):
        if _auth_setting(conf, name):
            raise LogStoreConfError(
                f"fs.gs.auth.{name} names a Java class, which can't be used from Python. Remove it "
                "to use Application Default Credentials, or set fs.gs.auth.type to "
                "SERVICE_ACCOUNT_JSON_KEYFILE and fs.gs.auth.service.account.json.keyfile."
            )
    if _auth_setting(conf, "service.account.keyfile"):
        raise LogStoreConfError(
            "fs.gs.auth.service.account.keyfile is a P12 key, which Google's Python libraries no "
            "longer read. Make a JSON key of the same account and set "
            "fs.gs.auth.service.account.json.keyfile."
        )
    if hadoop_setting(conf, "fs.gs.encryption.key"):
        raise LogStoreConfError(
            "fs.gs.encryption.key: customer-supplied encryption keys are not supported. Set a "
            "Cloud KMS key as the bucket's default instead; it needs no setting here."
        )


def _root_url(conf: Mapping[str, str]) -> str:
    key, text = "fs.gs.storage.root.url", hadoop_setting(conf, "fs.gs.storage.root.url")
    if text is None:
        key, text = "STORAGE_EMULATOR_HOST", os.environ.get("STORAGE_EMULATOR_HOST") or None
        if text is not None and "://" not in text:
            text = f"http://{text}"
    if text is None:
        return GOOGLE
    parts = urlsplit(text)
    try:
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or "@" in parts.netloc:
        raise LogStoreConfError(
            f"{key} must be a URL such as {GOOGLE}, without a user, but it is not"
        )
    return text.rstrip("/")


def _auth(conf: Mapping[str, str], root_url: str) -> Auth:
    if keys.GCS_TOKEN.of(conf):
        return "token"
    kind = _auth_setting(conf, "type")
    if kind is not None:
        if kind.upper() == "ACCESS_TOKEN_PROVIDER":
            _no_token_provider()
        if kind.upper() not in _TYPES:
            raise LogStoreConfError(
                f"fs.gs.auth.type is {kind!r}; it must be one of {', '.join(sorted(_TYPES))}"
            )
        return _TYPES[kind.upper()]
    if _auth_setting(conf, _KEYFILE):
        return "keyfile"
    if _auth_setting(conf, _KEY_PARTS[0]):
        return "key"
    if _auth_setting(conf, _FEDERATION):
        return "federation"
    if keys.flag("fs.gs.auth.null.enable", False).parse(_auth_setting(conf, "null.enable")):
        return "anonymous"
    # Google's own clients assume that an emulator needs no credentials.
    emulated = "STORAGE_EMULATOR_HOST" in os.environ and root_url != GOOGLE
    return "anonymous" if emulated else "default"


def _no_token_provider() -> NoReturn:
    raise LogStoreConfError(
        "fs.gs.auth.type is ACCESS_TOKEN_PROVIDER, which is a Java class. Set it to "
        "APPLICATION_DEFAULT, or to SERVICE_ACCOUNT_JSON_KEYFILE with "
        "fs.gs.auth.service.account.json.keyfile."
    )


def _identity(conf: Mapping[str, str], auth: Auth) -> tuple[str | None, tuple[str, ...]]:
    """The file and the secrets that a kind of authentication needs."""
    if auth in ("keyfile", "federation"):
        name = _KEYFILE if auth == "keyfile" else _FEDERATION
        return _needed(conf, name), ()
    if auth == "key":
        names = ("service.account.email", _KEY_PARTS[1], _KEY_PARTS[0])
        return None, tuple(_needed(conf, name) for name in names)
    if auth == "user":
        return None, tuple(_needed(conf, name) for name in _USER)
    if auth == "token":
        return None, (keys.GCS_TOKEN.of(conf) or "",)
    return None, ()


def _needed(conf: Mapping[str, str], name: str) -> str:
    value = _auth_setting(conf, name)
    if value is None:
        raise LogStoreConfError(f"fs.gs.auth.{name} is missing; the way of authentication needs it")
    return value


def _impersonated(conf: Mapping[str, str], auth: Auth) -> str | None:
    for prefix in PREFIXES:
        for kind in ("user", "group"):
            start = f"{prefix}impersonation.service.account.for.{kind}."
            if any(key.removeprefix("spark.hadoop.").startswith(start) for key in conf):
                raise LogStoreConfError(
                    f"{start}<name> is not supported: set "
                    f"{PREFIXES[0]}impersonation.service.account for this job"
                )
    account = _auth_setting(conf, "impersonation.service.account")
    if account and auth == "anonymous":
        raise LogStoreConfError(
            f"{PREFIXES[0]}impersonation.service.account needs credentials, but "
            f"{PREFIXES[0]}type is UNAUTHENTICATED"
        )
    return account


def _requester_pays(conf: Mapping[str, str]) -> tuple[str | None, frozenset[str] | None]:
    mode = (hadoop_setting(conf, "fs.gs.requester.pays.mode") or "DISABLED").upper()
    if mode == "DISABLED":
        return None, None
    if mode not in ("ENABLED", "CUSTOM"):
        raise LogStoreConfError(
            f"fs.gs.requester.pays.mode is {mode}; use ENABLED, or CUSTOM with "
            "fs.gs.requester.pays.buckets, or DISABLED. AUTO would need to ask each bucket first."
        )
    project = hadoop_setting(conf, "fs.gs.requester.pays.project.id", "fs.gs.project.id")
    if project is None:
        raise LogStoreConfError(
            f"fs.gs.requester.pays.mode is {mode}, but fs.gs.requester.pays.project.id is missing: "
            "some project has to pay"
        )
    if mode == "ENABLED":
        return project, None
    named = hadoop_setting(conf, "fs.gs.requester.pays.buckets") or ""
    return project, frozenset(name.strip() for name in named.split(",") if name.strip())


def _proxy(conf: Mapping[str, str]) -> str | None:
    address = hadoop_setting(conf, "fs.gs.proxy.address")
    if address is None:
        return None
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit()) or "/" in host:
        raise LogStoreConfError("fs.gs.proxy.address must be host:port, but it is not")
    user = hadoop_setting(conf, "fs.gs.proxy.username")
    password = hadoop_setting(conf, "fs.gs.proxy.password")
    if (user is None) != (password is None):
        raise LogStoreConfError(
            "fs.gs.proxy.username and fs.gs.proxy.password go together: set both or none"
        )
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user and password else ""
    return f"http://{login}{address}"
