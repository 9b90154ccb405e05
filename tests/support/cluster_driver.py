"""The test's end of a `support.cluster_job`: what is asked, what is answered, what stops."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.process_sessions import cpu_seconds, end_session, members
from support.servers.standalone import until
from support.spark_confs import CONF
from support.spark_java import submit_options
from support.spark_python import WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Driver", "Stop", "kill_executor", "run_driver"]

_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Stop:
    """Where tasks of a command stop, and what is known of them."""

    folder: Path
    function: str
    more: tuple[tuple[str, Any], ...] = ()

    @property
    def asked(self) -> dict[str, Any]:
        """As the job takes it."""
        return {"folder": str(self.folder), "in": self.function, **dict(self.more)}

    def go(self) -> None:
        """Let all go on."""
        (self.folder / "go").touch()

    def pids(self) -> list[int]:
        """The Python processes of tasks that have stopped."""
        return [int(each.name.rpartition("-")[2]) for each in self.folder.glob("stopped-*")]


@dataclass
class Driver:
    """A driver of its own."""

    process: subprocess.Popen[str]
    _log: Path
    dead: bool = False

    def begin(self, command: str, path: str, stop: Stop | None = None, **more: Any) -> None:
        """Ask for a command, and don't wait for it."""
        asked = {"do": command, "path": path, **more}
        if stop is not None:
            asked["stop"] = stop.asked
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """`{"gave": …}` or `{"error": text}` of the command that was begun."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the driver ended:\n{self.said()}"
        found: dict[str, Any] = json.loads(line)
        return found

    def do(self, command: str, path: str, stop: Stop | None = None, **more: Any) -> Any:
        """Have a command done; what it gave."""
        self.begin(command, path, stop, **more)
        return self.gave()

    def gave(self) -> Any:
        """What the command that was begun gave, which did not fail."""
        answer = self.answer()
        assert "error" not in answer, f"{answer['error']}\n{self.said()}"
        return answer["gave"]

    def stopped(self, stop: Stop) -> int:
        """Wait until a task has stopped; its Python process."""
        found = until(lambda: stop.pids() or self._has_answered(), "a task that stops", 200)
        assert found is not True, f"no task stopped: {self.answer()}\n{self.said()}"
        return int(found[0])

    def _has_answered(self) -> bool:
        """Also where it has ended."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def said(self) -> str:
        """The end of its standard error."""
        return self._log.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        """`kill -9` for the driver and its JVM, at once."""
        self.dead = True
        end_session(self.process)


@contextlib.contextmanager
def run_driver(conf: Mapping[str, str], python: str = WORKERS) -> Iterator[Driver]:
    """A driver until the block ends.

    Args:
        conf: of Spark, with the master.
        python: of the executors.
    """
    java = submit_options()
    full = {
        **CONF,
        "spark.driver.memory": "700m",
        "spark.driver.extraJavaOptions": "-Xmn200m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executor.extraJavaOptions": java.partition(" -D")[0],
        "spark.lakelog.write.path": "arrow",
        **conf,
    }
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    env |= {"SPARK_SUBMIT_OPTS": java, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    with tempfile.NamedTemporaryFile("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "support.cluster_job", json.dumps(full)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=_TESTS,
            env=env,
            start_new_session=True,
        )
        driver = Driver(process, Path(log.name))
        try:
            yield driver
        finally:
            print(f"the driver's processes took {cpu_seconds(process.pid):.1f} s of CPU")
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            if not driver.dead:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(20)
                end_session(process)


def kill_executor(driver: Driver, pid: int) -> int:
    """`kill -9` for the executor of a `local-cluster` whose Python this is, and for its Python.

    Returns:
        How many processes that were.
    """
    everyone = {each.pid: each for each in members(driver.process.pid)}
    executor = everyone[pid]
    while executor.name != "java":
        executor = everyone[executor.parent]
    below = {executor.pid}
    while more := {each.pid for each in everyone.values() if each.parent in below} - below:
        below |= more
    for each in (executor.pid, *below):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return len(below)
