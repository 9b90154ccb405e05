"""HDFS: a real NameNode and a real DataNode in one JVM, from Hadoop's own mini cluster."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.servers._service import (
    ServerUnavailableError,
    built,
    need_program,
    ready_line,
    run_step,
    running,
)
from support.tools import tool

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping

VERSION = "3.5.0"
URI_VARIABLE = "LAKELOG_TEST_HDFS_URI"
"""`hdfs://host:port` of a cluster that the tests may fill below /lakelog-test."""
HTTP_VARIABLE = "LAKELOG_TEST_HDFS_HTTP"
"""`host:port` of its NameNode's HTTP server; without it the tests write without WebHDFS."""

_MAIN = Path(__file__).with_name("MiniHdfs.java")
_JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-Xlog:disable", "-Xshare:auto")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lakelog.tests</groupId><artifactId>mini-hdfs</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId>
    <version>{version}</version>
  </dependency></dependencies>
</project>
"""


@dataclass(frozen=True, slots=True)
class HdfsCluster:
    """An HDFS that tests may fill."""

    uri: str
    """`hdfs://host:port`, the NameNode's RPC address."""
    http: str | None
    """`host:port` of the NameNode's HTTP server."""
    user: str
    """Who owns the root, and may do everything."""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    """The mini cluster; `None` where the environment named a cluster."""

    @property
    def rpc(self) -> tuple[str, int]:
        """Host and port of the NameNode's RPC server."""
        host, _, port = self.uri.removeprefix("hdfs://").partition(":")
        return host, int(port or 8020)

    @property
    def conf(self) -> dict[str, str]:
        """The Spark conf that leads to it, in Hadoop's names."""
        found = {"spark.hadoop.fs.defaultFS": self.uri}
        if self.http:
            found["spark.hadoop.dfs.namenode.http-address"] = self.http
        return found

    def order(self, command: str) -> None:
        """Let the mini cluster do what only its superuser may; see `MiniHdfs.java`.

        Skips the test where the cluster is not ours.
        """
        if self.process is None or self.process.stdin is None or self.process.stdout is None:
            pytest.skip("only the tests' own mini cluster takes orders")
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer == "done", answer


@dataclass(frozen=True, slots=True)
class HdfsPair:
    """A name service, `pair`, of two NameNodes."""

    first: HdfsCluster
    """The active one at the start."""
    second: HdfsCluster

    @property
    def conf(self) -> dict[str, str]:
        """The Spark conf that leads to it, in Hadoop's names."""
        found = {
            "spark.hadoop.fs.defaultFS": "hdfs://pair",
            "spark.hadoop.dfs.nameservices": "pair",
            "spark.hadoop.dfs.ha.namenodes.pair": "nn1,nn2",
        }
        for name, each in (("nn1", self.first), ("nn2", self.second)):
            rpc = each.uri.removeprefix("hdfs://")
            found[f"spark.hadoop.dfs.namenode.rpc-address.pair.{name}"] = rpc
            found[f"spark.hadoop.dfs.namenode.http-address.pair.{name}"] = str(each.http)
        return found


@tool("hdfs")
def install() -> Path:
    """The jars and the class archive, in the cache (half a minute, once)."""
    return built(f"hdfs-{VERSION}-{_MAIN.stat().st_size}", _build)


def _build(folder: Path) -> None:
    maven = need_program("mvn", "installing HDFS")
    javac = need_program("javac", "compiling the mini cluster's main")
    java = need_program("java", "HDFS")
    (folder / "pom.xml").write_text(_POM.format(version=VERSION))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'packed'}"]
    run_step([maven, "-q", "-B", *goal], cwd=folder)
    _store_uncompressed(folder / "packed", folder / "jars")
    classpath = f"{folder / 'jars'}/*"
    run_step([javac, "-cp", classpath, "-d", str(folder / "classes"), str(_MAIN)], cwd=folder)
    # The archive of loaded classes takes class paths of jars only, and these by relative name.
    with zipfile.ZipFile(folder / "jars" / "mini-hdfs.jar", "w") as jar:
        for each in sorted((folder / "classes").iterdir()):
            jar.write(each, each.name)
    with tempfile.TemporaryDirectory(prefix="hdfs-") as data:
        argv = _command(java, folder, data, "-XX:ArchiveClassesAtExit=classes.jsa")
        run_step([*argv, "1"], cwd=folder)  # its standard input is empty: it starts, and ends


def _store_uncompressed(packed: Path, stored: Path) -> None:
    """Copy jars without compression: inflating the classes is most of the start otherwise."""
    stored.mkdir()
    for path in sorted(packed.iterdir()):
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(stored / path.name, "w") as new:
            names: set[str] = set()
            for entry in old.infolist():
                if entry.filename not in names:
                    names.add(entry.filename)
                    new.writestr(entry.filename, old.read(entry))
        path.unlink()


def _command(java: str, folder: Path, data: str, *options: str) -> list[str]:
    jars = sorted(f"jars/{path.name}" for path in (folder / "jars").glob("*.jar"))
    return [java, *_JAVA, *options, "-cp", ":".join(jars), "MiniHdfs", data]


@contextlib.contextmanager
def run_hdfs_pair() -> Iterator[HdfsPair]:
    """Two NameNodes, one active and one standby, over one DataNode, until the block ends."""
    with _running("2", {}) as (process, addresses):
        first, second = (HdfsCluster(uri, http, _user(), process) for uri, http in addresses)
        yield HdfsPair(first, second)


@contextlib.contextmanager
def run_hdfs(**settings: str) -> Iterator[HdfsCluster]:
    """A cluster of its own, empty, until the block ends.

    Args:
        settings: of the servers, with `__` for each dot and `_` for each hyphen:
            `dfs__permissions__enabled="false"`.
    """
    with _running("1", settings) as (process, ((uri, http),)):
        yield HdfsCluster(uri, http, _user(), process)


@contextlib.contextmanager
def _running(
    namenodes: str, settings: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[str], list[tuple[str, str]]]]:
    """The process, and the addresses of each NameNode."""
    folder = install()
    java = need_program("java", "HDFS")
    with tempfile.TemporaryDirectory(prefix="hdfs-") as data:
        options = ("-XX:TieredStopAtLevel=1", "-XX:SharedArchiveFile=classes.jsa")
        argv = [*_command(java, folder, data, *options), namenodes]
        for key, value in settings.items():
            argv.append(f"{key.replace('__', '.').replace('_', '-')}={value}")
        # Without the user's own settings, and as the user that owns the root.
        env = {"HADOOP_CONF_DIR": "", "HADOOP_HOME": "", "HADOOP_USER_NAME": _user()}
        with running(argv, cwd=folder, env=env, hold_stdin=True) as process:
            addresses = json.loads(ready_line(process, "ready ").removeprefix("ready "))
            yield (
                process,
                [(f"hdfs://127.0.0.1:{n['rpc']}", f"127.0.0.1:{n['http']}") for n in addresses],
            )


def _user() -> str:
    import getpass

    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsCluster]:
    """An HDFS for the session: the one that the environment names, or a mini cluster."""
    uri = os.environ.get(URI_VARIABLE)
    if uri:
        yield HdfsCluster(uri.rstrip("/"), os.environ.get(HTTP_VARIABLE), _user())
        return
    try:
        with run_hdfs() as cluster:
            yield cluster
    except ServerUnavailableError as error:
        pytest.skip(str(error))
