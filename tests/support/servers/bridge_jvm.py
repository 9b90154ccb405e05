"""A JVM with `io.lakelog.BridgeLogStore`, for `support.bridge_client.ServedStore`."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from lakelog.logstores.service import bridge_jar
from lakelog.logstores.service.endpoint import Endpoint
from support.delta_spark import DELTA, PeerUnavailableError, cache_folder, copied_jars, exclusively
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
    from collections.abc import Iterator

__all__ = ["BridgeJvm", "bridge_jvm", "delta_storage", "install", "run_bridge_jvm"]

_MAIN = Path(__file__).parents[1] / "java" / "BridgeHarness.java"
_HADOOP = ("hadoop-client-api", "hadoop-client-runtime", "commons-logging", "slf4j-api")
_JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True, slots=True)
class BridgeJvm:
    """One that runs."""

    endpoint_file: Path
    """For `ServedStore`: where the JVM listens."""
    process: subprocess.Popen[str]


def delta_storage(version: str = DELTA) -> Path:
    """The jar of Delta's LogStore interface.

    Raises:
        PeerUnavailableError: Maven is missing, or a download failed.
    """
    cache = cache_folder()
    (cache / "jars").mkdir(parents=True, exist_ok=True)
    with exclusively(cache / "delta-storage.lock"):
        folder = cache / "jars" / f"delta-storage-{version}"
        return copied_jars(folder, [f"io.delta:delta-storage:{version}"])[0]


@tool("bridge_jvm")
def install() -> Path:
    """The compiled main, in the cache.

    Raises:
        ServerUnavailableError: Java, its compiler or Maven is missing, or a download failed.
    """
    try:
        delta_storage("3.2.0")
        delta_storage()
    except PeerUnavailableError as error:
        raise ServerUnavailableError(str(error)) from error
    digest = hashlib.sha256(_MAIN.read_bytes() + bridge_jar().read_bytes()).hexdigest()[:12]
    return built(f"bridge-harness-{digest}", _build)


def _build(folder: Path) -> None:
    javac = need_program("javac", "compiling the bridge's harness")
    run_step([javac, "-nowarn", "-cp", _class_path(), "-d", str(folder), str(_MAIN)], cwd=folder)


def _class_path(*more: Path) -> str:
    jars = Path(pyspark.__file__).parent / "jars"
    hadoop = [path for name in _HADOOP for path in sorted(jars.glob(f"{name}-[0-9]*.jar"))]
    return ":".join(map(str, (*more, bridge_jar(), delta_storage(), *hadoop)))


@contextlib.contextmanager
def run_bridge_jvm() -> Iterator[BridgeJvm]:
    """A JVM of its own, until the block ends."""
    main, java = install(), need_program("java", "the bridge")
    argv = [java, *_JAVA, "-cp", _class_path(main), "io.lakelog.BridgeHarness"]
    with (
        tempfile.TemporaryDirectory(prefix="bridge-jvm-") as folder,
        running(argv, cwd=Path(folder), hold_stdin=True) as process,
    ):
        port = int(ready_line(process, "ready ").split()[1])
        file = Path(folder, "jvm")
        Endpoint("", port, "none").write(file)
        yield BridgeJvm(file, process)


@pytest.fixture(scope="session")
def bridge_jvm() -> Iterator[BridgeJvm]:
    """One JVM for all tests of the process."""
    try:
        with run_bridge_jvm() as jvm:
            yield jvm
    except ServerUnavailableError as error:
        pytest.skip(str(error))
