"""Which processes commit as one: those of one host, whatever program they are, and no others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.transaction import host_commit
from lakelog.core.transaction.host_commit import HostCommits
from lakelog.logstores.locks import host_lock

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.transaction.host_queue import HostQueue

HOST = {"spark.lakelog.commit.host": "true"}
_PATIENCE = 60.0
WRITER = """
import sys
from lakelog.core import write_arrow
conf = {"spark.lakelog.commit.host": "true"}
write_arrow(sys.argv[1], {"id": [int(sys.argv[2])]}, mode="append", conf=conf)
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table, with a folder of its own for what waits."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [0]}, mode="append")
    return uri


def _queue(table: str) -> tuple[HostQueue, str]:
    commits = HostCommits(DeltaLog.for_table(table, HOST))
    return commits._queue, commits._key


def _until_waiting(queue: HostQueue, count: int) -> None:
    until = time.monotonic() + _PATIENCE
    while len(queue.waiting()) < count:
        assert time.monotonic() < until, "it does not wait"
        time.sleep(0.01)


def _writer(table: str, number: int, *before: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*before, sys.executable, "-c", WRITER, table, str(number)])


def _rows(table: str) -> list[int]:
    return sorted(DeltaLog.for_table(table).snapshot.to_arrow()["id"].to_pylist())


def test_a_command_line_and_a_program_commit_as_one(table: str, tmp_path: Path) -> None:
    queue, key = _queue(table)
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps({"id": 1}))
    with host_lock(key):
        command = [sys.executable, "-c", "from lakelog.cli import main; main()", "write", table]
        command += [str(rows), "--mode", "append", "--conf", "spark.lakelog.commit.host=true"]
        program = threading.Thread(
            target=write_arrow, args=(table, {"id": [2]}), kwargs={"mode": "append", "conf": HOST}
        )
        line = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _until_waiting(queue, 1)
        program.start()
        _until_waiting(queue, 2)
    program.join(_PATIENCE)
    assert line.wait(_PATIENCE) == 0
    assert _rows(table) == [0, 1, 2]
    assert DeltaLog.for_table(table).snapshot.version == 1


def test_a_network_of_its_own_is_another_host(table: str) -> None:
    queue, key = _queue(table)
    apart = _own_network()
    with host_lock(key):  # whoever is of this host waits
        waits = _writer(table, 1)
        _until_waiting(queue, 1)
        # An address leads to another server there, though the folder for temporary files is one.
        assert _writer(table, 2, *apart).wait(_PATIENCE) == 0
        assert _rows(table) == [0, 2]
        assert len(queue.waiting()) == 1
    assert waits.wait(_PATIENCE) == 0
    assert _rows(table) == [0, 1, 2]


def _own_network() -> list[str]:
    for how in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which(how[0]) and subprocess.run([*how, "true"], check=False).returncode == 0:
            return how
    pytest.skip("a network namespace needs unshare, and the right to make one")


def test_another_root_folder_is_another_host(tmp_path: Path) -> None:
    # As a container that shares the folder for temporary files, and has other files elsewhere.
    script = (
        "import os, sys\n"
        "from lakelog.core.transaction.host_commit import _host\n"
        "if len(sys.argv) > 1: os.chroot(sys.argv[1])\n"
        "print(_host())\n"
    )

    def found(*more: str) -> str:
        command = [sys.executable, "-c", script, *more]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert found() == str(host_commit._host())
    if os.getuid() != 0:
        pytest.skip("only root may change its root folder")
    assert found(str(tmp_path)) != found()
