"""Processes that commit to one table through the queue of their host, and are stopped anywhere.

    python tests/support/host_writers.py FOLDER MODE FIRST LAST

Plays one history for each number from FIRST to LAST, and prints what is wrong in it, or `ok`. In
each a first process leads while others wait, and something happens at its step of that number: the
steps are the calls of the operating system that the queue makes, and the writes of the store,
before and after they are done. MODE is one of

- `leader`: it is killed.
- `late`: it is killed, and a write that it was about to do arrives when all others are done.
- `member`: one of those who wait is killed.
- `both`: it and one of those who wait are killed.
- `paused`: it stands still until all others are done, and no lock keeps them from its turn.

After the last number that is reached the word `end` is printed.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelog.core import DeltaLog, Operation
from lakelog.core.commit.version_writer import CommitWriter
from lakelog.core.transaction import host_commit, host_queue
from lakelog.logstores.locks import host_lock
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable

CONF = {"spark.lakelog.commit.host": "true"}
WAITING = 3
_CALLS = ("mkfifo", "mkdir", "rename", "symlink", "unlink")
_PATIENCE = 120.0


class _Step:
    """Counts, and does something once."""

    def __init__(self, number: int, work: Callable[[], object]) -> None:
        self.left, self._work = number, work

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self._work()


class _System:
    """`os`, with a step before and after each call that changes something."""

    def __init__(self, step: Callable[[], object]) -> None:
        self._step = step

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        return _between(self._step, call) if name in _CALLS else call


def _between(step: Callable[[], object], call: Callable[..., Any]) -> Callable[..., Any]:
    def stepping(*args: Any, **kwargs: Any) -> Any:
        step()
        result = call(*args, **kwargs)
        step()
        return result

    return stepping


def _commit(table: str, file: str, said: int) -> None:
    try:
        log = DeltaLog.for_table(table, CONF)
        told = str(log.start_transaction().commit([add_file(file)], Operation.write("Append")))
    except Exception as exc:
        told = f"{type(exc).__name__}: {exc}"
    os.write(said, told.encode())


def _fork(work: Callable[[int], None]) -> tuple[int, int]:
    """A process, and the pipe that it speaks to."""
    heard, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(heard)
            work(said)
        finally:
            os._exit(0)
    os.close(said)
    return pid, heard


def _heard(pipe: int) -> str:
    data = b""
    until = time.monotonic() + _PATIENCE
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        more = os.read(pipe, 4096)
        if not more:
            os.close(pipe)
            return data.decode()
        data += more
    return data.decode() + " and hangs"


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


class History:
    """One of them."""

    def __init__(self, folder: Path, mode: str, number: int) -> None:
        self.table = new_table(str(folder / "t")).table
        self.mode, self.number = mode, number
        self.log = DeltaLog.for_table(self.table, CONF)
        self.commits = host_commit.HostCommits(self.log)
        self.queue = self.commits._queue
        self.was_reached = folder / "reached"
        self.leads = folder / "leads"
        self.begins = folder / "begins"
        self.go_on = folder / "go-on"

    def play(self) -> tuple[list[str], bool]:
        """What is wrong, and whether the step was reached."""
        with host_lock(self.commits._key):
            others: list[tuple[int, int]] = []
            lead = _fork(self._lead)
            self._until_waiting(1, lead[0])
            for number in range(WAITING):
                others.append(_fork(lambda said, n=number: self._follow(n, said)))  # type: ignore[misc]
                self._until_waiting(len(others) + 1, lead[0])
            (self.was_reached.parent / "victim").write_text(str(others[0][0]))
        self.begins.touch()
        for name in self.queue.waiting()[:1]:
            self.queue.wake(name)
        told = {f"w{number}": _heard(pipe) for number, (_, pipe) in enumerate(others)}
        self.go_on.touch()
        with contextlib.suppress(ProcessLookupError):
            os.kill(lead[0], signal.SIGCONT)
        told["lead"] = _heard(lead[1])
        for pid, _ in (lead, *others):
            os.waitpid(pid, 0)
        return self._complaints(told), self.was_reached.exists()

    def _until_waiting(self, count: int, lead: int) -> None:
        until = time.monotonic() + _PATIENCE
        while len(self.queue.waiting()) < count and not self.was_reached.exists():
            assert time.monotonic() < until
            time.sleep(0.001)

    def _lead(self, said: int) -> None:
        step = _Step(self.number, self._happen)
        vars(host_queue)["os"] = _System(step)
        write, lead = CommitWriter.write, host_commit.HostCommits._lead

        def leading(*args: Any) -> int:
            self.leads.touch()
            return lead(*args)

        host_commit.HostCommits._lead = leading  # type: ignore[method-assign,assignment]

        def stepping(writer: CommitWriter, attempt: Any) -> Any:
            store = writer._store
            inner = store.write

            def sending(path: str, lines: Any, *, overwrite: bool = False) -> None:
                if self.mode == "late" and step.left == 1:
                    self._send_late(lambda: inner(path, lines, overwrite=overwrite))
                step()
                inner(path, lines, overwrite=overwrite)
                step()

            store.write = sending  # type: ignore[method-assign]
            try:
                return write(writer, attempt)
            finally:
                del store.write

        CommitWriter.write = stepping  # type: ignore[method-assign,assignment]
        if self.mode == "paused":
            begins = self.begins

            def has_turn(_commits: object, _turn: object) -> bool:
                return begins.exists()

            host_commit.HostCommits._has_turn = has_turn  # type: ignore[method-assign,assignment]
        _commit(self.table, "lead", said)

    def _send_late(self, send: Callable[[], object]) -> None:
        if os.fork() == 0:
            while not self.go_on.exists():
                time.sleep(0.001)
            with contextlib.suppress(FileExistsError):
                send()
            os._exit(0)

    def _happen(self) -> None:
        self.was_reached.touch()
        if self.mode in ("member", "both"):
            with contextlib.suppress(OSError, ValueError):
                _kill(int((self.was_reached.parent / "victim").read_text()))
        if self.mode == "paused":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.mode != "member":
            _kill(os.getpid())

    def _follow(self, number: int, said: int) -> None:
        has_turn = host_commit.HostCommits._has_turn

        def after_the_first(commits: Any, turn: contextlib.ExitStack) -> bool:
            begun = self.leads.exists() or self.was_reached.exists()
            return begun and has_turn(commits, turn)

        host_commit.HostCommits._has_turn = after_the_first  # type: ignore[method-assign,assignment]
        _commit(self.table, f"w{number}", said)

    def _complaints(self, told: dict[str, str]) -> list[str]:
        log = DeltaLog.for_table(self.table, CONF)
        log.start_transaction().commit([add_file("later")], Operation.write("Append"))
        there: dict[str, list[int]] = collections.defaultdict(list)
        for version in range(log.snapshot.version + 1):
            text = Path(self.table.removeprefix("file:"), f"_delta_log/{version:020}.json")
            for name in (*told, "later"):
                if f'"path":"{name}"' in text.read_text():
                    there[name].append(version)
        wrong = []
        killed = {"leader": {"lead"}, "late": {"lead"}, "member": {"w0"}, "paused": set()}.get(
            self.mode, {"lead", "w0"}
        )
        for name, outcome in told.items():
            places = there[name]
            if outcome.isdigit():
                right = places == [int(outcome)]
            else:
                right = name in killed and not outcome and len(places) < 2
            if not right:
                wrong.append(f"{name} heard {outcome!r}, and is in {places}")
        if there["later"] == []:
            wrong.append("the table can't be written to")
        left = [each for each in os.listdir(self.queue.folder) if each.endswith(".group")]
        return wrong + [f"{each} is left" for each in left]


def main(folder: str, mode: str, first: int, last: int) -> None:
    """Play."""
    for number in range(first, last + 1):
        place = Path(folder, f"{mode}-{number}")
        place.mkdir()
        wrong, was_reached = History(place, mode, number).play()
        print(f"{number}: {'; '.join(wrong) or 'ok'}", flush=True)
        if not was_reached:
            print("end", flush=True)
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
