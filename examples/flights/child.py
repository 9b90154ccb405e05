"""The child's side of the talk with the main process: one JSON object a line, both ways."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_MOST_RUNS = 20


class Child:
    """What a process of the demo says and hears.

    Its stdout belongs to this talk; whatever else prints there (Spark, the JVM) goes to stderr,
    which is the process's log file.
    """

    def __init__(self) -> None:
        self.settings = Settings.from_json(sys.argv[1])
        self.name = sys.argv[2]
        self._go = threading.Event()
        self.stopped = threading.Event()
        self.turns = threading.Semaphore(0)
        """One for each commit that the main process has asked for."""
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        os.dup2(2, 1)
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, what: str, **values: Any) -> None:
        """Tell the main process; it adds our name and the time."""
        self._out.write(json.dumps({"what": what, **values}) + "\n")

    def wait_for_go(self) -> None:
        """Say that the session is up, and start together with the others."""
        self.say("ready")
        self._go.wait()

    def again_until_committed(self, job: Callable[[], T]) -> T:
        """Run a job again when another writer's commit made it fail: what the errors advise."""
        from lakelog.core import retry_on_conflict

        return retry_on_conflict(
            job,
            attempts=_MOST_RUNS,
            on_conflict=lambda error, run: self.say(
                "refused", error=type(error).__name__, text=str(error), run=run
            ),
        )

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "go":
                self._go.set()
            elif line.strip() == "turn":
                self.turns.release()
            elif line.strip() == "stop":
                self.stopped.set()
        # The main process is gone, and nobody waits for what we do.
        time.sleep(0.5)
        os._exit(3)
