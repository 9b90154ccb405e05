"""`io.lakelog.BridgeLogStore` keeps what Delta asks of a LogStore in the JVM.

The cases are those of Delta's own suites for its stores, told afresh in `java/LogStoreCases.java`.
Delta's store for local files is held to them, too, but for those marked `@BridgeOnly`, where ours
promise more (of writers at one moment, one wins): what passes there is what Delta's callers are
used to.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lakelog.logstores.service import BRIDGE_CLASS, LogStoreService
from support.servers._service import ServerUnavailableError, need_program
from support.servers.bridge_jvm import class_path

SOURCE = Path(__file__).parents[1] / "support" / "java" / "LogStoreCases.java"
FOUND = re.findall(r"^( +@BridgeOnly\n)? +void (\w+_\w+)\(", SOURCE.read_text(), re.MULTILINE)
DELTAS = "io.delta.storage.HDFSLogStore"
CASES = [(kind, name) for kind in (BRIDGE_CLASS, DELTAS) for only, name in FOUND
         if kind == BRIDGE_CLASS or not only]  # fmt: skip

pytestmark = pytest.mark.needs("bridge_jvm")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Of each class and case what went wrong, in one JVM for all."""
    try:
        java = need_program("java", "the bridge")
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("cases")
    with LogStoreService(endpoint_file=folder / "bridge") as service:
        command = [java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-cp", class_path(), str(SOURCE), str(service.endpoint_file), str(folder)]
        done = subprocess.run(
            [*command, BRIDGE_CLASS, DELTAS],
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {(kind, name): failure for kind, name, failure in lines}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_store_of_the_jvm(results: dict[tuple[str, str], str], kind: str, name: str) -> None:
    assert results[kind, name] == ""


def test_every_case_is_played(results: dict[tuple[str, str], str]) -> None:
    assert sorted(results) == sorted(CASES)
