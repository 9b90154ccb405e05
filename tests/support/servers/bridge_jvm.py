"""A JVM with `io.lakelog.BridgeLogStore`, for `support.bridge_client.ServedStore`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
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
    from collections.abc import Iterator, Sequence

_MAIN = Path(__file__).parents[1] / "java" / "BridgeHarness.java"
_HADOOP = ("hadoop-client-api", "hadoop-client-runtime", "commons-logging", "slf4j-api")
_HARNESS = "io.lakelog.BridgeHarness"
_AS_A_USER = """
import ctypes, os, sys
prctl = getattr(ctypes.CDLL(None), "prctl", None)
for capability in (1, 2) if prctl and os.geteuid() == 0 else ():
    prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""To root too, a file that belongs to somebody else is closed: without CAP_DAC_OVERRIDE and
CAP_DAC_READ_SEARCH."""
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
    compile_java(_MAIN, folder)


def compile_java(source: Path, folder: Path) -> None:
    """Compile a file against Delta's, Hadoop's and our classes.

    Raises:
        ServerUnavailableError: there is no compiler, or it failed.
    """
    javac = need_program("javac", "compiling for the bridge")
    run_step([javac, "-nowarn", "-cp", class_path(), "-d", str(folder), str(source)], cwd=folder)


def class_path(*more: Path, delta: str = DELTA) -> str:
    jars = Path(pyspark.__file__).parent / "jars"
    hadoop = [path for name in _HADOOP for path in sorted(jars.glob(f"{name}-[0-9]*.jar"))]
    return ":".join(map(str, (*more, bridge_jar(), delta_storage(delta), *hadoop)))


@contextlib.contextmanager
def run_bridge_jvm(delta: str = DELTA, before: Sequence[Path] = ()) -> Iterator[BridgeJvm]:
    """A JVM of its own, until the block ends.

    Args:
        delta: the version of delta-storage.
        before: what comes first on the class path.
    """
    main, java = install(), need_program("java", "the bridge")
    classes = class_path(*before, main, delta=delta)
    argv = [sys.executable, "-c", _AS_A_USER, java, *_JAVA, "-cp", classes, _HARNESS]
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
    """One JVM for all tests of the process, with the delta-storage that the environment names."""
    try:
        with run_bridge_jvm(os.environ.get("LAKELOG_TEST_BRIDGE_DELTA", DELTA)) as jvm:
            yield jvm
    except ServerUnavailableError as error:
        pytest.skip(str(error))
