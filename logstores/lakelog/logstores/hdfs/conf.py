"""Where an HDFS is: Hadoop's own settings, from its conf folder and from the Spark conf.

The files are `core-site.xml` and `hdfs-site.xml` of `$HADOOP_CONF_DIR`, else of
`$HADOOP_HOME/etc/hadoop`; the Spark conf's `spark.hadoop.*` lie over them, as they do in Spark.
"""

from __future__ import annotations

import getpass
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from lakelog.logstores.errors import InconsistentLogStoreConfError, LogStoreConfError
from lakelog.logstores.locations import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

_HADOOP: Final = "spark.hadoop."
_FAMILIES: Final = ("fs.", "dfs.", "hadoop.")
_RPC_PORT: Final = "8020"
_REFERENCE: Final = re.compile(r"\$\{([^}\s]+)\}")
_DEPTH: Final = 20
_ANY_HOST: Final = ("0.0.0.0", "::", "[::]", "")  # noqa: S104, RUF100  # an address to bind to


@dataclass(frozen=True, slots=True)
class NameService:
    """One HDFS, as its client finds it."""

    authority: str
    """The part of its URIs: `host:port`, or the name of a service."""
    namenodes: tuple[str, ...]
    """`host:port` of each NameNode's RPC server."""
    web: tuple[str, ...]
    """`host:port` of each NameNode's HTTP server; empty where WebHDFS can't be used."""
    why_no_web: str
    """Why `web` is empty, for messages."""


@dataclass(frozen=True, slots=True)
class HadoopConf:
    """Hadoop's settings, merged."""

    settings: Mapping[str, str] = field(repr=False)
    folder: str | None
    """The folder of the XML files; `None` without a conf folder."""
    principal: str | None = None
    """The identity for Kerberos (`spark.kerberos.principal`)."""
    keytab: str | None = None
    """The file with its key (`spark.kerberos.keytab`); without it, the ticket cache."""

    @property
    def default_authority(self) -> str | None:
        """That of `fs.defaultFS`, if it is an HDFS."""
        scheme, _, rest = self.settings.get("fs.defaultFS", "").partition("://")
        return rest.split("/", 1)[0] or None if scheme == "hdfs" else None

    @property
    def user(self) -> str:
        """The user name given to the NameNode where it asks for no proof."""
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()

    @property
    def is_secure(self) -> bool:
        """Whether the cluster requires Kerberos."""
        mode = self.settings.get("hadoop.security.authentication", "simple")
        return mode.strip().lower() != "simple"

    def service(self, authority: str) -> NameService:
        """The NameNodes of an authority, which may be `host:port`, a host, or a name service.

        Raises:
            LogStoreConfError: a name service without addresses.
        """
        namenodes, web = self._single(authority)
        ids = _names(self.settings.get(f"dfs.ha.namenodes.{authority}", ""))
        if ids:
            namenodes = [self._rpc_address(authority, each) for each in ids]
            web = [
                self._web_address(address, f".{authority}.{each}")
                for each, address in zip(ids, namenodes, strict=True)
            ]
        why = self._why_no_web()
        found = () if why else tuple(each for each in web if each)
        if not found and not why:
            why = "no dfs.namenode.http-address is set for it"
        return NameService(authority, tuple(namenodes), found, why)

    def _single(self, authority: str) -> tuple[list[str], list[str]]:
        """A NameNode that stands alone."""
        known = _names(self.settings.get("dfs.nameservices", ""))
        if authority in known:
            address = self.settings.get(f"dfs.namenode.rpc-address.{authority}", "").strip()
            address = address or f"{authority}:{_RPC_PORT}"
            return [address], [self._web_address(address, f".{authority}")]
        host, _, port = authority.rpartition(":") if ":" in authority else (authority, "", "")
        address = f"{host}:{port or _RPC_PORT}"
        # The key without a suffix speaks of one cluster: the default one.
        theirs = self.default_authority not in (None, authority)
        return [address], [] if theirs else [self._web_address(address, "")]

    def _rpc_address(self, service: str, node: str) -> str:
        key = f"dfs.namenode.rpc-address.{service}.{node}"
        address = self.settings.get(key, "").strip()
        if not address:
            raise LogStoreConfError(
                f"dfs.ha.namenodes.{service} names {node!r}, but {key} is not set: give it "
                f"host:port, in {self.folder or 'the Hadoop conf folder'} or as spark.hadoop.{key}"
            )
        return address if ":" in address else f"{address}:{_RPC_PORT}"

    def _web_address(self, rpc: str, suffix: str) -> str:
        address = self.settings.get(f"dfs.namenode.http-address{suffix}", "").strip()
        host, _, port = address.rpartition(":")
        return f"{rpc.rpartition(':')[0]}:{port}" if address and host in _ANY_HOST else address

    def _why_no_web(self) -> str:
        if self.is_secure:
            return (
                "the cluster requires Kerberos, which is supported on the NameNode's RPC port only"
            )
        if self.settings.get("dfs.http.policy", "").strip().upper() == "HTTPS_ONLY":
            return "dfs.http.policy is HTTPS_ONLY"
        if self.settings.get("dfs.webhdfs.enabled", "").strip().lower() == "false":
            return "dfs.webhdfs.enabled is false"
        return ""


def split_uri(uri: str, default: str | None) -> tuple[str, str]:
    """Authority and path of `hdfs://authority/path`, `hdfs:///path` or `hdfs:/path`.

    Args:
        uri: what a user wrote. Nothing in it is percent-decoded.
        default: the authority of URIs that have none.

    Raises:
        LogStoreConfError: another scheme, or a relative path.
        LogStoreConfError: no authority, and no default.
    """
    scheme, _, rest = uri.partition(":")
    if scheme.lower() == "viewfs":
        raise LogStoreConfError(
            f"{shown(uri)}: viewfs is not supported, because Hadoop refuses a rename between two "
            "of its mounts. Give the hdfs:// URI that the mount points to."
        )
    if scheme.lower() != "hdfs" or not rest.startswith("/"):
        raise LogStoreConfError(
            f"{shown(uri)} is not a path of HDFS: give hdfs://namenode:port/path"
        )
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    authority = authority or default or ""
    if not authority:
        raise LogStoreConfError(
            f"{shown(uri)} names no NameNode, and fs.defaultFS is not set to an hdfs:// URI. Name "
            "one in the URI, set HADOOP_CONF_DIR, or set spark.hadoop.fs.defaultFS"
        )
    return authority, path or "/"


def hadoop_conf(conf: Mapping[str, str]) -> HadoopConf:
    """The settings in force for a Spark conf.

    Raises:
        LogStoreConfError: a file of the conf folder is not a Hadoop configuration.
        InconsistentLogStoreConfError: a key of the Spark conf has two values.
    """
    folder = _folder()
    found: dict[str, str] = {}
    final: set[str] = set()
    for name in ("core-site.xml", "hdfs-site.xml") if folder else ():
        path = Path(folder or "", name)
        if path.is_file():
            _read(path, found, final)
    found.update(_overlay(conf))
    return HadoopConf(
        {key: _resolved(value, found) for key, value in found.items()},
        folder,
        conf.get("spark.kerberos.principal"),
        conf.get("spark.kerberos.keytab"),
    )


def _folder() -> str | None:
    if os.environ.get("HADOOP_CONF_DIR"):
        return os.environ["HADOOP_CONF_DIR"]
    home = os.environ.get("HADOOP_HOME")
    return f"{home}/etc/hadoop" if home else None


def _read(path: Path, found: dict[str, str], final: set[str]) -> None:
    try:
        root = ElementTree.fromstring(path.read_bytes())  # noqa: S314, RUF100  # the user's own
    except (ElementTree.ParseError, OSError) as error:
        raise LogStoreConfError(
            f"{path} can't be read as a Hadoop configuration: {error}. Fix it, or point "
            "HADOOP_CONF_DIR elsewhere."
        ) from error
    if root.tag != "configuration":
        raise LogStoreConfError(f"{path} is not a Hadoop configuration: its root is <{root.tag}>")
    for each in root.iter("property"):
        name, value = (each.findtext("name") or "").strip(), each.findtext("value")
        if not name or value is None or name in final:
            continue
        found[name] = value.strip()
        if (each.findtext("final") or "").strip() == "true":
            final.add(name)


def _overlay(conf: Mapping[str, str]) -> dict[str, str]:
    bare = {key: value for key, value in conf.items() if key.startswith(_FAMILIES)}
    long = {
        key.removeprefix(_HADOOP): value for key, value in conf.items() if key.startswith(_HADOOP)
    }
    for key in sorted(bare.keys() & long.keys()):
        if bare[key] != long[key]:
            raise InconsistentLogStoreConfError(
                f"{_HADOOP}{key} and {key} have two values. Keep one of them."
            )
    return {key: value.strip() for key, value in {**bare, **long}.items()}


def _resolved(value: str, settings: Mapping[str, str]) -> str:
    """Put in what `${key}` and `${env.NAME}` stand for; leave those without a value."""

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("env."):
            return os.environ.get(name.removeprefix("env."), match[0])
        return settings.get(name, match[0])

    for _ in range(_DEPTH):
        new = _REFERENCE.sub(replace, value)
        if new == value:
            break
        value = new
    return value


def _names(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]
