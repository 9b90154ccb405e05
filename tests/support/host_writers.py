"""Processes that commit to one table through the queue of their host, and may be killed.

    python tests/support/host_writers.py TABLE NAME COMMITS [KILL_AT]

Appends COMMITS files, and prints one line for each: its name and the version, or the error. With
KILL_AT the process kills itself in place of that step of its kind: the calls of the operating
system that the queue makes, and the writes of the store, before and after it does them, counted
from 1.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from lakelog.core import DeltaLog, Operation
from lakelog.core.commit.version_writer import CommitWriter
from lakelog.core.transaction import host_queue
from support.tables import add_file

CONF = {"spark.lakelog.commit.host": "true"}
_CALLS = ("mkfifo", "mkdir", "rename", "symlink", "unlink", "readlink", "write")


class _Steps:
    def __init__(self, kill_at: int) -> None:
        self.left = kill_at

    def __call__(self) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


class _System:
    """`os`, with a step before and after each call that changes something."""

    def __init__(self, step: _Steps) -> None:
        self._step = step

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        if name not in _CALLS:
            return call

        def stepping(*args: Any, **kwargs: Any) -> Any:
            self._step()
            result = call(*args, **kwargs)
            self._step()
            return result

        return stepping


def _kill_at(number: int) -> None:
    step = _Steps(number)
    host_queue.os = _System(step)  # type: ignore[assignment]
    write = CommitWriter.write

    def stepping(self: CommitWriter, attempt: Any) -> Any:
        store = self._store
        inner = store.write

        def sending(*args: Any, **kwargs: Any) -> Any:
            step()
            result = inner(*args, **kwargs)
            step()
            return result

        store.write = sending  # type: ignore[method-assign]
        try:
            return write(self, attempt)
        finally:
            del store.write  # type: ignore[method-assign]

    CommitWriter.write = stepping  # type: ignore[method-assign]


def main(table: str, name: str, commits: int, kill_at: int = 0) -> None:
    """Commit."""
    log = DeltaLog.for_table(table, CONF)
    log.update()
    print("ready", flush=True)
    sys.stdin.readline()
    if kill_at:
        _kill_at(kill_at)
    for number in range(commits):
        file = f"{name}-{number}"
        try:
            said = str(log.start_transaction().commit([add_file(file)], Operation.write("Append")))
        except Exception as exc:
            said = type(exc).__name__
        print(f"{file} {said}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
