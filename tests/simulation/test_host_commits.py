"""The queue of a host under every fault: no append is lost, none is doubled, each hears the truth.

What is drawn is a script: which of some processes goes on, how far, and what happens to the step
that it waits for. A step is a call of the storage, or a call of the operating system by which the
queue changes a file; a process may die before and after each of them, a reply of the storage or of
the file system may be lost, the lock of the turn may exclude nobody, and processes that commit
without the queue come in between. The files of the queue are real ones. Of the troubles at each
step a day has a sixth.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tempfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.commit.loop import CommitLoop
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction import host_commit, host_queue
from lakelog.logstores.locks import LockHeldError
from simulation.appends import APPEND, Append, complaints
from simulation.scheduling import Actor, one_at_a_time, stops_before, to_the_end
from simulation.storage import ProcessStore, Storage
from simulation.world import SteadyClock
from support.examples import examples
from support.faults import Crash, Fault
from support.mutants import Mutant
from support.tables import add_file, created_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from support.days import OfTheDay

pytestmark = pytest.mark.soak

HOST = {"spark.lakelog.commit.host": "true"}
PROCESSES = 4
_CALLS = ("mkfifo", "mkdir", "rename", "symlink", "unlink")
_MAKES = ("mkfifo", "mkdir", "symlink")
_names = itertools.count()


@dataclass(frozen=True)
class Go:
    """One process goes on."""

    who: int
    until: str
    """The operation that it stops before; `one` is any."""
    fate: Fault = Fault.NONE


@dataclass(frozen=True)
class Script:
    """A whole history, before it is played."""

    steps: Sequence[Go | str]
    rivals: int
    """The number of the first process that commits without the queue."""
    jobs: int = 4
    """Of each process."""


@dataclass
class _Process:
    number: int
    store: ProcessStore
    conf: DeltaConf
    jobs: list[Append] = field(default_factory=list)
    actor: Actor | None = None
    fifos: list[int] = field(default_factory=list)
    """Descriptors, which the system closes when it dies."""


class _System:
    """`os` of the simulated processes."""

    def __init__(self, world: _World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        if name == "open":
            return self._open
        return (lambda *args: self._call(name, call, args)) if name in _CALLS else call

    def _open(self, path: str, flags: int, *mode: int) -> int:
        fd = os.open(path, flags, *mode)
        process = self._world.current()
        if process is not None and flags & os.O_RDWR:
            process.fifos.append(fd)
        return fd

    def _call(self, name: str, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        process = self._world.current()
        if process is None or process.actor is None:
            return call(*args)
        fate = process.actor.step(name, str(args[-1]))
        if fate is Fault.OSERROR:
            raise OSError(errno.ENOSPC, "injected: the disk is full")
        result = call(*args)
        if fate is Fault.LANDS_CRASH:
            process.actor.is_dead = True
            raise Crash
        if fate.name.startswith("LANDS"):
            process.actor.step("reply", name)  # it takes its time, and others see what was done
        if fate is Fault.LANDS_OSERROR:
            raise OSError(errno.EIO, "injected: the reply is lost")
        if fate is Fault.LANDS_EXISTS:  # as where a share's client asks again
            raise FileExistsError(args[-1]) if name in _MAKES else FileNotFoundError(args[0])
        return result


class _World:
    """One history as it is played."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.clock = SteadyClock()
        self.storage = Storage(f"host-commits-{next(_names)}")
        self._holder: _Process | None = None
        self._locks = True
        self.processes = [
            _Process(number, ProcessStore(self.storage), DeltaConf.from_mapping(self._conf(number)))
            for number in range(PROCESSES)
        ]
        for process in self.processes:
            process.store.who = f"p{process.number}"
        self._of_thread: dict[threading.Thread, _Process] = {}

    def _conf(self, number: int) -> dict[str, str]:
        return HOST if number < self.script.rivals else {}

    def current(self) -> _Process | None:
        return self._of_thread.get(threading.current_thread())

    # What the module asks of `time`.
    def monotonic(self) -> float:
        return self.clock.monotonic()

    @contextlib.contextmanager
    def lock(self, _key: str, **_: object) -> Iterator[None]:
        """The turn; the system takes it from whoever dies."""
        me = self.current()
        if self._locks and self._holder not in (None, me):
            raise LockHeldError
        before, self._holder = self._holder, me
        try:
            yield
        finally:
            if self._holder is me:
                self._holder = before

    def wait(self, _ticket: object, _seconds: float) -> None:
        process = self.current()
        assert process is not None
        assert process.actor is not None
        process.actor.step("wait")

    def _log(self, process: _Process | None) -> DeltaLog:
        store = ProcessStore(self.storage) if process is None else process.store
        conf = DeltaConf.from_mapping(HOST) if process is None else process.conf
        return DeltaLog(self.storage.table, store, conf, self.clock)

    def play(self) -> None:
        created_by(self._log(None))
        try:
            for step in self.script.steps:
                self._take(step)
            self._end()
            self.storage.deliver_late()
        finally:
            for process in self.processes:
                if process.actor is not None:
                    process.actor.kill()
                    self._bury(process)

    def _take(self, step: Go | str) -> None:
        if isinstance(step, Go):
            self._resume(self.processes[step.who], step.fate, stops_before(step.until))
        elif step == "a late write arrives":
            self.storage.deliver_late()
        elif step == "the lock's file is deleted":
            self._locks = False
        else:
            assert step == "a while passes"
            self.clock.advance(50)

    def _resume(self, process: _Process, fate: Fault, until: Callable[[str], bool]) -> None:
        if process.actor is None:
            process.actor = process.store.actor = Actor(lambda _actor: self._work(process))
        try:
            process.actor.go_on(fate, until)
        finally:
            if process.actor.is_done:
                self._bury(process)

    def _bury(self, process: _Process) -> None:
        for fd in process.fifos:
            if fd in host_queue._open_fifos:
                host_queue._open_fifos.discard(fd)
                os.close(fd)
        process.fifos.clear()

    def _end(self) -> None:
        def go_on() -> bool:
            living = [p for p in self.processes if p.actor is None or not p.actor.is_done]
            for process in living:
                self._resume(process, Fault.NONE, "wait".__eq__)
            return bool(living)

        to_the_end(go_on, self.clock)

    def _work(self, process: _Process) -> None:
        self._of_thread[threading.current_thread()] = process
        log = self._log(process)
        for number in range(self.script.jobs):
            job = Append(f"p{process.number}-{number}")
            process.jobs.append(job)
            job.commit(log, self.storage)

    def complaints(self) -> list[str]:
        jobs = itertools.chain.from_iterable(each.jobs for each in self.processes)
        return complaints(self.storage, jobs)


def play(script: Script, *, looks: bool = False) -> _World:
    """Play a history, and say what was wrong in it.

    Args:
        script: the history.
        looks: whether a commit looks for itself in what it lost to. The queue does not rest on it.
    """
    world = _World(script)
    with contextlib.ExitStack() as patches, tempfile.TemporaryDirectory() as folder:
        patch = patches.enter_context
        patch(mock.patch.object(tempfile, "tempdir", folder))
        patch(mock.patch.object(host_queue, "os", _System(world)))
        patch(mock.patch.object(host_queue.Ticket, "wait", lambda *args: world.wait(*args)))
        patch(mock.patch.object(host_commit, "host_lock", world.lock))
        patch(mock.patch.object(host_commit, "time", world))
        if not looks:
            patch(mock.patch.object(CommitLoop, "_is_held_by", return_value=False))
        patch(one_at_a_time())
        Path(folder, f"lakelog-{os.getuid()}").mkdir(mode=0o700)
        try:
            world.play()
            said = world.complaints()
            # Whoever comes next commits, and leaves nothing.
            later = world._log(None).start_transaction()
            later.commit([add_file("later")], APPEND)
            names = [each.name for each in Path(folder).rglob("*")]
            said += [f"{each} is left" for each in names if each.endswith((".group", ".request"))]
        finally:
            world.storage.forget()
    assert not said, "\n".join([*said, *world.storage.story])
    return world


_QUEUED = [Go(0, "write"), *(Go(who, "wait") for who in range(1, PROCESSES - 1))]
"""The first one leads, and in its second job takes those who wait. The last one is a rival."""
_MOST_STEPS = 14
"""From the first that a leader takes to what it does when all is over."""
_DEATHS = (Fault.CRASH, Fault.LANDS_CRASH, Fault.LATE_UNKNOWN)
_LOSSES = tuple(fate for fate in Fault if not fate.name.endswith("CRASH"))
_OTHERS = [Go(who, "wait") for who in range(1, PROCESSES - 1)]
_RIVAL = Go(PROCESSES - 1, "wait")
_MEANWHILE: dict[str, list[Go | str]] = {
    "nothing": [],
    "the others go on": [*_OTHERS, *_OTHERS, "a late write arrives"],
    "a rival commits": [_RIVAL],
    "the lock fails": ["the lock's file is deleted", *_OTHERS, *_OTHERS],
    # One of them goes on, and another is still to hear of it.
    "the lock fails and a rival commits": ["the lock's file is deleted", _RIVAL, _OTHERS[0]],
    # It gives up, and hears no more of what it has sent.
    "the time is over": [*["a while passes"] * 20, Go(0, "wait"), "a late write arrives"],
    "it stands still": ["a while passes", "a while passes", *_OTHERS, *_OTHERS],
}


def _leaders_in_trouble(meanwhile: str) -> Iterator[Script]:
    """One that leads meets trouble."""
    lost = _LOSSES if meanwhile == "nothing" else ()
    for depth, fate in itertools.product(range(_MOST_STEPS), (Fault.NONE, *_DEATHS, *lost)):
        # Before the others go on, it is about to take that step; or it has, and hears nothing yet.
        at = [*_QUEUED, Go(0, "rename"), *[Go(0, "one")] * depth, Go(0, "one", fate)]
        yield Script([*at, *_MEANWHILE[meanwhile]], rivals=PROCESSES - 1, jobs=2)


@pytest.mark.parametrize("meanwhile", _MEANWHILE)
def test_a_leader_in_trouble_at_any_step_loses_no_append_and_doubles_none(
    meanwhile: str, of_the_day: OfTheDay
) -> None:
    found = [*_leaders_in_trouble(meanwhile)]
    for script in of_the_day(found, len(found) // 6, about=meanwhile):
        play(script)


_SAID = 7
"""Steps after which it has said what it sends, and has not sent it."""
_STILL = (Fault.NONE, Fault.OSERROR, Fault.SPURIOUS_EXISTS)
"""What happens to the step of a leader that stood still before it."""


def _leaders_overtaken(depths: Sequence[int] = range(_MOST_STEPS)) -> Iterator[Script]:
    """One that leads stands still before a step, another goes on with its group, and it wakes.

    Or it has sent what arrives late, and hears no more.
    """
    for depth, others in itertools.product(depths, range(1, 9)):
        at: list[Go | str] = [*_QUEUED, Go(0, "rename"), *[Go(0, "one")] * depth]
        # The other one stops as well: before it says what it does, before it sends, and after.
        other: list[Go | str] = ["the lock's file is deleted", *[Go(1, "one")] * others]
        for fate in _STILL:
            # Then it says what it makes of that, before it commits by itself perhaps.
            wakes: list[Go | str] = [Go(0, "one", fate), Go(0, "symlink"), Go(0, "one"), *_OTHERS]
            yield Script([*at, *other, *wakes], rivals=PROCESSES - 1, jobs=2)
        late = Go(0, "one", Fault.LATE_UNKNOWN)
        arrives: list[Go | str] = ["a late write arrives", *_OTHERS]
        yield Script([*at, late, *other, *arrives], rivals=PROCESSES - 1, jobs=2)


def test_a_leader_that_wakes_when_another_goes_on_with_its_group_doubles_nothing(
    of_the_day: OfTheDay,
) -> None:
    found = [*_leaders_overtaken()]
    for script in of_the_day(found, len(found) // 16, about="overtaken"):
        play(script)


_ENTERS = 6
"""Steps of one that finds another at work, until it waits."""


def _members_in_trouble() -> Iterator[Script]:
    """One that is about to wait, or does, meets trouble; who leads takes it or not."""
    before = _QUEUED[:-1]
    leads = [Go(0, "wait"), Go(0, "wait")]
    for depth, fate in itertools.product(range(_ENTERS), (*_DEATHS, *_LOSSES)):
        at = [*before, *[Go(PROCESSES - 2, "one")] * depth, Go(PROCESSES - 2, "one", fate)]
        for later in ([], ["the lock's file is deleted"]):
            yield Script([*at, *later, *leads, Go(PROCESSES - 2, "wait")], PROCESSES - 1, jobs=2)


def test_a_member_in_trouble_at_any_step_loses_no_append_and_doubles_none(
    of_the_day: OfTheDay,
) -> None:
    found = [*_members_in_trouble()]
    for script in of_the_day(found, len(found) // 6, about="members"):
        play(script)


_WHO = st.integers(0, PROCESSES - 1)


def _scripts() -> st.SearchStrategy[Script]:
    """Scripts of some rounds: one leads those who wait, and meets trouble at one of its steps."""
    goes = st.builds(Go, _WHO, st.sampled_from(("one", "one", "wait", "write", "symlink")))
    events = st.sampled_from(
        ["a late write arrives", "a while passes", "the lock's file is deleted"]
    )
    fates = st.sampled_from([Fault.NONE, *_DEATHS, *Fault])
    rounds = st.builds(
        lambda order, depth, fate, others, fate_then: [
            Go(order[0], "write"),
            *(Go(who, "wait") for who in order[1:]),
            Go(order[0], "rename"),
            *[Go(order[0], "one")] * depth,
            Go(order[0], "one", fate),
            *others,
            Go(order[0], "one", fate_then),
        ],
        st.permutations(range(PROCESSES)),
        st.integers(0, _MOST_STEPS),
        fates,
        st.lists(st.one_of(goes, goes, goes, events), max_size=12),
        fates,
    )
    return st.builds(
        lambda rounds, rivals: Script([*itertools.chain.from_iterable(rounds)], rivals),
        st.lists(rounds, min_size=2, max_size=4),
        st.sampled_from([PROCESSES, PROCESSES, PROCESSES - 1]),
    )


@settings(max_examples=examples(50))
@given(_scripts(), st.booleans())
def test_any_troubles_lose_no_append_and_double_none(script: Script, looks: bool) -> None:
    play(script, looks=looks)


def test_those_who_wait_are_one_version_and_a_dead_leader_is_replaced() -> None:
    queued = [*_QUEUED, Go(PROCESSES - 1, "wait")]
    world = play(Script(queued, rivals=PROCESSES, jobs=1))
    assert {each.jobs[0].outcome for each in world.processes[1:]} == {2}
    # The next leader dies when it has said what it sends: the others settle its commit.
    dies = [Go(0, "wait"), Go(1, "symlink"), Go(1, "one", Fault.LANDS_CRASH)]
    world = play(Script([*queued, *dies], rivals=PROCESSES, jobs=1))
    assert world.processes[1].jobs[0].outcome is None
    assert {each.jobs[0].outcome for each in world.processes[2:]} == {2}


_add, _last = host_queue.Group.add, host_queue.Group.last
_committed, _sent_again = host_commit.HostCommits._committed, host_commit.HostCommits._sent_again


def _add_dissolved(group: host_queue.Group, step: host_queue.Step) -> bool:
    return _add(group, replace(step, kind="dissolved") if step.kind == "unknown" else step)


def _committed_whoever(commits: Any, member: Any, group: Any, version: int, _: Any) -> Any:
    return _committed(commits, member, group, version, None)


def _last_as_again(group: host_queue.Group) -> host_queue.Step | None:
    step = _last(group)
    return replace(step, kind="again") if step is not None and step.kind == "try" else step


def _looked_and_not_sent(commits: Any, data: bytes, step: host_queue.Step) -> host_queue.Step:
    log = commits._log
    try:
        log.store.read(commit_path(log.table, step.version))
    except FileNotFoundError:
        return host_queue.Step("dissolved")
    return _sent_again(commits, data, step)


def _nothing(*_: object) -> None:
    pass


def _yes(*_: object) -> bool:
    return True


_OVERTAKEN = "another goes on with its group"
_TAKES, _TELLS = host_queue.Group, host_commit.HostCommits
_MUTANTS = {
    Mutant("what may land is dissolved", _TAKES, "add", _add_dissolved): "the time is over",
    Mutant("a move whose reply was lost was not done", os.path, "lexists", lambda _: True): None,
    Mutant("a leader does not say what it sends", host_commit._Witness, "__call__", _nothing): (
        "the others go on"
    ),
    Mutant("none looks whether it was sent", _TELLS, "_committed", _committed_whoever): "nothing",
    Mutant("a request that was taken is taken back", host_queue.Ticket, "withdraw", _yes): (
        "it stands still"
    ),
    Mutant("who goes on with a group does not say so", _TAKES, "last", _last_as_again): _OVERTAKEN,
    Mutant("what is missing is dissolved, not sent", _TELLS, "_sent_again", _looked_and_not_sent): (
        _OVERTAKEN
    ),
}
"""And what happens meanwhile in the histories that show it; `None`: a member is in trouble."""


def _play_until_caught(meanwhile: str | None) -> None:
    if meanwhile is None:
        found = _members_in_trouble()
    elif meanwhile == _OVERTAKEN:
        found = _leaders_overtaken([_SAID])
    else:
        found = _leaders_in_trouble(meanwhile)
    for script in found:
        play(script)


@pytest.mark.one_day_in(5, 1)
@pytest.mark.parametrize("mutant", _MUTANTS, ids=str)
def test_the_histories_catch_a_queue_in_which(mutant: Mutant) -> None:
    with mutant.patched(), pytest.raises(AssertionError):
        _play_until_caught(_MUTANTS[mutant])
