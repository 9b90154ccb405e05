"""Which store a URI gets: Delta's own keys, in Delta's own order.

1. The keys are checked as a whole: a global class together with a class for a scheme, one key with
   two values, a key that nothing reads.
2. `spark.delta.logStore.class`, for every URI.
3. `spark.delta.logStore.<scheme>.impl`.
4. The default of the scheme.

A key may name our Java class for delta-spark too: then `spark.lakelog.bridge.store` says what is
behind it, and else the scheme's default is.

Each key counts with and without `spark.`. A plain path has the scheme `file`: Delta sees such a
path only after Hadoop has put `file:` before it, so `file.impl` has to reach it here too.
"""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from lakelog.logstores import keys as store_keys
from lakelog.logstores.contract import LogStore
from lakelog.logstores.errors import (
    InconsistentLogStoreConfError,
    InvalidLogStoreConfError,
    LogStoreClassError,
    LogStoreError,
    UnknownLogStoreKeyError,
)
from lakelog.logstores.known_keys import refuse_misspelt_keys
from lakelog.logstores.locations import check_endpoints, check_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ENTRY_POINT_GROUP: Final = "lakelog.logstores"

_OURS: Final = "lakelog.logstores."
BUILT_IN: Final = (
    "AzureConditionalLogStore",
    "AzureLeaseLogStore",
    "GCSLogStore",
    "HDFSLogStore",
    "LocalLogStore",
    "MemoryLogStore",
    "S3ConditionalLogStore",
    "S3DynamoDBLogStore",
    "S3SingleDriverLogStore",
)
"""The stores of `lakelog.logstores`, for hints; their classes are above this module."""
_LOCAL: Final = _OURS + "LocalLogStore"
_S3: Final = _OURS + "S3ConditionalLogStore"
_AZURE: Final = _OURS + "AzureConditionalLogStore"
_DEFAULTS: Final = {
    "file": _LOCAL,
    "memory": _OURS + "MemoryLogStore",
    "hdfs": _OURS + "HDFSLogStore",
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    "gs": _OURS + "GCSLogStore",
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az"), _AZURE),
    "oss": "lakelog.contrib.alibaba_oss.OSSLogStore",
    "cos": "lakelog.contrib.ibm_cos.IBMCOSLogStore",
    "oci": "lakelog.contrib.oracle_oci.OracleCloudLogStore",
}
"""Scheme -> class. Those of `contrib` are names only: nothing here imports them."""

_BARE: Final = "delta.logStore."
_CLASS: Final = "class"
_IMPL: Final = ".impl"
_FAMILY: Final = re.compile(r"(?i)(spark\.)?delta\.logstores?($|\.)")
_SCHEME_KEY: Final = re.compile(r"[a-z][a-z0-9+\-]*\.impl")
_URI_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")

BRIDGE_CLASS: Final = "io.lakelog.BridgeLogStore"
"""Our own Java class, by which delta-spark asks the service for a store."""
_JVM_PACKAGES: Final = ("io.delta.storage.", "org.apache.spark.sql.delta.storage.")
_DELEGATING: Final = "DelegatingLogStore"
_JVM_STORES: Final = {
    "LocalLogStore": _LOCAL,
    "HDFSLogStore": _DEFAULTS["hdfs"],
    # Delta's own excludes the writers of one JVM only; a conditional put excludes every writer.
    "S3SingleDriverLogStore": _S3,
    "S3DynamoDBLogStore": _OURS + "S3DynamoDBLogStore",
    "AzureLogStore": _AZURE,
    "GCSLogStore": _DEFAULTS["gs"],
    "IBMCOSLogStore": _DEFAULTS["cos"],
    "OracleCloudLogStore": _DEFAULTS["oci"],
}
"""Delta's stores, and ours in their places."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """Which class a URI gets, and why."""

    class_path: str
    """Where the class is: `package.module.Class`. Not imported yet."""
    key: str | None
    """The conf key that decided, as it was written; `None` for a default."""
    reason: str
    """One sentence that explains it."""
    value: str | None = None
    """What the key was set to."""


def log_store_for(uri: str, conf: Mapping[str, str] | None = None) -> LogStore:
    """Make the store that the conf names for a URI.

    Args:
        uri: a table, or any path in it: `/lake/t`, `file:///lake/t`, `s3a://bucket/t`.
        conf: the whole Spark conf; the store is made with it.

    Raises:
        InvalidLogStoreConfError: a global class and a class for a scheme are both set.
        InconsistentLogStoreConfError: one key, with and without `spark.`, has two values.
        UnknownLogStoreKeyError: a key under `delta.logStore.` that nothing reads.
        LogStoreClassError: no such class, or it can't be imported, is not a LogStore, or can't be
            made; or this version has no store for the scheme.
        LogStoreConfError: the URI or an endpoint holds credentials, or the URI names no bucket.
        LogStoreError: any error of this family that the class itself raised.
    """
    conf = conf or {}
    resolution = resolve(uri, conf)
    return _construct(_load(resolution), conf, resolution)


def resolve(uri: str, conf: Mapping[str, str] | None = None) -> Resolution:
    """Say which class `log_store_for` would take, without importing it.

    Raises:
        LogStoreConfError: as `log_store_for`.
    """
    conf = conf or {}
    check_uri(uri)
    keys = checked_keys(conf)
    check_endpoints(conf)
    scheme = scheme_of(uri)
    for bare in (_BARE + _CLASS, f"{_BARE}{scheme}{_IMPL}"):
        for key in ("spark." + bare, bare):
            if key in keys:
                value = conf[key].strip()
                if value == BRIDGE_CLASS:
                    return _behind_the_bridge(conf, scheme)
                return _from_value(key, value, scheme)
    return _default(scheme)


def class_path_of(kind: type) -> str:
    """The path by which users name a class: the shortest package above its module that exports it.

    `lakelog.logstores.S3ConditionalLogStore`, though the class is defined some modules below.
    """
    parts = kind.__module__.split(".")
    for end in range(1, len(parts)):
        package = ".".join(parts[:end])
        if getattr(sys.modules.get(package), kind.__qualname__, None) is kind:
            return f"{package}.{kind.__qualname__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def scheme_of(uri: str) -> str:
    """The scheme of a URI in lower case; `file` for a plain path."""
    match = _URI_SCHEME.match(uri)
    return match.group(1).lower() if match else "file"


def checked_keys(conf: Mapping[str, str]) -> set[str]:
    """The keys of a conf that choose a store, without a look at their values.

    Raises:
        LogStoreConfError: they contradict each other, or nothing reads one of them.
    """
    keys = {key for key in conf if _FAMILY.match(key)}
    if keys:
        _refuse_class_beside_impl(keys)
        _refuse_two_values(conf, keys)
        _refuse_unknown(keys)
    refuse_misspelt_keys(conf)
    return keys


def _refuse_class_beside_impl(keys: set[str]) -> None:
    known = [key for key in keys if key.removeprefix("spark.").startswith(_BARE)]
    classes = sorted(key for key in known if key.endswith(_CLASS))
    schemes = sorted(key for key in known if key.endswith(_IMPL))
    if classes and schemes:
        raise InvalidLogStoreConfError(
            f"{', '.join(classes)} and {', '.join(schemes)} can't both be set: the first is for "
            "every scheme and would hide the second. Unset one. (DELTA_INVALID_LOGSTORE_CONF)"
        )


def _refuse_two_values(conf: Mapping[str, str], keys: set[str]) -> None:
    for key in sorted(keys):
        twin = "spark." + key
        if twin in keys and conf[key] != conf[twin]:
            raise InconsistentLogStoreConfError(
                f"{key} = {conf[key]}, {twin} = {conf[twin]}: two spellings of one key have two "
                "values. Keep one. (DELTA_INCONSISTENT_LOGSTORE_CONFS)"
            )


def _refuse_unknown(keys: set[str]) -> None:
    for key in sorted(keys):
        rest = key.removeprefix("spark.")
        name = rest[len(_BARE) :]
        if rest.startswith(_BARE) and (name == _CLASS or _SCHEME_KEY.fullmatch(name)):
            continue
        raise UnknownLogStoreKeyError(
            f"nothing reads the key {key}; did you mean {_nearest_key(key)}? Known keys are "
            f"spark.{_BARE}class and spark.{_BARE}<scheme>.impl with the scheme in lower case."
        )


def _nearest_key(key: str) -> str:
    prefix = "spark." if key.lower().startswith("spark.") else ""
    name = _FAMILY.sub("", key, count=1).lower()
    head, dot, last = name.rpartition(".")
    if dot and _SCHEME_KEY.fullmatch(head + _IMPL):
        return f"{prefix}{_BARE}{head}{_IMPL}"
    schemes = [scheme + _IMPL for scheme in ("file", "s3", "s3a", "gs", "abfs", "abfss", "hdfs")]
    near = _alike(last, [_CLASS, *schemes], cutoff=0.5)
    if near:
        return f"{prefix}{_BARE}{near[0]}"
    scheme = last if _SCHEME_KEY.fullmatch(last + _IMPL) else "<scheme>"
    return f"{prefix}{_BARE}{scheme}{_IMPL}"


def _default(scheme: str, key: str = "") -> Resolution:
    """The scheme's own store; `key` is what chooses one where there is none."""
    if scheme in _DEFAULTS:
        return Resolution(_DEFAULTS[scheme], None, f"the default for the scheme {scheme!r}")
    from lakelog.logstores.schemes_elsewhere import SCHEMES

    near = _alike(scheme, _DEFAULTS, cutoff=0.65)
    if scheme in SCHEMES:
        hint = f": {SCHEMES[scheme]}. For a store of your own, set"
    else:
        hint = f"; did you mean {near[0]}://? Otherwise set" if near else ". Set"
    raise LogStoreClassError(
        f"this version has no built-in store for the scheme {scheme!r}"
        f"{hint} {key or f'spark.{_BARE}{scheme}{_IMPL}'} to the dotted path of a LogStore class, "
        f"or to an entry point of the group {ENTRY_POINT_GROUP!r}."
    )


def _behind_the_bridge(conf: Mapping[str, str], scheme: str) -> Resolution:
    """What our Java class asks for a scheme, so that every writer of a table has the same store."""
    for key in (f"{store_keys.BRIDGE_STORE}.{scheme}", store_keys.BRIDGE_STORE.name):
        value = conf.get(key, "").strip()
        if value == BRIDGE_CLASS:
            raise LogStoreClassError(
                f"{key} = {value}: the bridge can't be behind itself. Name a Python class, or "
                "unset it."
            )
        if value:
            return _from_value(key, value, scheme)
    return _default(scheme, f"{store_keys.BRIDGE_STORE}.{scheme}")


def _from_value(key: str, value: str, scheme: str) -> Resolution:
    if not value:
        raise LogStoreClassError(f"{key} is empty: name a LogStore class, or unset it.")
    for package in _JVM_PACKAGES:
        name = value.removeprefix(package)
        if name == _DELEGATING:
            return _default(scheme)
        if name != value and name in _JVM_STORES:
            return _from_jvm_name(key, value, name, scheme)
    if "." in value or ":" in value:
        return Resolution(value.replace(":", "."), key, f"{key} names the class", value)
    return _from_entry_point(key, value)


def _from_jvm_name(key: str, value: str, name: str, scheme: str) -> Resolution:
    ours = _JVM_STORES[name]
    if name == "HDFSLogStore" and scheme == "file":  # Delta's own default for local paths
        ours = _LOCAL
    elif name == "HDFSLogStore" and scheme != "hdfs":
        raise LogStoreClassError(
            f"{key} = {value}: that Java class commits by rename, which is safe on HDFS and on "
            f"local disks; on {scheme!r} it is not. Unset the key: the scheme's own store is "
            f"{_DEFAULTS.get(scheme, 'named by spark.' + _BARE + scheme + _IMPL)}."
        )
    return Resolution(ours, key, f"{key} names a Java class; {ours} takes its place", value)


def _from_entry_point(key: str, value: str) -> Resolution:
    from importlib.metadata import entry_points

    group = entry_points(group=ENTRY_POINT_GROUP)
    for point in group.select(name=value):
        path = point.value.split("[")[0].strip().replace(":", ".")
        return Resolution(path, key, f"{key} names an entry point, {point.value}", value)
    ours = [path for path in _known_classes() if path.endswith("." + value)]
    names = sorted(group.names)
    near = ours or _alike(value, names)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise LogStoreClassError(
        f"{key} = {value}: no entry point of that name in the group {ENTRY_POINT_GROUP!r} "
        f"(installed: {', '.join(names) or 'none'}), and it is not the dotted path of a class{hint}"
    )


def _alike(word: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The known word that is most like another, if any is like it."""
    import difflib

    return difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)


def _java_names() -> list[str]:
    return [package + name for package in _JVM_PACKAGES for name in (*_JVM_STORES, _DELEGATING)]


def _known_classes() -> set[str]:
    return {*(_OURS + name for name in BUILT_IN), *_DEFAULTS.values()}


def _load(resolution: Resolution) -> type[LogStore]:
    module_name, _, class_name = resolution.class_path.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except LogStoreError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (module_name + ".").startswith(error.name + "."):
            reason = f"there is no module {error.name!r} on this Python's path"
            near = _alike(resolution.class_path, _java_names(), cutoff=0.85)
            if near:
                reason = f"there is no such class; did you mean {near[0]}?"
            elif module_name.startswith(("io.", "org.", "com.")):
                reason += "; a Java class can't be loaded here, name a Python class"
            else:
                reason += (
                    ". Install its package; where this is a worker of Spark's, there too, or send "
                    "it along with spark-submit --py-files or SparkContext.addPyFile"
                )
            _fail(resolution, reason, error)
        # The module is there, and something that *it* imports is not: say that instead.
        _fail(resolution, f"importing {module_name} failed: {_message_of(error)}", error)
    except Exception as error:  # noqa: BLE001, RUF100  # user code: anything may come
        _fail(resolution, f"importing {module_name} failed: {_message_of(error)}", error)
    found: Any = getattr(module, class_name, None)
    if found is None:
        near = _alike(class_name, dir(module))
        hint = f"; did you mean {near[0]}?" if near else ""
        _fail(resolution, f"the module {module_name} has no {class_name}{hint}")
    if not (isinstance(found, type) and issubclass(found, LogStore)):
        _fail(resolution, "it is not a subclass of lakelog.logstores.LogStore")
    return found


def _construct(cls: type[LogStore], conf: Mapping[str, str], resolution: Resolution) -> LogStore:
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        _fail(resolution, f"the class does not define {', '.join(missing)}")
    try:
        return cls(conf)
    except LogStoreError:
        raise
    except Exception as error:  # noqa: BLE001, RUF100  # user code: anything may come
        _fail(resolution, f"{cls.__name__}(conf) failed: {_message_of(error)}", error)


def _message_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _fail(resolution: Resolution, reason: str, cause: BaseException | None = None) -> NoReturn:
    what = f"{resolution.key} = {resolution.value}" if resolution.key else resolution.class_path
    end = "" if reason.endswith("?") else "."
    raise LogStoreClassError(f"{what}: {reason}{end}") from cause
