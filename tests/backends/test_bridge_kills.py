"""The service, or the JVM that asks it, is killed at random moments; what was said stays true.

Each writer keeps the answer for each version: *mine*, *taken* or *unknown*. In the end a
version that was mine has my bytes, and one that was taken has somebody else's, or will never be
mine; and no file is a part of one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lakelog.logstores import CommitOutcomeUnknownError, LocalLogStore
from support.bridge_client import BEHIND, ENDPOINT, RefusalError, ServedStore
from support.examples import SEED
from support.servers.bridge_jvm import run_bridge_jvm

KILLS = int(os.environ.get("LAKELOG_TEST_BRIDGE_KILLS") or (13 if SEED else 2))
"""Of each kind, in each of two turns: in one, beside many programs, they took its time limit."""
WRITERS = 3
SERVE = "from lakelog.cli import main; main()"


class AnswerCount:
    """Counts the answers that all writers got, and says when they are enough."""

    def __init__(self) -> None:
        self._count = threading.Semaphore(0)
        self.enough = threading.Event()

    def more(self) -> None:
        self._count.release()

    def wait_for(self, many: int) -> None:
        for _ in range(many):
            assert self._count.acquire(timeout=120), "no writer gets answers any more"


class Writer(threading.Thread):
    """Writes version after version, and keeps the answer for each."""

    def __init__(self, number: int, store: ServedStore, log: str, answers: AnswerCount) -> None:
        super().__init__()
        self.number, self.store, self.log, self.all = number, store, log, answers
        self.outcomes: dict[int, str] = {}

    def lines(self, version: int) -> list[str]:
        return [f"writer {self.number}, version {version}"] * 200

    def run(self) -> None:
        version = 0
        while not self.all.enough.is_set():
            try:
                self.store.write(f"{self.log}/{version:020d}.json", self.lines(version))
                self.outcomes[version] = "mine"
            except FileExistsError:
                self.outcomes[version] = "taken"
            except CommitOutcomeUnknownError:
                self.outcomes[version] = "unknown"
            except RefusalError as refused:
                # Told that nothing was written, so that the version is tried again.
                assert refused.kind in ("no-service", "IOException"), refused  # noqa: PT017
                continue
            except (OSError, EOFError):
                # The JVM is gone, and with it whoever could have known.
                self.outcomes[version] = "unknown"
            version += 1
            self.all.more()


def check(writers: list[Writer], log: str) -> None:
    store = LocalLogStore()
    found = {each.name: list(store.read(each.path)) for each in store.list_from(f"{log}/")}
    assert any("mine" in each.outcomes.values() for each in writers)
    assert not [name for name in found if not name.endswith(".json")], "drafts are left"
    for writer in writers:
        for version, outcome in writer.outcomes.items():
            lines = found.get(f"{version:020d}.json")
            if outcome == "mine":
                assert lines == writer.lines(version)
            if outcome == "taken":
                assert lines is not None
                assert lines != writer.lines(version)
    for name, lines in found.items():
        assert lines in [each.lines(int(name[:20])) for each in writers], "a part of a commit"


def serving(file: Path) -> subprocess.Popen[str]:
    """The service in a process of its own, which is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, "serve", "--endpoint", str(file)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("# Serving")
    return process


@pytest.fixture
def log(tmp_path: Path) -> str:
    folder = tmp_path / "_delta_log"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bridge"


@pytest.mark.one_day_in(2)
@pytest.mark.soak
@pytest.mark.needs("bridge_jvm")
@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.usefixtures("turn")
def test_kills_of_service_and_jvm_take_nothing_back(log: str, file: Path) -> None:
    chance = random.Random()
    service = serving(file)
    try:
        for _ in range(KILLS):
            with run_bridge_jvm() as jvm:
                conf = {ENDPOINT: str(jvm.endpoint_file), BEHIND: str(file)}
                conf["lakelog.bridge.settle.seconds"] = "60"
                answers = AnswerCount()
                writers = [Writer(n, ServedStore(conf), log, answers) for n in range(WRITERS)]
                for each in writers:
                    each.start()
                answers.wait_for(chance.randint(10, 150))
                service.send_signal(signal.SIGKILL)
                service.communicate()
                service = serving(file)
                answers.wait_for(chance.randint(10, 150))
                jvm.process.send_signal(signal.SIGKILL)
                answers.enough.set()
                for each in writers:
                    each.join()
            check(writers, log)
            for path in Path(log).iterdir():
                path.unlink()
    finally:
        service.kill()
        service.communicate()
