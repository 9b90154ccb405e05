"""Appenders of one application, step by step: who is killed, stands still or is told lies when.

A process opens an appender and appends numbered events, some of them saved before their commit. Its
threads are played one after the other, by its actor. A step is a call of the storage. Other
processes open appenders of the same application meanwhile, as after a crash that was none.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from lakelog.core import (
    Appender,
    DeltaConf,
    DeltaLog,
    appender,
    create_table,
    read_arrow,
    write_arrow,
)
from lakelog.core.dml.appending import appender as appender_module
from lakelog.core.dml.appending.intake import Intake
from lakelog.core.errors import DeltaError
from simulation.scheduling import Actor, anything, one_at_a_time
from simulation.storage import ProcessStore, Storage
from simulation.world import SteadyClock
from support.faults import Crash, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

APP = "producer"
_names = itertools.count()
_ROUNDS = 2_000
_RECORD = re.compile(rf'"txn":{{"appId":"{APP}","version":(\d+)')


class _Store(ProcessStore):
    """Deletes in a step too, and may die between two files."""

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        failed: dict[str, Exception] = {}
        for path in paths:
            try:
                self._look("delete", path)
            except OSError as exc:
                failed[path] = exc
                continue
            failed |= super().delete_files([path])
        return failed


class _NoThread:
    """What a thread would do the actor does."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def start(self) -> None:
        pass

    def join(self, _timeout: float | None = None) -> None:
        pass

    def is_alive(self) -> bool:
        return False


@dataclass(frozen=True)
class Go:
    """A process goes on to its next step, or by more of them."""

    who: int
    steps: int = 1
    """At most; the process begins where it has not."""
    fate: Fault = Fault.NONE
    """Of the step that it waits for."""


@dataclass(frozen=True)
class Script:
    """A whole history, before it is played."""

    steps: Sequence[Go | str]
    saves: tuple[bool, ...] = (True, True, True)
    """For each process, whether its appends are saved before their commit."""
    rounds: tuple[int, ...] = (2, 0, 1)
    """How many events a process appends before each of its commits."""


@dataclass
class _Event:
    seq: int
    who: str
    ticket: Any

    @property
    def is_safe(self) -> bool:
        """Whether its process heard so."""
        saved = self.ticket._saved
        return bool(saved.done() and saved.exception() is None)

    @property
    def version(self) -> int | None:
        """That holds it, as its process heard."""
        future = self.ticket._future
        return future.result() if future.done() and future.exception() is None else None


@dataclass
class _Process:
    number: int
    store: _Store
    saves: bool
    actor: Actor | None = None
    events: list[_Event] = field(default_factory=list)
    first: int | None = None
    """What its appender found to be safe."""
    safe_then: set[int] = field(default_factory=set)
    """What others had heard to be safe before it was opened."""


class World:
    """One history as it is played."""

    def __init__(self, script: Script) -> None:
        """Make the table."""
        self.script = script
        self.clock = SteadyClock()
        self.storage = Storage(f"appenders-{next(_names)}")
        self.processes = [
            _Process(number, _Store(self.storage), saves)
            for number, saves in enumerate(script.saves)
        ]
        for each in self.processes:
            each.store.who = f"p{each.number}"
        self._others = 0
        create_table(self._log(ProcessStore(self.storage)), "seq bigint, who string")

    def _log(self, store: ProcessStore) -> DeltaLog:
        return DeltaLog(self.storage.table, store, DeltaConf(), self.clock)

    def _open(self, store: ProcessStore, saves: bool) -> Appender:
        return appender(
            self._log(store), app_id=APP, every=0, save_every=0 if saves else None, patience=5
        )

    def play(self) -> None:
        """Play the script, and all processes to their ends; then one more that brings all in."""
        try:
            for step in self.script.steps:
                if isinstance(step, Go):
                    self._go(step)
                elif step == "a late write arrives":
                    self.storage.deliver_late()
                else:
                    assert step == "a rival writes"
                    self._rival()
            for _ in range(_ROUNDS):
                living = [p for p in self.processes if p.actor is not None and not p.actor.is_done]
                if not living:
                    break
                for each in living:
                    self._resume(each, Fault.NONE)
            else:
                raise AssertionError("a process never ends")
            self.storage.deliver_late()
            try:
                self._open(ProcessStore(self.storage), saves=False)
            except DeltaError as exc:
                self.storage.complaints.append(f"nobody can go on: {exc}")
            self.storage.deliver_late()
        finally:
            self.close()

    def close(self) -> None:
        """End what still stands."""
        for each in self.processes:
            if each.actor is not None:
                each.actor.kill()

    def _rival(self) -> None:
        self._others += 1
        rows = {"seq": [-self._others], "who": ["rival"]}
        write_arrow(self._log(ProcessStore(self.storage)), rows, mode="append")

    def _go(self, go: Go) -> None:
        process = self.processes[go.who]
        fate = go.fate
        for _ in range(go.steps):
            if process.actor is not None and process.actor.is_done:
                return
            self._resume(process, fate)
            fate = Fault.NONE

    def _resume(self, process: _Process, fate: Fault) -> None:
        if process.actor is None:
            process.actor = process.store.actor = Actor(lambda _: self._work(process))
        process.actor.resume(fate, anything)
        if process.actor.failure is not None:
            raise process.actor.failure

    def _work(self, process: _Process) -> None:
        others = itertools.chain.from_iterable(each.events for each in self.processes)
        process.safe_then = {each.seq for each in others if each.is_safe}
        try:
            a = self._open(process.store, process.saves)
        except Exception as exc:
            self._tell(process, f"can't open: {exc!r}")
            return
        process.first = a.last_seq
        self._tell(process, f"goes on after {process.first}")
        number = itertools.count(a.last_seq + 1)
        try:
            for count in self.script.rounds:
                for _ in range(count):
                    self._append(process, a, next(number))
                self._run(process, a._run)
        except Exception as exc:
            self._tell(process, f"stops: {exc}")

    def _append(self, process: _Process, a: Appender, seq: int) -> None:
        who = f"p{process.number}"
        ticket = a.append([{"seq": seq, "who": who}], seq=seq)
        process.events.append(_Event(seq, who, ticket))
        if process.saves:
            self._run(process, a._run_saver)
            self._tell(process, f"saved {seq}: {process.events[-1].is_safe}")

    def _run(self, process: _Process, work: Callable[[], None]) -> None:
        """What one of the appender's threads would do by now."""
        work()
        assert process.actor is not None
        if process.actor.is_dead:  # the thread would not have lived to say why
            raise Crash

    def _tell(self, process: _Process, text: str) -> None:
        self.storage.story.append(f"p{process.number} {text}")

    def complaints(self) -> list[str]:
        """What was promised, and is not so."""
        said = list(self.storage.complaints)
        rows = read_arrow(self._log(ProcessStore(self.storage))).to_pylist()
        there = sorted((row["seq"], row["who"]) for row in rows if row["seq"] >= 0)
        numbers = [seq for seq, _ in there]
        if len(numbers) != len(set(numbers)):
            said.append(f"numbers are there twice: {there}")
        if numbers != list(range(len(numbers))):
            said.append(f"numbers are missing: {numbers}")
        if len(rows) - len(there) != self._others:
            said.append("a row of the rival is gone")
        for process in self.processes:
            if process.first is not None and not process.safe_then <= {*range(process.first + 1)}:
                said.append(f"p{process.number} goes on after {process.first}, and others had more")
            for each in process.events:
                is_there = (each.seq, each.who) in there
                if each.is_safe and not is_there:
                    said.append(f"{each.who} heard that {each.seq} is safe, and it is not there")
                if each.version is not None and not self._is_in(each):
                    said.append(f"{each.who} heard {each.version} for {each.seq}")
        return said

    def _is_in(self, event: _Event) -> bool:
        """Whether the version that an event's process heard is the one that recorded it."""
        assert event.version is not None
        last = [self._recorded(version) for version in range(event.version + 1)]
        return max(last[:-1], default=-1) < event.seq <= last[-1]

    def _recorded(self, version: int) -> int:
        found = (_RECORD.search(line) for line in self.storage.landed[version])
        return max((int(each[1]) for each in found if each), default=-1)


@contextlib.contextmanager
def without_threads() -> Iterator[None]:
    """Appenders do nothing by themselves, and what they are told to do waits for nothing."""
    threading = SimpleNamespace(Thread=_NoThread)
    with (
        mock.patch.object(appender_module, "threading", threading),
        mock.patch.object(Intake, "_wait_until_due", return_value=None),
        one_at_a_time(),
    ):
        yield


def play(script: Script) -> World:
    """Play a history, and say what was wrong in it."""
    with without_threads():
        world = World(script)
        try:
            world.play()
            said = world.complaints()
        finally:
            world.storage.forget()
    assert not said, "\n".join([*said, *world.storage.story])
    return world


def steps_of(script: Script, who: int) -> list[tuple[str, str]]:
    """The steps that a process takes after a script, where nothing else happens.

    Args:
        script: in which it does not begin.
        who: the process.

    Returns:
        Operations and paths.
    """
    found: list[tuple[str, str]] = []
    with without_threads():
        world = World(script)
        try:
            for step in script.steps:
                assert isinstance(step, Go)
                world._go(step)
            process = world.processes[who]
            world._resume(process, Fault.NONE)
            assert process.actor is not None
            while not process.actor.is_done:
                found.append(process.actor.at)
                world._resume(process, Fault.NONE)
        finally:
            world.close()
            world.storage.forget()
    return found
