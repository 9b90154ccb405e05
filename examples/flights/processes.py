"""The child processes: start them, hear them, and never leave one behind."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from settings import Settings

_HERE = Path(__file__).resolve().parent
_SILENCE = 180
"""Seconds after which a process that says nothing counts as stuck."""
_LAST_LINES = 30
"""A Python traceback and, above it, what the JVM said; its frames are left out."""


class ChildError(Exception):
    """A child process failed; the message has the last lines of its log."""


class Team:
    """The processes of one run. As a context manager it ends all of them, whatever happens."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._messages: queue.Queue[tuple[str, dict[str, Any] | None]] = queue.Queue()
        self._done: set[str] = set()

    def start(self, name: str, script: str, python: str | None = None) -> None:
        """Start a process; `python` is that of another environment, with a PySpark of its own."""
        log = (self.log_of(name)).open("w", encoding="utf-8")
        with log:
            self._processes[name] = subprocess.Popen(
                [python or sys.executable, str(_HERE / script), self._settings.to_json(), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=_environment(foreign=python is not None),
                # Ctrl-C reaches us alone, and we end the group: Python and its JVM.
                start_new_session=True,
            )
        stdout = self._processes[name].stdout
        threading.Thread(target=self._listen, args=(name, stdout), daemon=True).start()

    def log_of(self, name: str) -> Path:
        return self._settings.logs / f"{name.replace(' ', '-')}.log"

    def tell(self, name: str, word: str) -> None:
        stdin = self._processes[name].stdin
        if stdin is not None:
            # One that is gone is reported by `messages`.
            with contextlib.suppress(BrokenPipeError):
                stdin.write(word + "\n")
                stdin.flush()

    def tell_all(self, word: str) -> None:
        for name in self._processes:
            self.tell(name, word)

    def messages(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the processes say, until all have said `done`.

        Raises:
            ChildError: one ended before that, or nobody said anything for three minutes.
        """
        while len(self._done) < len(self._processes):
            try:
                name, message = self._messages.get(timeout=_SILENCE)
            except queue.Empty:
                running = sorted(self._processes.keys() - self._done)
                raise ChildError(
                    f"no word for {_SILENCE} s from {', '.join(running)}\n"
                    + self._last_lines(running[0])
                ) from None
            if message is None:
                if name not in self._done:
                    raise self._failure(name)
                continue
            if message["what"] == "done":
                self._done.add(name)
            yield name, message

    def _listen(self, name: str, stdout: IO[str]) -> None:
        for line in stdout:
            self._messages.put((name, json.loads(line)))
        self._messages.put((name, None))

    def _failure(self, name: str) -> ChildError:
        try:
            code = self._processes[name].wait(timeout=10)
        except subprocess.TimeoutExpired:
            return ChildError(f"{name} closed its output before it was done")
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        return ChildError(f"{name} failed ({how})\n{self._last_lines(name)}")

    def _last_lines(self, name: str) -> str:
        path = self.log_of(name)
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        lines = [line for line in lines if not line.startswith("\tat ")]
        shown = "\n".join(f"  {line}" for line in lines[-_LAST_LINES:])
        return f"last lines of {path}:\n{shown}" if shown else f"{path} is empty"

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
            for process in self._processes.values():
                # The group outlives its leader: a JVM may still be in it.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
            for process in self._processes.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=patience)
        for process in self._processes.values():
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _environment(*, foreign: bool) -> dict[str, str]:
    """Ours; without what would lead another environment to our PySpark."""
    ours = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_", "SPARK_CONF_DIR", "VIRTUAL_ENV")
    return {k: v for k, v in os.environ.items() if not (foreign and k.startswith(ours))}
