"""Spark's standalone cluster: a master and workers, each a process of its own, on loopback.

The workers have addresses of their own, 127.0.0.1 and 127.0.0.2, so Spark takes them for two hosts:
it starts no speculative copy of a task on the host that has the first.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.process_sessions import cpu_seconds, end_session, members
from support.servers._service import START_SECONDS, ServerUnavailableError, free_port, running
from support.spark_java import submit_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Cluster", "Worker", "run_standalone", "spark_program", "until"]

_CLASSES = "org.apache.spark.deploy"
_HOSTS = ("127.0.0.1", "127.0.0.2")
_PAUSE = 0.05


def spark_program(name: str) -> str:
    """A program of our PySpark: `spark-class`, `spark-submit`."""
    import pyspark

    return str(Path(pyspark.__path__[0]) / "bin" / name)


def until(there: Callable[[], object], what: str, seconds: float = START_SECONDS) -> Any:
    """Look until something is there; what was found.

    Raises:
        ServerUnavailableError: it did not come in time.
    """
    end = time.monotonic() + seconds
    while not (found := there()):
        if time.monotonic() > end:
            raise ServerUnavailableError(f"{what}: not within {seconds:.0f} s")
        time.sleep(_PAUSE)
    return found


@dataclass
class Worker:
    """A worker, and whatever it has started: executors, and their Python."""

    host: str
    process: subprocess.Popen[bytes]
    cpu: float = 0.0

    def runs(self, pid: int) -> bool:
        """Whether a process is one of its own."""
        return any(each.pid == pid for each in members(self.process.pid))

    def kill(self) -> int:
        """`kill -9` for it and all that it has started; how many processes that were."""
        found = members(self.process.pid)
        self.cpu = cpu_seconds(self.process.pid)
        end_session(self.process)
        return len(found)


@dataclass
class Cluster:
    """A master with its workers."""

    url: str
    """`spark://host:port`."""
    _web: str
    _folder: Path
    _cores: int
    workers: list[Worker] = field(default_factory=list)
    cpu: float = 0.0
    """Seconds that workers of the past have used."""

    def state(self) -> dict[str, Any]:
        """What the master says of itself: `workers`, `activeapps`, …"""
        with urllib.request.urlopen(f"{self._web}/json/", timeout=5) as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def fill_up(self) -> None:
        """Have a worker on each host, that has registered itself."""
        for host in _HOSTS:
            if not any(each.host == host for each in self.workers):
                self.workers.append(self._worker(host))
        until(lambda: self._alive() == len(_HOSTS), "the workers")

    def worker_of(self, pid: int) -> Worker:
        """The worker that has started a process."""
        return next(each for each in self.workers if each.runs(pid))

    def kill(self, worker: Worker) -> int:
        """End a worker with all that it has started, at once; how many processes that were."""
        self.workers.remove(worker)
        count = worker.kill()
        self.cpu += worker.cpu
        return count

    def _alive(self) -> int:
        """A worker that was killed is there until the master misses its connection."""
        workers = {each["id"]: each["state"] for each in self.state()["workers"]}
        return sum(1 for state in workers.values() if state == "ALIVE")

    def _worker(self, host: str) -> Worker:
        number = len(list(self._folder.iterdir()))
        home = self._folder / f"worker-{number}"
        home.mkdir()
        argv = [spark_program("spark-class"), f"{_CLASSES}.worker.Worker", "--host", host]
        argv += ["--cores", str(self._cores), "--memory", "4g", "--work-dir", str(home)]
        argv += ["--webui-port", str(free_port()), self.url]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(host),
                start_new_session=True,
            )
        return Worker(host, process)


@contextlib.contextmanager
def run_standalone(cores: int = 2) -> Iterator[Cluster]:
    """A cluster of two workers, until the block ends.

    Args:
        cores: how many each of the workers says it has.

    Raises:
        ServerUnavailableError: it did not start.
    """
    port, web = free_port(), free_port()
    argv = [spark_program("spark-class"), f"{_CLASSES}.master.Master", "--host", _HOSTS[0]]
    argv += ["--port", str(port), "--webui-port", str(web)]
    with tempfile.TemporaryDirectory(prefix="standalone-", ignore_cleanup_errors=True) as folder:
        url = f"spark://{_HOSTS[0]}:{port}"
        cluster = Cluster(url, f"http://{_HOSTS[0]}:{web}", Path(folder), cores)

        def ready() -> bool:
            with contextlib.suppress(OSError):
                return bool(cluster.state()["status"] == "ALIVE")
            return False

        with running(argv, ready=ready, env=_environment(_HOSTS[0])):
            try:
                cluster.fill_up()
                yield cluster
            finally:
                for each in list(cluster.workers):
                    cluster.kill(each)


def _environment(host: str) -> dict[str, str]:
    """Of a daemon, without a word of which Python executors have: the driver says that."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    own.pop("PYTHONPATH", None)
    java = submit_options().partition(" -D")[0]
    return own | {
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": java,
    }
