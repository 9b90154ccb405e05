"""Processes that commit to one table through the queue of their host, and are stopped anywhere.

    python tests/support/host_writers.py FOLDER MODE FIRST LAST --root URI [--every N] [--conf {}]

Plays one history for each N-th number from FIRST to LAST, and prints what is wrong in it, or `ok`.
In each a first process leads while others wait, and something happens at its step of that number:
the steps are the calls of the operating system that the queue makes, and the writes of the store,
before and after they are done. MODE is one of

- `leader`: it is killed.
- `late`: it is killed, and a write that it was about to do arrives when all others are done.
- `member`: one of those who wait is killed.
- `both`: it and one of those who wait are killed.
- `paused`: it stands still until all others are done, and no lock keeps them from its turn.
- `none`: nothing.

The first number that is not reached is the last one played. The tables are below the URI.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelog.core import DeltaLog, Operation
from lakelog.core.commit.version_writer import CommitWriter
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction import host_commit, host_queue
from lakelog.logstores.locks import host_lock
from support.imported import import_what_it_imports
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = {"spark.lakelog.commit.host": "true"}
MODES = ("leader", "late", "member", "both", "paused")
APPEND = Operation.write("Append")
WAITING = 3
_CALLS = ("mkfifo", "mkdir", "rename", "symlink", "unlink")
_PATIENCE = 120.0
# That a leader is gone is noticed sooner than usual: these are many.
host_commit.__dict__["_LOOK_SECONDS"] = 0.02


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


def _commit(table: str, conf: dict[str, str], file: str, said: int) -> None:
    try:
        log = DeltaLog.for_table(table, conf)
        told = str(log.start_transaction().commit([add_file(file)], APPEND))
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


def _heard(pipe: int, stopped: int | None = None) -> str:
    """All that a process says; one that stopped, or is about to, is made to go on."""
    data = b""
    until = time.monotonic() + _PATIENCE
    while (left := until - time.monotonic()) > 0:
        if stopped is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGCONT)
        if not select.select([pipe], [], [], left if stopped is None else 0.02)[0]:
            continue
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

    def __init__(
        self, folder: Path, mode: str, number: int, root: str, conf: dict[str, str]
    ) -> None:
        self.table, self.conf = f"{root}/{mode}-{number}/t", conf
        self.mode, self.number = mode, number
        # This process asks no storage: it is forked.
        self.commits = host_commit.HostCommits(DeltaLog.for_table(self.table, conf))
        self.queue = self.commits._queue
        self.was_reached = folder / "reached"
        self.leads = folder / "leads"
        self.begins = folder / "begins"
        self.go_on = folder / "go-on"

    def play(self) -> tuple[list[str], bool]:
        """What is wrong, and whether the step was reached."""
        assert _said(lambda _said: new_table(self.table, conf=self.conf)) == ""
        with host_lock(self.commits._key):
            others: list[tuple[int, int]] = []
            lead = _fork(self._lead)
            self._until_waiting(1)
            for number in range(WAITING):
                others.append(_fork(lambda said, n=number: self._follow(n, said)))  # type: ignore[misc]
                self._until_waiting(len(others) + 1)
            (self.was_reached.parent / "victim").write_text(str(others[0][0]))
        self.begins.touch()
        for name in self.queue.waiting()[:1]:
            self.queue.wake(name)
        told = {f"w{number}": _heard(pipe) for number, (_, pipe) in enumerate(others)}
        self.go_on.touch()
        told["lead"] = _heard(lead[1], lead[0])
        for pid, _ in (lead, *others):
            os.waitpid(pid, 0)
        wrong = _said(lambda said: os.write(said, "; ".join(self._complaints(told)).encode()))
        return [wrong] if wrong else [], self.was_reached.exists()

    def _until_waiting(self, count: int) -> None:
        until = time.monotonic() + _PATIENCE
        while len(self.queue.waiting()) < count and not self.was_reached.exists():
            assert time.monotonic() < until
            time.sleep(0.001)

    def _lead(self, said: int) -> None:
        step = _Step(self.number, self._happen)
        host_queue.__dict__["os"] = _System(step)
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
        _commit(self.table, self.conf, "lead", said)

    def _send_late(self, send: Callable[[], object]) -> None:
        if os.fork() == 0:
            try:
                while not self.go_on.exists():
                    time.sleep(0.001)
                send()
            finally:
                os._exit(0)

    def _happen(self) -> None:
        if self.mode == "none":
            return
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
        _commit(self.table, self.conf, f"w{number}", said)

    def _complaints(self, told: dict[str, str]) -> list[str]:
        log = DeltaLog.for_table(self.table, self.conf)
        log.start_transaction().commit([add_file("later")], APPEND)
        there: dict[str, list[int]] = collections.defaultdict(list)
        for version in range(log.snapshot.version + 1):
            lines = list(log.store.read(commit_path(log.table, version)))
            for name in (*told, "later"):
                there[name] += [version for line in lines if f'"path":"{name}"' in line]
        wrong = []
        killed = {
            "leader": {"lead"},
            "late": {"lead"},
            "member": {"w0"},
            "both": {"lead", "w0"},
        }.get(self.mode, set())
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
        names = self.queue._names()
        left = [each for each in names if each.endswith((".group", ".request"))]
        return wrong + [f"{each} is left" for each in left]


def _said(work: Callable[[int], object]) -> str:
    """What a process of its own says."""
    pid, pipe = _fork(lambda said: _or_why(work, said))
    text = _heard(pipe)
    os.waitpid(pid, 0)
    return text


def _append_one(table: str, conf: dict[str, str]) -> None:
    new_table(table, conf=conf).start_transaction().commit([add_file("f")], APPEND)


def _or_why(work: Callable[[int], object], said: int) -> None:
    try:
        work(said)
    except Exception as exc:
        os.write(said, f"{type(exc).__name__}: {exc}".encode())


def play(
    folder: Path,
    mode: str,
    numbers: range,
    root: str | None = None,
    conf: dict[str, str] | None = None,
) -> list[str]:
    """Play them in a process of their own.

    Args:
        folder: an empty one.
        mode: one of them.
        numbers: of the histories, as far as they are reached.
        root: where the tables are to be; a folder in memory, where there is one, if not given.
        conf: leads there.

    Returns:
        What was wrong; nothing where nothing was.
    """
    if root is None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(dir=memory) as place:  # syncs cost nothing there
            return play(folder, mode, numbers, place, conf)
    (folder / "tmp").mkdir()
    command = [sys.executable, __file__, folder, mode, numbers.start, numbers.stop - 1]
    command += ["--every", numbers.step, "--conf", json.dumps(dict(conf or {})), "--root", root]
    tests = str(Path(__file__).parents[1])
    ran = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "PYTHONPATH": tests, "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    ended = ran.returncode == 0 and len(lines) > 1
    return [each for each in lines if not each.endswith(": ok")] or ([] if ended else [ran.stderr])


def main() -> None:
    """Play."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("mode")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--root", required=True)
    parser.add_argument("--conf", type=json.loads, default={})
    given = parser.parse_args()
    new_table("memory://host-writers/t").start_transaction().commit([add_file("f")], APPEND)
    import_what_it_imports(lambda: _append_one(f"{given.root}/{given.mode}", given.conf))
    for number in range(given.first, given.last + 1, given.every):
        place = given.folder / f"{given.mode}-{number}"
        place.mkdir()
        conf = {**given.conf, **HOST}
        wrong, was_reached = History(place, given.mode, number, given.root, conf).play()
        print(f"{number}: {'; '.join(wrong) or 'ok'}", flush=True)
        if not was_reached and given.mode != "none":
            return


if __name__ == "__main__":
    main()
