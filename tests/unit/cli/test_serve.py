"""`lakelog serve`: what it prints, whom it serves, how it ends."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LogStoreError
from lakelog.logstores.service import bridge_jar
from support.bridge_client import ENDPOINT, ServedStore
from support.terminal import lakelog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process, and the lines that it prints."""
    command = [sys.executable, "-c", "from lakelog.cli import main; main()", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, [process.stdout.readline().rstrip() for _ in range(4)]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_ended_and_prints_what_a_session_needs(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "bridge"
    with serving("--endpoint", str(file)) as (process, lines):
        assert lines[1:] == [
            f"spark.jars {bridge_jar()}",
            "spark.delta.logStore.class io.lakelog.BridgeLogStore",
            f"spark.hadoop.lakelog.bridge.endpoint {file}",
        ]
        ServedStore({ENDPOINT: str(file)}).write(str(tmp_path / "0.json"), ["x"])
        second = lakelog("serve", "--endpoint", str(file))
        assert second.code == 2
        assert "running already" in second.err
        process.send_signal(number)
        assert process.wait(60) == 0
    assert not file.exists()
    assert (tmp_path / "0.json").read_text() == "x\n"


def test_its_conf_says_what_is_behind_the_bridge(tmp_path: Path) -> None:
    file = tmp_path / "bridge"
    conf = "spark.delta.logStore.s3a.impl=no.such.Store"
    with serving("--endpoint", str(file), "--tcp", "--conf", conf):
        store = ServedStore({ENDPOINT: str(file)})
        with pytest.raises(LogStoreError, match=r"no\.such\.Store"):
            store.write("s3a://b/t/_delta_log/0.json", ["x"])


def test_a_conf_that_is_wrong_is_reported_at_the_start(tmp_path: Path) -> None:
    wrong = lakelog(
        "serve", "--endpoint", str(tmp_path / "b"), "--conf", "spark.delta.logStore.clas=x"
    )
    assert wrong.code == 2
    assert "did you mean spark.delta.logStore.class" in wrong.err
    assert not (tmp_path / "b").exists()
