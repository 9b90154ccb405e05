"""Processes of their own that work on a copy of the store.

They are started by `subprocess` and not by `multiprocessing`: that would run the caller's main
script again, and a fork would copy the threads' locks of storage clients.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import LogStore

PATIENCE = 240.0
"""Seconds after which a child that still runs is ended."""

_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from lakelog.logstores.conformance.processes.children import run_child; run_child()"
)


class Child:
    """A process that runs one function of the kit: `function(store, channel, *arguments)`."""

    def __init__(
        self, task: str, store: LogStore, *arguments: Any, patience: float = PATIENCE
    ) -> None:
        """Start it.

        Args:
            task: `module:function`, the module in this package.
            store: pickled, so that the child has an instance of its own.
            arguments: what JSON can hold.
            patience: seconds after which it is ended.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._watchdog = threading.Timer(patience, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()
        pickled = base64.b64encode(pickle.dumps(store)).decode()
        self.tell([task, pickled, arguments])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    def tell(self, message: Any) -> None:
        """Send a message. One to a child that is dead is lost: `hear` reports it."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()

    def hear(self) -> Any:
        """The next answer.

        Raises:
            EOFError: the child ended, or hung for too long and was ended.
        """
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise EOFError("a process of the check ended; its error output is above")
        return json.loads(line)

    def end(self) -> int:
        """Let it end, and return its exit code, negative for a signal."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        code = self._process.wait()
        self._watchdog.cancel()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code


class Channel:
    """The child's side: messages come by iteration until the parent closes."""

    def __init__(self) -> None:
        # What a library prints is not an answer.
        self._answers, sys.stdout = sys.stdout, sys.stderr

    def __iter__(self) -> Iterator[Any]:
        for line in sys.stdin:
            yield json.loads(line)

    def answer(self, message: Any) -> None:
        """Send a message to the parent."""
        self._answers.write(json.dumps(message) + "\n")
        self._answers.flush()


def run_child() -> None:
    """The life of a child: a task and a store, then whatever the task does."""
    channel = Channel()
    task, pickled, arguments = json.loads(sys.stdin.readline())
    module, _, function = task.partition(":")
    package = __name__.rpartition(".")[0]
    run = getattr(importlib.import_module(f"{package}.{module}"), function)
    run(pickle.loads(base64.b64decode(pickled)), channel, *arguments)
