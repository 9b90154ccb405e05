"""Every key of a conf that lakelog reads: its name, what it takes, its default, what it means.

The one place where a key is spelled out. Settings are read by it, the doctor and the stores know by
it what was misspelled, and the page of settings in the docs is made from it. The keys of Delta and
of Spark that the core reads are in `lakelog.core.keys`, which builds on this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from lakelog.logstores.errors import UnreadableValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Kind = Literal["flag", "whole", "number", "seconds", "text"]
"""`flag`: true or false. `whole`: a whole number. `seconds`: a number above zero."""

LAKELOG_PREFIX: Final = "spark.lakelog."


@dataclass(frozen=True, slots=True)
class Key(Generic[T_co]):
    """One key of a conf."""

    name: str
    """In full, as it stands in a conf."""
    kind: Kind
    default: T_co
    """What holds where the key is not set; `None` where that depends on something else."""
    doc: str
    """One sentence or two, for the page of settings."""
    is_prefix: bool = False
    """Whether keys that continue after the name and a dot are read as well."""
    least: int | None = None
    """Of numbers; `None` for no bound."""
    most: int | None = None

    def parse(self, text: str | None, where: str = "the conf") -> T_co:
        """What a text means, or the default where there is none.

        Args:
            text: as it was set.
            where: what it was set in, for the error.

        Raises:
            UnreadableValueError: names the key, what it takes, the text and where it was set.
        """
        if text is None:
            return self.default
        try:
            return cast("T_co", meaning(self.kind, text, self.least, self.most))
        except ValueError as exc:
            raise UnreadableValueError(self.name, text, str(exc), where) from None

    def of(self, conf: Mapping[str, str]) -> T_co:
        """What a conf says, or the default.

        Raises:
            UnreadableValueError: as `parse`.
        """
        return self.parse(conf.get(self.name))

    def __str__(self) -> str:
        """The name, so that a message can hold a key as it is."""
        return self.name


def meaning(kind: Kind, text: str, least: int | None = None, most: int | None = None) -> Any:
    """What a text means, blanks around it aside: the one reader of confs, options and properties.

    Args:
        kind: what it has to be.
        text: as it was set.
        least: of numbers.
        most: of numbers.

    Raises:
        ValueError: it is none; with the words that complete "must be …".
    """
    if kind == "text":
        return text
    word, allowed = text.strip(), _ALLOWED[kind]
    if least is not None:
        allowed += f" of at least {least}"
    if most is not None:
        allowed += f" and at most {most}"
    try:
        if kind == "flag":
            return _FLAGS[word.lower()]
        value = int(word) if kind == "whole" else float(word)
        # A comparison with NaN is false.
        above, below = least is None or value >= least, most is None or value <= most
        if above and below and -_INFINITE < value < _INFINITE and (kind != "seconds" or value > 0):
            return value
    except (ValueError, KeyError):
        pass
    raise ValueError(allowed)


_FLAGS: Final = {"true": True, "false": False}
_INFINITE: Final = float("inf")
_ALLOWED: Final[dict[Kind, str]] = {
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "seconds": "a number of seconds above 0",
}


def flag(name: str, default: bool, doc: str = "") -> Key[bool]:
    """A key that takes `true` or `false`."""
    return Key(name, "flag", default, doc)


def whole(
    name: str, default: int, doc: str = "", *, least: int | None = None, most: int | None = None
) -> Key[int]:
    """A key that takes a whole number."""
    return Key(name, "whole", default, doc, least=least, most=most)


def number(name: str, default: float, doc: str) -> Key[float]:
    """A key that takes a number."""
    return Key(name, "number", default, doc)


def seconds(name: str, default: float, doc: str) -> Key[float]:
    """A key that takes a number of seconds above zero."""
    return Key(name, "seconds", default, doc)


def text(name: str, default: str, doc: str) -> Key[str]:
    """A key that takes a string."""
    return Key(name, "text", default, doc)


def hadoop(name: str, doc: str, *, kind: Kind = "text", is_prefix: bool = False) -> Key[None]:
    """A key of Hadoop's, read with `spark.hadoop.` before it and without."""
    return Key(name, kind, None, doc, is_prefix)


# Stores, whichever they are.
RETRY_BUDGET: Final = seconds(
    f"{LAKELOG_PREFIX}store.retry.timeBudget",
    60.0,
    "Seconds that one operation on a storage may go on repeating requests.",
)
REACH_BUDGET: Final = seconds(
    f"{LAKELOG_PREFIX}store.connect.timeBudget",
    5.0,
    "Seconds for the same where no server answers: a name that does not resolve, a refused port.",
)
REQUEST_TIMEOUT: Final = seconds(
    f"{LAKELOG_PREFIX}store.request.timeout",
    20.0,
    "Seconds that one request may take to connect, and again between two bytes of its reply.",
)
ENDPOINT_PROBE: Final = text(
    f"{LAKELOG_PREFIX}store.endpointProbe",
    "auto",
    "Whether exclusive creation is tried before the first commit: `auto` (where the endpoint is "
    "not the cloud's own), `always`, `never`.",
)
LOG_LIMIT: Final[Key[int | None]] = Key(
    f"{LAKELOG_PREFIX}log.maxBytes",
    "whole",
    None,
    "Bytes of memory that what is read of one log may take; half of the machine's where not set.",
    least=1,
)
WARN_NOT_DURABLE: Final = flag(
    f"{LAKELOG_PREFIX}store.warnNotDurable",
    True,
    "Whether a store that may lose an acknowledged commit in a crash is warned of, once.",
)
SINGLE_WRITER: Final = flag(
    f"{LAKELOG_PREFIX}unsafe.singleWriter",
    False,
    "Promises that there is one writer, so that a storage without exclusive creation is written.",
)
STORED_EXPRESSIONS: Final = flag(
    f"{LAKELOG_PREFIX}unsafe.storedExpressions",
    False,
    "Lets Spark run whatever a table's metadata calls: Java methods, UDFs, subqueries, variables.",
)

# One store each.
AZURE_ENDPOINT: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}azure.endpoint",
    "text",
    None,
    "The URL of the blob service, for emulators and private endpoints.",
    is_prefix=True,
)
AZURE_ACCOUNT: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}azure.account",
    "text",
    None,
    "The account, where a URI does not name it.",
    is_prefix=True,
)
AZURE_API_VERSION: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}azure.apiVersion",
    "text",
    None,
    "The version of the service's API; the SDK's own where not set.",
    is_prefix=True,
)
AZURE_LEASE_DURATION: Final = whole(
    f"{LAKELOG_PREFIX}azure.lease.duration", 15, "Seconds of a lease, 15 to 60.", least=15, most=60
)
AZURE_LEASE_WAIT: Final = seconds(
    f"{LAKELOG_PREFIX}azure.lease.wait", 10.0, "Seconds to wait for another writer's lease to end."
)
GCS_INTERVAL: Final[Key[float | None]] = Key(
    f"{LAKELOG_PREFIX}gcs.minWriteInterval",
    "number",
    None,
    "Seconds between two writes of one name; 1 where not set, 0 for emulators.",
    least=0,
    most=60,
)
GCS_TOKEN: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}gcs.accessToken",
    "text",
    None,
    "An access token of Google's, until it ends; a catalog's reaches the store by this key.",
)
DYNAMODB_ENDPOINT: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}s3dynamodb.endpoint", "text", None, "The URL of DynamoDB, for emulators."
)
DYNAMODB_ACCESS_KEY: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}s3dynamodb.access.key",
    "text",
    None,
    "Credentials for DynamoDB where they are not those for S3.",
)
DYNAMODB_SECRET_KEY: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}s3dynamodb.secret.key", "text", None, "The secret that belongs to them."
)
DYNAMODB_SESSION_TOKEN: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}s3dynamodb.session.token", "text", None, "Their session token, if any."
)
DYNAMODB_CREATE: Final = flag(
    f"{LAKELOG_PREFIX}s3dynamodb.createTable",
    False,
    "Whether a missing lock table is created.",
)
DYNAMODB_GUARD: Final = flag(
    f"{LAKELOG_PREFIX}s3dynamodb.guard",
    True,
    "Whether each commit checks that no other writer bypasses the lock table.",
)
DYNAMODB_KEY_SCHEME: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}s3dynamodb.keyScheme",
    "text",
    None,
    "The scheme that rows of the lock table name tables by, such as `s3a`; the URI's where not "
    "set.",
)
FSSPEC_SCOPE: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}fsspec.exclusiveCreate",
    "text",
    None,
    "Whom the file system's exclusive creation excludes: `none`, `process`, `host`, `cluster`.",
)
FSSPEC_ATOMIC: Final = flag(
    f"{LAKELOG_PREFIX}fsspec.wholeFiles",
    False,
    "Whether a file of it appears whole or not at all.",
)
FSSPEC_OPTIONS: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}fsspec.options",
    "text",
    None,
    "Each key below it is an argument of the file system.",
    is_prefix=True,
)

# Commits, reading and writing: read by the core and by the Spark layer.
TIME_BUDGET: Final = number(
    f"{LAKELOG_PREFIX}commit.timeBudget", 600.0, "Seconds that one commit may take in all."
)
MAX_BACKOFF: Final = number(
    f"{LAKELOG_PREFIX}commit.maxBackoff", 5.0, "The longest single wait between two tries, seconds."
)
COMMIT_GROUP: Final = flag(
    f"{LAKELOG_PREFIX}commit.group",
    False,
    "Whether appends of threads that share a `DeltaLog` are committed as one version where they "
    "would wait for each other.",
)
COMMIT_HOST: Final = flag(
    f"{LAKELOG_PREFIX}commit.host",
    False,
    "Whether appends of the processes of this host that have the same settings are committed as "
    "one version where they would wait for each other.",
)
COMMIT_SERVICE: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}commit.service",
    "text",
    None,
    "The URL of a `lakelog serve --listen`, which commits appends of several hosts as one version.",
)
SERVICE_TOKEN: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}commit.service.token",
    "text",
    None,
    "Its token; where neither it nor a file is set, `LAKELOG_SERVICE_TOKEN` of the environment.",
)
SERVICE_TOKEN_FILE: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}commit.service.token.file", "text", None, "A file with its token."
)
SERVICE_CA_FILE: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}commit.service.ca.file",
    "text",
    None,
    "A PEM file of the authority that signed its certificate; those of the system where not set.",
)
CHECKSUM_LATER: Final[Key[bool | None]] = Key(
    f"{LAKELOG_PREFIX}checksum.inBackground",
    "flag",
    None,
    "Whether the checksum of a version is written after the commit has returned; where not set, "
    "unless the table is on a local disk.",
)
EVENTS_PATH: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}commitEvents.path",
    "text",
    None,
    "A local file that gets a JSON line for each attempt to commit.",
)
EVENTS_JOB: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}commitEvents.job",
    "text",
    None,
    "The job's name in those records; `spark.app.name` where not set.",
)
TELEMETRY: Final = text(
    f"{LAKELOG_PREFIX}telemetry",
    "auto",
    "Whether metrics and spans go to OpenTelemetry: where the process has set it up (`auto`), set "
    "up from the `OTEL_*` variables if need be (`otel`), never (`off`).",
)
MAX_INLINE: Final = whole(
    f"{LAKELOG_PREFIX}deletionVectors.maxInlineBytes",
    0,
    "Deletion vectors of up to this many bytes are written into the log instead of a file.",
)
READ_PATH: Final = text(
    f"{LAKELOG_PREFIX}read.path",
    "auto",
    "How Spark reads data files: `native` (its Parquet reader), `arrow`, or `auto`.",
)
WRITE_PATH: Final = text(
    f"{LAKELOG_PREFIX}write.path",
    "auto",
    "How Spark writes data files: `native`, `arrow`, or `auto`.",
)
REPLAY: Final = text(
    f"{LAKELOG_PREFIX}replay",
    "auto",
    "Who replays a log: the `driver`, Spark's executors (`spark`), or `auto`, by its size.",
)
REPLAY_LEAST: Final = whole(
    f"{LAKELOG_PREFIX}replay.minBytes",
    1 << 30,
    "The bytes of log from which on `auto` leaves the replay to the executors.",
)
MERGE_SOURCE_LIMIT: Final = whole(
    f"{LAKELOG_PREFIX}merge.maxSourceBytes",
    256 << 20,
    "Bytes of a stream of rows to merge that are held in memory, without Spark; more go to a file.",
)
NAMES_CACHE: Final = whole(
    f"{LAKELOG_PREFIX}names.cacheSeconds",
    60,
    "How long `enable` keeps what the catalog said of a name; 0 asks each time.",
)
NAMES_CURRENT: Final = text(
    f"{LAKELOG_PREFIX}names.current",
    "",
    "The catalog and schema that `USE` chose, where lakelog asks that catalog by itself. `USE` "
    "sets it.",
)
IDENTITY_TASKS: Final = whole(
    f"{LAKELOG_PREFIX}identity.maxTasks",
    1024,
    "The most tasks of a write that hands out identity values.",
)

BRIDGE_STORE = Key(
    "spark.lakelog.bridge.store",
    "text",
    "",
    "The LogStore class behind `io.lakelog.BridgeLogStore`, for every scheme or, with the scheme "
    "after a dot, for one; without it, the scheme's default.",
    is_prefix=True,
)

CATALOG: Final[Key[str | None]] = Key(
    f"{LAKELOG_PREFIX}catalog",
    "text",
    None,
    "What lakelog alone reads of a catalog, after its name: `class`, a class of your own; "
    "`token.file` and `token.command`, where Unity Catalog's token comes from; `timeout`, the "
    "seconds that a server may be silent; `credentials` = `own`, for the storage's credentials of "
    "the conf instead of the catalog's.",
    is_prefix=True,
)

LAKELOG_KEYS: Final[tuple[Key[object], ...]] = tuple(
    sorted((each for each in globals().values() if isinstance(each, Key)), key=lambda key: key.name)
)
"""The keys that only lakelog reads."""

HADOOP_KEYS: Final[tuple[Key[None], ...]] = (
    hadoop("fs.defaultFS", "The file system of paths without a scheme; HDFS's name service."),
    hadoop("dfs.namenode.http-address", "Where WebHDFS is.", is_prefix=True),
    hadoop("fs.s3a.access.key", "The access key."),
    hadoop("fs.s3a.secret.key", "Its secret."),
    hadoop("fs.s3a.session.token", "Its session token."),
    hadoop("fs.s3a.aws.credentials.provider", "Where to look for credentials, in order."),
    hadoop("fs.s3a.assumed.role.arn", "The role to take on."),
    hadoop("fs.s3a.assumed.role.credentials.provider", "Who asks for that role."),
    hadoop("fs.s3a.assumed.role.external.id", "The external id of that request."),
    hadoop("fs.s3a.assumed.role.policy", "The policy that narrows the role."),
    hadoop("fs.s3a.assumed.role.session.duration", "How long the role is held."),
    hadoop("fs.s3a.assumed.role.session.name", "The name of its session."),
    hadoop("fs.s3a.assumed.role.sts.endpoint", "The service that hands it out."),
    hadoop("fs.s3a.assumed.role.sts.endpoint.region", "The region of that service."),
    hadoop("fs.s3a.connection.establish.timeout", "How long connecting may take."),
    hadoop("fs.s3a.connection.maximum", "The most connections.", kind="whole"),
    hadoop("fs.s3a.connection.ssl.enabled", "Whether by TLS.", kind="flag"),
    hadoop("fs.s3a.connection.timeout", "How long a reply may take."),
    hadoop("fs.s3a.encryption.algorithm", "How the service encrypts what is written."),
    hadoop("fs.s3a.encryption.key", "The key for that."),
    hadoop("fs.s3a.endpoint", "The URL of the service."),
    hadoop("fs.s3a.endpoint.region", "Its region."),
    hadoop("fs.s3a.path.style.access", "Whether a bucket stands in the path.", kind="flag"),
    hadoop("fs.s3a.proxy.host", "The proxy."),
    hadoop("fs.s3a.proxy.password", "The proxy's password."),
    hadoop("fs.s3a.proxy.port", "The proxy's port.", kind="whole"),
    hadoop("fs.s3a.proxy.ssl.enabled", "Whether the proxy is spoken to by TLS.", kind="flag"),
    hadoop("fs.s3a.proxy.username", "The proxy's user."),
    hadoop("fs.s3a.requester.pays.enabled", "Whether the reader pays.", kind="flag"),
    hadoop("fs.s3a.server-side-encryption-algorithm", "The older name of the algorithm."),
    hadoop("fs.s3a.server-side-encryption.key", "The older name of its key."),
    hadoop("fs.s3a.user.agent.prefix", "What the user agent begins with."),
    hadoop("fs.gs.auth.null.enable", "Without credentials, for emulators.", kind="flag"),
    hadoop("fs.gs.auth.service.account.json.keyfile", "The key file of a service account."),
    hadoop("fs.gs.auth.type", "How to get credentials."),
    hadoop(
        "fs.gs.auth.workload.identity.federation.credential.config.file",
        "The configuration of workload identity federation.",
    ),
    hadoop("fs.gs.encryption.key", "Refused: customer-supplied keys are not supported."),
    hadoop("fs.gs.project.id", "The project."),
    hadoop("fs.gs.proxy.address", "The proxy, as host and port."),
    hadoop("fs.gs.proxy.password", "The proxy's password."),
    hadoop("fs.gs.proxy.username", "The proxy's user."),
    hadoop("fs.gs.requester.pays.buckets", "The buckets for which the reader pays."),
    hadoop("fs.gs.requester.pays.mode", "Whether the reader pays."),
    hadoop("fs.gs.requester.pays.project.id", "The project that pays."),
    hadoop("fs.gs.storage.root.url", "The URL of the service, for emulators and proxies."),
    hadoop("fs.azure.account.auth.type", "How to get credentials.", is_prefix=True),
    hadoop("fs.azure.account.key", "The account's shared key.", is_prefix=True),
    hadoop("fs.azure.account.oauth.provider.type", "Who hands out OAuth tokens.", is_prefix=True),
    hadoop("fs.azure.account.oauth2.client.endpoint", "The URL of that.", is_prefix=True),
    hadoop("fs.azure.account.oauth2.client.id", "The client.", is_prefix=True),
    hadoop("fs.azure.account.oauth2.client.secret", "Its secret.", is_prefix=True),
    hadoop("fs.azure.account.oauth2.msi.authority", "The managed identity's host.", is_prefix=True),
    hadoop("fs.azure.account.oauth2.msi.endpoint", "Its endpoint.", is_prefix=True),
    hadoop("fs.azure.account.oauth2.msi.tenant", "Its tenant.", is_prefix=True),
    hadoop("fs.azure.account.oauth2.token.file", "A file with a workload's token.", is_prefix=True),
    hadoop("fs.azure.sas.fixed.token", "A shared access signature.", is_prefix=True),
)
"""Hadoop's keys that our stores read; those of a bucket or an account go by the same names."""
