"""The settings of the DynamoDB store: Delta's own keys, and a few that Delta lacks.

Delta reads `<prefix>.<name>` from the Hadoop conf, with either of two prefixes; a Spark conf may
have `spark.hadoop.` before them. All spellings count, and two different values are refused, as
Delta does (`S3DynamoDBLogStore.getParam`).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys
from lakelog.logstores.errors import InconsistentLogStoreConfError, LogStoreConfError
from lakelog.logstores.s3.conf import S3Settings
from lakelog.logstores.s3.credentials import CredentialSource, sources_from
from lakelog.logstores.s3_dynamodb.row_decided_log import GUARD_KEY, SCHEME_KEY, SCHEMES

if TYPE_CHECKING:
    from collections.abc import Mapping

_BARE: Final = "io.delta.storage.S3DynamoDBLogStore."
_OURS: Final = "spark.lakelog.s3dynamodb."
TABLE_NAME: Final = f"spark.{_BARE}ddb.tableName"
REGION_NAME: Final = f"spark.{_BARE}ddb.region"
PROVIDER: Final = f"spark.{_BARE}credentials.provider"
CREATE_KEY: Final = _OURS + "createTable"
ENDPOINT_KEY: Final = _OURS + "endpoint"
ACCESS_KEY: Final = _OURS + "access.key"
_NAMES: Final = (
    "ddb.tableName",
    "ddb.region",
    "credentials.provider",
    "provisionedThroughput.rcu",
    "provisionedThroughput.wcu",
    "read.retries",
    "ddb.ttl",
)
_OUR_NAMES: Final = (
    "createTable",
    "endpoint",
    "access.key",
    "secret.key",
    "session.token",
    "guard",
    "keyScheme",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTableSettings:
    """The table, and how it is reached. Hashable; its `repr` shows no secret."""

    table: str = "delta_log"
    region: str = "us-east-1"
    endpoint: str | None = None
    """URL of a service other than AWS's own."""
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    sources: tuple[CredentialSource, ...] = ()
    """Where credentials come from; empty: the SDK's default chain, as with Delta."""
    s3: S3Settings = field(default_factory=S3Settings, repr=False)
    """Those of S3A, for `credentials.provider` classes that read S3A's keys."""
    rcu: int = 5
    """Provisioned reads a second of a table that is created here."""
    wcu: int = 5
    ttl: int = 86_400
    """Seconds from a commit's completion until its row may be deleted."""
    create: bool = False
    guard: bool = True
    key_scheme: str | None = None
    """The scheme of `tablePath`; `None`: that of the URI."""
    timeout: float = 20.0
    """Seconds for a connection, and again between two bytes of a reply."""

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> LockTableSettings:
        """Read the settings.

        Raises:
            InconsistentLogStoreConfError: two spellings of one key have two values.
            LogStoreConfError: a value is invalid, or a key is unknown.
        """
        _refuse_unknown(conf)
        access, secret = _ours(conf, "access.key"), _ours(conf, "secret.key")
        if (access is None) != (secret is None):
            raise LogStoreConfError(
                f"of {ACCESS_KEY} and {_OURS}secret.key only one is set: set both or neither"
            )
        default = cls()
        sources = sources_from(_delta(conf, "credentials.provider"), lambda _: PROVIDER)
        _number(conf, "read.retries", 3, least=0)  # checked as by Delta; a read is one request
        return cls(
            table=_delta(conf, "ddb.tableName") or default.table,
            region=_delta(conf, "ddb.region") or default.region,
            endpoint=_endpoint(_ours(conf, "endpoint")),
            access_key=access,
            secret_key=secret,
            session_token=_ours(conf, "session.token"),
            sources=sources,
            s3=S3Settings.from_conf(conf, "") if sources else S3Settings(),
            rcu=_number(conf, "provisionedThroughput.rcu", default.rcu, least=1),
            wcu=_number(conf, "provisionedThroughput.wcu", default.wcu, least=1),
            ttl=_number(conf, "ddb.ttl", default.ttl, least=0),
            create=keys.flag(CREATE_KEY, False).parse(_ours(conf, "createTable")),
            guard=keys.flag(GUARD_KEY, True).parse(_ours(conf, "guard")),
            key_scheme=_scheme(_ours(conf, "keyScheme")),
            timeout=replace(keys.REQUEST_TIMEOUT, default=default.timeout).of(conf),
        )


def _spellings(name: str) -> tuple[str, ...]:
    return tuple(
        first + second + _BARE + name
        for second in ("spark.", "")
        for first in ("", "spark.hadoop.")
    )


def _delta(conf: Mapping[str, str], name: str) -> str | None:
    """One of Delta's settings, in any of its spellings."""
    found = {key: conf[key] for key in _spellings(name) if key in conf}
    if len(set(found.values())) > 1:
        raise InconsistentLogStoreConfError(
            f"{' and '.join(found)} have different values. Set one of them only."
        )
    return next(iter(found.values())).strip() or None if found else None


def _ours(conf: Mapping[str, str], name: str) -> str | None:
    return conf.get(_OURS + name, "").strip() or None


def _number(conf: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    key = next((each for each in _spellings(name) if each in conf), _spellings(name)[0])
    return keys.whole(key, default, least=least).parse(_delta(conf, name))


def _endpoint(text: str | None) -> str | None:
    if text is not None and not text.startswith(("http://", "https://")):
        raise LogStoreConfError(
            f"{ENDPOINT_KEY} must be a URL, http(s)://host:port, but it does not begin like that"
        )
    return text.rstrip("/") if text else None


def _scheme(text: str | None) -> str | None:
    if text is not None and text not in SCHEMES:
        raise LogStoreConfError(
            f"{SCHEME_KEY} must be one of {', '.join(SCHEMES)}, but it is {text!r}"
        )
    return text


def _refuse_unknown(conf: Mapping[str, str]) -> None:
    """A misspelled setting of a lock table would silently exclude no writer."""
    prefixes = dict.fromkeys(_spellings(""), _NAMES) | {_OURS: _OUR_NAMES}
    for key in sorted(conf):
        for prefix, names in prefixes.items():
            name = key[len(prefix) :]
            if key.startswith(prefix) and name not in names:
                near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
                hint = f"; did you mean {prefix}{near[0]}?" if near else "."
                raise LogStoreConfError(
                    f"nothing reads the key {key}{hint} Known keys are {', '.join(names)}."
                )
