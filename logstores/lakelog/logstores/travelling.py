"""What of a conf may leave the process: the settings that a store reads, and no others.

A Spark conf holds the secrets of everything that a job touches: other storages, databases,
catalogs. File systems and data sources are pickled and sent to other processes and hosts, so what
they carry is chosen by the keys that their store is documented to read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lakelog.logstores.logins import without_logins
from lakelog.logstores.resolution import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPARK: Final = "spark."
_HADOOP: Final = "spark.hadoop."

_OF_ANY: Final = ("lakelog.", "delta.logStore.", "databricks.delta.commitLock.")
_FSSPEC: Final = "lakelog.fsspec."
_S3: Final = ("fs.s3a.", "io.delta.storage.")
_AZURE: Final = ("fs.azure.",)
_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "lakelog.logstores.LocalLogStore": (),
    "lakelog.logstores.MemoryLogStore": (),
    "lakelog.logstores.S3ConditionalLogStore": _S3,
    "lakelog.logstores.S3SingleDriverLogStore": _S3,
    "lakelog.logstores.S3DynamoDBLogStore": _S3,
    "lakelog.logstores.GCSLogStore": ("fs.gs.", "google.cloud.auth."),
    "lakelog.logstores.AzureConditionalLogStore": _AZURE,
    "lakelog.logstores.AzureLeaseLogStore": _AZURE,
    "lakelog.logstores.HDFSLogStore": ("fs.defaultFS", "dfs.", "hadoop.", "kerberos."),
    "lakelog.contrib.alibaba_oss.OSSLogStore": ("fs.oss.",),
    "lakelog.contrib.ibm_cos.IBMCOSLogStore": ("fs.cos.",),
    "lakelog.contrib.oracle_oci.OracleCloudLogStore": ("fs.oci.",),
    "lakelog.contrib.fsspec_store.FsspecLogStore": (_FSSPEC,),
}
"""Class -> what its keys begin with, in addition to those that any store reads."""
_EVERY: Final = ("fs.", "dfs.", *dict.fromkeys(each for of in _FAMILIES.values() for each in of))
_REFERENCE: Final = re.compile(r"\$\{([^}$]+)\}")


def own_settings(conf: Mapping[str, str], class_path: str) -> dict[str, str]:
    """The settings of a conf that a store reads; the whole conf for a class that is not ours.

    Logins of catalogs and services stay behind in either case (`logins`).

    Args:
        conf: the user's.
        class_path: the store's class, `package.module.Class`, as `resolve` names it.
    """
    if class_path not in _FAMILIES:
        return without_logins(conf)
    return _chosen(conf, (*_OF_ANY, *_FAMILIES[class_path]))


def settings_for(
    conf: Mapping[str, str],
    uri: str | None = None,
    also: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
) -> dict[str, str]:
    """The settings of a conf that the store of a URI reads, or any store of ours.

    A store that is not ours may read any key, so for its URIs the conf stays as it is, but for the
    logins of catalogs and services (`logins`).

    Args:
        conf: the user's.
        uri: a table; `None` for all that may come.
        also: more keys that are wanted, or what they begin with, up to a dot.
        named: such that are wanted though they are logins.

    Raises:
        LogStoreConfError: as `resolve`.
    """
    if uri is None:
        return _chosen(conf, (*_OF_ANY, *_EVERY), also, named)
    class_path = resolve(uri, conf).class_path
    if class_path not in _FAMILIES:
        return _without_logins(conf, named)
    return _chosen(conf, (*_OF_ANY, *_FAMILIES[class_path]), also, named)


def _chosen(
    conf: Mapping[str, str],
    families: tuple[str, ...],
    also: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
) -> dict[str, str]:
    # fsspec's options may be secrets, and they begin as the keys of every store do.
    foreign = () if _FSSPEC in families else (_FSSPEC,)
    chosen = {
        key: value
        for key, value in _without_logins(conf, named).items()
        if _is_of(key, (*also, *named))
        or (_bare(key).startswith(families) and not _bare(key).startswith(foreign))
    }
    return _with_references(conf, chosen)


def _without_logins(conf: Mapping[str, str], named: tuple[str, ...]) -> dict[str, str]:
    return without_logins(conf, [key for key in conf if _is_of(key, named)])


def _is_of(key: str, names: tuple[str, ...]) -> bool:
    """Whether a key is one of these, or below one: `a.lake` has no key of `a.lake2`."""
    return any(key == each or key.startswith(f"{each.rstrip('.')}.") for each in names)


def _bare(key: str) -> str:
    return key.removeprefix(_HADOOP).removeprefix(_SPARK)


def _with_references(conf: Mapping[str, str], chosen: dict[str, str]) -> dict[str, str]:
    """Add what Hadoop's `${key}` in a chosen value stands for."""
    open_values = list(chosen.values())
    while open_values:
        for name in _REFERENCE.findall(open_values.pop()):
            for key in (_HADOOP + name, name):
                if key in conf and key not in chosen:
                    chosen[key] = conf[key]
                    open_values.append(conf[key])
    return chosen
