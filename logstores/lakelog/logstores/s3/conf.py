"""How an S3 bucket is reached, by the `fs.s3a.*` settings that Spark users already have.

Every key counts with and without `spark.hadoop.`, and `fs.s3a.bucket.<bucket>.<rest>` overrides
`fs.s3a.<rest>`, as in Hadoop. The names are those of Hadoop 3.4's S3A documentation
("Hadoop-AWS module: Integration with Amazon Web Services"), deprecated spellings included.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from lakelog.logstores import keys
from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.s3.credentials import AssumedRole, CredentialSource, sources_from
from lakelog.logstores.settings import hadoop_setting

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT_TIMEOUT: Final = 20.0

# Hadoop's spelling of "AWS itself, in the region of the bucket".
_CENTRAL: Final = ("s3.amazonaws.com", "")
_AWS_HOST: Final = re.compile(r"(?:.*\.)?s3[.-]([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?")
_AWS_HOSTS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|d)?")
_UNITS: Final = {None: 0.001, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ALGORITHMS: Final = {
    "AES256": "AES256",
    "SSE-S3": "AES256",
    "SSE-KMS": "aws:kms",
    "DSSE-KMS": "aws:kms:dsse",
    "SSE-C": "SSE-C",
}


@dataclass(frozen=True, slots=True)
class S3Encryption:
    """Encryption by the server, asked for with each object."""

    algorithm: str
    """`AES256`, `aws:kms`, `aws:kms:dsse`, or `SSE-C` for a key that the client brings."""
    kms_key: str | None = None
    """The KMS key's name; `None` for the account's default key."""
    customer_key: bytes | None = field(default=None, repr=False)
    """The 32 bytes of an SSE-C key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """All settings for access to a bucket. Hashable; its `repr` shows no secret."""

    endpoint: str | None = None
    """URL of a service other than AWS's own; `None` leaves it to the SDK."""
    region: str | None = None
    """`None` leaves it to the SDK (`AWS_REGION`, profiles), and then `us-east-1`."""
    tls: bool = True
    path_style: bool | None = None
    """Bucket in the path, or in the host name; `None`: in the path on custom endpoints."""
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    sources: tuple[CredentialSource, ...] = ()
    """Where credentials come from, in order; empty: the SDK's whole default chain."""
    role: AssumedRole | None = None
    proxy: str | None = field(default=None, repr=False)
    """URL of an HTTP proxy, with its password if it has one."""
    encryption: S3Encryption | None = None
    requester_pays: bool = False
    user_agent: str | None = None
    connect_timeout: float = _DEFAULT_TIMEOUT
    """Seconds."""
    read_timeout: float = _DEFAULT_TIMEOUT
    """Seconds between two bytes of a reply."""
    connections: int = 64
    """Most idle connections that are kept."""

    @property
    def addressing(self) -> str:
        """Where the bucket's name goes, in botocore's words: `path`, `virtual` or `auto`."""
        if self.endpoint is None or is_aws(urlsplit(self.endpoint).hostname or ""):
            return "path" if self.path_style else "auto"
        # "auto" puts the bucket into the path of every custom endpoint, asked to or not.
        return "virtual" if self.path_style is False else "path"

    @classmethod
    def from_conf(cls, conf: Mapping[str, str], bucket: str) -> S3Settings:
        """Read the settings of one bucket.

        Raises:
            LogStoreConfError: a value is invalid, or half of a pair is missing. The
                message names the key and shows no secret.
        """
        keys = _Keys(conf, bucket)
        tls = keys.flag("connection.ssl.enabled", default=True)
        endpoint = _endpoint(keys, tls=tls)
        sources = sources_from(keys.get("aws.credentials.provider"), keys.name)
        access, secret, token = _static(keys, sources)
        if not sources and access:
            sources = (CredentialSource.TEMPORARY if token else CredentialSource.SIMPLE,)
        return cls(
            endpoint=endpoint,
            region=keys.get("endpoint.region") or _region_of(endpoint),
            tls=tls,
            path_style=_path_style(keys),
            access_key=access,
            secret_key=secret,
            session_token=token,
            sources=sources,
            role=_role(keys) if CredentialSource.ASSUMED_ROLE in sources else None,
            proxy=_proxy(keys),
            encryption=_encryption(keys),
            requester_pays=keys.flag("requester.pays.enabled", default=False),
            user_agent=keys.get("user.agent.prefix"),
            connect_timeout=keys.seconds("connection.establish.timeout", conf),
            read_timeout=keys.seconds("connection.timeout", conf),
            connections=keys.number("connection.maximum", 64, least=1),
        )


def is_aws(host: str) -> bool:
    """Whether a host is one of AWS's."""
    return host.endswith(_AWS_HOSTS)


class _Keys:
    """The `fs.s3a.*` keys as one bucket sees them."""

    def __init__(self, conf: Mapping[str, str], bucket: str) -> None:
        self._conf = conf
        self._own = f"fs.s3a.bucket.{bucket}."

    def get(self, *rests: str) -> str | None:
        return hadoop_setting(self._conf, *[key for rest in rests for key in self._both(rest)])

    def name(self, rest: str) -> str:
        """The spelling that is set, for messages."""
        own, common = self._both(rest)
        return own if hadoop_setting(self._conf, own) else common

    def flag(self, rest: str, *, default: bool) -> bool:
        return keys.flag(self.name(rest), default).parse(self.get(rest))

    def number(self, rest: str, default: int, *, least: int) -> int:
        return keys.whole(self.name(rest), default, least=least).parse(self.get(rest))

    def seconds(self, rest: str, conf: Mapping[str, str]) -> float:
        """Hadoop's durations (`200000`, `200s`, `3m`); else the time of every store."""
        text = self.get(rest)
        if text is None:
            return replace(keys.REQUEST_TIMEOUT, default=_DEFAULT_TIMEOUT).of(conf)
        return duration(text, self.name(rest))

    def _both(self, rest: str) -> tuple[str, str]:
        return self._own + rest, "fs.s3a." + rest


def duration(text: str, key: str) -> float:
    """Seconds of a Hadoop duration: a number of milliseconds, or one with a unit.

    Raises:
        LogStoreConfError: it is not a duration, or is zero.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0.0
    if seconds <= 0:
        raise LogStoreConfError(
            f"{key} must be a time above 0 (milliseconds, or 200s, 3m, 1h), but it is {text!r}"
        )
    return seconds


def _endpoint(keys: _Keys, *, tls: bool) -> str | None:
    text = (keys.get("endpoint") or "").rstrip("/")
    scheme, mark, rest = text.partition("://")
    host = rest if mark else text
    if host in _CENTRAL:
        return None
    if (mark and scheme not in ("http", "https")) or re.search(r"[\s@?#]", host):
        raise LogStoreConfError(
            f"{keys.name('endpoint')} must be a host, host:port, or http(s)://host:port, "
            "without user name or query"
        )
    return text if mark else f"{'https' if tls else 'http'}://{text}"


def _region_of(endpoint: str | None) -> str | None:
    if endpoint is None:
        return None
    match = _AWS_HOST.fullmatch(endpoint.partition("://")[2].partition(":")[0])
    return match[1] if match else None


def _path_style(keys: _Keys) -> bool | None:
    if keys.get("path.style.access") is None:
        return None
    return keys.flag("path.style.access", default=False)


def _static(
    keys: _Keys, sources: tuple[CredentialSource, ...]
) -> tuple[str | None, str | None, str | None]:
    access, secret = keys.get("access.key"), keys.get("secret.key")
    token = keys.get("session.token")
    if (access is None) != (secret is None):
        there, missing = ("access", "secret") if access else ("secret", "access")
        raise LogStoreConfError(
            f"{keys.name(there + '.key')} is set, {keys.name(missing + '.key')} is not: set both, "
            "or neither to use the SDK's own credentials"
        )
    if sources and CredentialSource.TEMPORARY not in sources:
        token = None
    return access, secret, token


def _role(keys: _Keys) -> AssumedRole:
    arn = keys.get("assumed.role.arn")
    if arn is None:
        raise LogStoreConfError(
            f"{keys.name('aws.credentials.provider')} asks for an assumed role, and "
            f"{keys.name('assumed.role.arn')} is not set: name the role"
        )
    lasting = keys.get("assumed.role.session.duration")
    inner = keys.get("assumed.role.credentials.provider")
    return AssumedRole(
        arn=arn,
        session_name=keys.get("assumed.role.session.name") or "lakelog",
        seconds=int(duration(lasting, keys.name("assumed.role.session.duration")))
        if lasting
        else 1800,
        external_id=keys.get("assumed.role.external.id"),
        policy=keys.get("assumed.role.policy"),
        sts_endpoint=keys.get("assumed.role.sts.endpoint"),
        sts_region=keys.get("assumed.role.sts.endpoint.region"),
        sources=sources_from(inner, lambda _: keys.name("assumed.role.credentials.provider")),
    )


def _proxy(keys: _Keys) -> str | None:
    host = keys.get("proxy.host")
    if host is None:
        return None
    tls = keys.flag("proxy.ssl.enabled", default=False)
    port = keys.number("proxy.port", 443 if tls else 80, least=1)
    user, password = keys.get("proxy.username"), keys.get("proxy.password")
    if (user is None) != (password is None):
        raise LogStoreConfError(
            f"of {keys.name('proxy.username')} and {keys.name('proxy.password')} only one is "
            "set: set both or neither"
        )
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user and password else ""
    return f"{'https' if tls else 'http'}://{login}{host}:{port}"


def _encryption(keys: _Keys) -> S3Encryption | None:
    names = ("encryption.algorithm", "server-side-encryption-algorithm")
    text = keys.get(*names)
    if text is None:
        return None
    algorithm = _ALGORITHMS.get(text.upper())
    if algorithm is None:
        raise LogStoreConfError(
            f"{keys.name(names[0])} = {text}: known values are {', '.join(_ALGORITHMS)}; "
            "encryption in the client (CSE-*) is not supported, because no other reader of "
            "the log has it"
        )
    key = keys.get("encryption.key", "server-side-encryption.key")
    if algorithm != "SSE-C":
        return S3Encryption(algorithm, kms_key=None if algorithm == "AES256" else key)
    try:
        raw = base64.b64decode(key or "", validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) != 32:
        raise LogStoreConfError(
            f"SSE-C needs {keys.name('encryption.key')}: 32 bytes in base64, and it is "
            f"{'not that' if key else 'not set'}"
        )
    return S3Encryption(algorithm, customer_key=raw)
