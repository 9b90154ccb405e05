"""Writers that race for a name: in threads, and in processes of their own.

The processes are started by `subprocess` and not by `multiprocessing`: that would run the
caller's main script again, and a fork would copy the threads' locks of storage clients.
"""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from lakelog.logstores.conformance._expect import PromiseBrokenError

if TYPE_CHECKING:
    from lakelog.logstores._contract import LogStore

__all__ = ["ProcessRace", "Racer", "attempt", "payload"]

Racer = Callable[[str], str]
"""Tries to create a path; says "won", "exists", or what else happened."""

HEAD_START = 0.01
"""Seconds between the call to a round and its start, so that all have heard it."""
PATIENCE = 240.0
"""Seconds after which a race that hangs is ended."""

_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from lakelog.logstores.conformance._racers import run_child; run_child()"
)


def payload(who: int, lines: int = 200) -> list[str]:
    """Lines that tell their writer, many enough that a mixture would show."""
    return [f"writer {who} line {number}" for number in range(lines)]


def attempt(store: LogStore, path: str, who: int) -> str:
    """Try to create `path` with the writer's own lines."""
    try:
        store.write(path, payload(who))
    except FileExistsError:
        return "exists"
    except Exception as error:  # noqa: BLE001, RUF100  # the judge wants to name it
        return f"{type(error).__name__}: {error}"
    return "won"


class ProcessRace:
    """Processes that wait for a path, and start on it at the same moment."""

    def __init__(self, store: LogStore, count: int) -> None:
        pickled = base64.b64encode(pickle.dumps(store)).decode()
        self._children = [_spawn() for _ in range(count)]
        self._watchdog = threading.Timer(PATIENCE, self._kill)
        self._watchdog.start()
        for who, child in enumerate(self._children):
            _tell(child, [pickled, who])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._watchdog.cancel()
        for child in self._children:
            if child.stdin is not None:
                child.stdin.close()
        for child in self._children:
            child.wait()
            if child.stdout is not None:
                child.stdout.close()

    def run(self, path: str) -> list[str]:
        """One round: the outcome of each process."""
        for child in self._children:  # each says once that it is up, before its first round
            _tell(child, [path, time.monotonic() + HEAD_START])
        return [_hear(child) for child in self._children]

    def _kill(self) -> None:
        for child in self._children:
            child.kill()


def _spawn() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def _tell(child: subprocess.Popen[str], message: list[object]) -> None:
    if child.stdin is not None:
        child.stdin.write(json.dumps(message) + "\n")
        child.stdin.flush()


def _hear(child: subprocess.Popen[str]) -> str:
    line = child.stdout.readline() if child.stdout is not None else ""
    if not line:
        raise PromiseBrokenError(
            "a racing process died, or hung for too long; its error output is above"
        )
    return str(json.loads(line))


def run_child() -> None:
    """The life of a racing process: a store, then paths until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    pickled, who = json.loads(sys.stdin.readline())
    store: LogStore = pickle.loads(base64.b64decode(pickled))
    for line in sys.stdin:
        path, start = json.loads(line)
        while time.monotonic() < start:  # a sleep would wake up too unevenly
            pass
        answers.write(json.dumps(attempt(store, path, who)) + "\n")
        answers.flush()
