"""Group commit where a thread is interrupted, a process forks or ends, or a handler commits too."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.commit import loop
from lakelog.core.errors import CommitOutcomeUnknownError
from lakelog.core.transaction import committer, group
from lakelog.core.transaction.group import CommitGroups
from support.faults import Fault, FaultyLogStore
from support.line_injector import LineInjector
from support.manual_clock import ManualClock
from support.tables import add_file, new_table
from support.waiting_writers import grouping_log, in_one_turn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakelog.core.actions import Action
    from lakelog.core.transaction.group import Member

_names = itertools.count()


def _table() -> DeltaLog:
    return new_table(f"memory://interrupted-groups/{next(_names)}/t")


class Writer:
    """A transaction that has read the table, and will append one file."""

    def __init__(self, log: DeltaLog, name: str) -> None:
        self.txn = log.start_transaction()
        self.name = name

    def __call__(self) -> int:
        return self.txn.commit([add_file(self.name)], Operation.write("Append"))


def _writers(log: DeltaLog, count: int) -> list[Writer]:
    return [Writer(log, f"f{number}") for number in range(count)]


def _paths(log: DeltaLog) -> list[str]:
    return sorted(file.path for file in DeltaLog.for_table(log.table).snapshot.files())


class _Interruptible(threading.Event):
    """Lets a test interrupt the thread that waits for it, as the handler of a signal would."""

    is_interrupted = False

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def interrupt(self) -> None:
        self.is_interrupted = True
        self.set()

    def wait(self, timeout: float | None = None) -> bool:
        done = super().wait(timeout)
        if self.is_interrupted:
            raise self._error
        return done


class _Victim:
    """A writer whose wait for others is interrupted."""

    def __init__(
        self,
        writer: Writer,
        monkeypatch: pytest.MonkeyPatch,
        error: BaseException | None = None,
    ) -> None:
        self.txn = writer.txn
        self._writer = writer
        self._woken = _Interruptible(error or KeyboardInterrupt())
        self._over = threading.Event()
        self.was_in_doubt: bool | None = None
        enter = CommitGroups.enter

        def entering(groups: CommitGroups, member: Member) -> None:
            if member.txn_id == writer.txn._committer.txn_id:
                member.woken = self._woken
            enter(groups, member)

        monkeypatch.setattr(CommitGroups, "enter", entering)

    def __call__(self) -> int:
        try:
            return self._writer()
        finally:
            self.was_in_doubt = self.txn.may_be_committed
            self._over.set()

    def interrupt(self) -> None:
        """Interrupt it, and wait until its `commit` has ended."""
        self._woken.interrupt()
        assert self._over.wait(60)


def test_who_is_interrupted_while_it_waits_is_in_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 4)
    victim = _Victim(others[1], monkeypatch)
    found = in_one_turn(log, first, [others[0], victim, others[2]], meanwhile=victim.interrupt)
    assert isinstance(found[2], KeyboardInterrupt)
    assert [found[0], found[1], found[3]] == [1, 2, 2]
    assert victim.was_in_doubt is False
    assert _paths(table) == ["f0", "f1", "f3"]


@pytest.mark.parametrize("fault", [Fault.NONE, Fault.OSERROR])
def test_who_is_interrupted_while_others_commit_it_is_in_doubt(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its data files must stay: what has not been sent yet will be, and names them.
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 4)
    victim = _Victim(others[1], monkeypatch)

    def before_anything_is_sent(members: Sequence[Member]) -> list[Action]:
        victim.interrupt()
        return group.joint_actions(members)

    monkeypatch.setattr(committer, "joint_actions", before_anything_is_sent)
    assert isinstance(log.store, FaultyLogStore)
    log.store.writes.extend([Fault.NONE, fault])
    found = in_one_turn(log, first, [others[0], victim, others[2]])
    assert isinstance(found[2], KeyboardInterrupt)
    assert "it landed if a version's commitInfo.txnId is" in found[2].__notes__[0]
    assert victim.was_in_doubt is True
    if fault is Fault.NONE:
        assert [found[0], found[1], found[3]] == [1, 2, 2]
        assert victim.txn.may_be_committed
        assert _paths(table) == ["f0", "f1", "f2", "f3"]
    else:
        assert sorted([found[1], found[3]]) == [2, 3]
        assert not victim.txn.may_be_committed
        assert _paths(table) == ["f0", "f1", "f3"]


def test_whose_job_is_ended_while_it_waits_is_in_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 3)
    victim = _Victim(others[1], monkeypatch, TimeoutError("the job took too long"))
    found = in_one_turn(log, first, [others[0], victim], meanwhile=victim.interrupt)
    assert isinstance(found[2], TimeoutError)
    assert found[:2] == [1, 2]
    assert victim.was_in_doubt is False
    assert _paths(table) == ["f0", "f1"]


def test_whose_job_is_ended_while_others_commit_it_is_not_called_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It would be run again, and its rows would be there twice.
    table = _table()
    log = grouping_log(table)
    first, *others = _writers(log, 3)
    victim = _Victim(others[1], monkeypatch, TimeoutError("the job took too long"))

    def before_anything_is_sent(members: Sequence[Member]) -> list[Action]:
        victim.interrupt()
        return group.joint_actions(members)

    monkeypatch.setattr(committer, "joint_actions", before_anything_is_sent)
    found = in_one_turn(log, first, [others[0], victim])
    assert isinstance(found[2], CommitOutcomeUnknownError)
    assert isinstance(found[2].__cause__, TimeoutError)
    assert found[2].path.endswith("/00000000000000000001.json")
    assert found[:2] == [1, 2]
    assert victim.was_in_doubt is True
    assert _paths(table) == ["f0", "f1", "f2"]


def test_a_commit_within_a_commit_does_not_wait_for_itself() -> None:
    table = _table()
    log = grouping_log(table)
    outer, inner = _writers(log, 2)
    store = log.store
    assert isinstance(store, FaultyLogStore)

    def handler(_path: str) -> None:
        store.before_write = None
        assert inner() == 1

    store.before_write = handler
    assert outer() == 2
    assert _paths(table) == ["f0", "f1"]


def test_whoever_is_interrupted_at_whichever_line_has_passed_its_turn_on() -> None:
    seen = LineInjector((group.__file__,))
    _interrupted(seen)
    # A `with` is seen once more where it ends, before it does.
    lines = [line for line in seen.seen if line.time == 0 and not line.is_bare]
    assert len(lines) > 30
    for line in lines:
        injector = LineInjector(seen.roots, line, KeyboardInterrupt())
        log = _interrupted(injector)
        assert injector.hit
        assert not group.group_of(log)._is_led, line
        assert Writer(log, "next")() == log.update().version


def _interrupted(injector: LineInjector) -> DeltaLog:
    log = grouping_log(_table())
    writer = Writer(log, "f")
    try:
        injector.arm()
        writer()
    except KeyboardInterrupt:
        pass
    finally:
        injector.disarm()
    return log


def test_a_group_of_old_readers_looks_whether_its_version_was_cleaned_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = grouping_log(_table())
    first, *others = _writers(log, 3)
    assert isinstance(log.clock, ManualClock)
    log.clock.advance(3600)
    looked: list[int] = []
    monkeypatch.setattr(loop, "check_fence", lambda *given: looked.append(given[2]))
    assert in_one_turn(log, first, others) == [1, 2, 2]
    assert looked == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the machine has no fork")
def test_a_child_does_not_wait_for_its_parents_threads(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    new_table(uri)
    log = grouping_log(DeltaLog.for_table(uri))
    first, child_s = _writers(log, 2)
    statuses = []

    def fork() -> None:
        pid = os.fork()
        if not pid:
            signal.alarm(60)
            os._exit(40 + child_s())
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    assert in_one_turn(log, first, [], meanwhile=fork) == [2]
    assert statuses == [41]
    assert _paths(log) == ["f0", "f1"]


def test_a_process_ends_when_all_that_wait_are_committed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [0]}, mode="append")
    script = """
import sys, threading
from lakelog.core import DeltaLog, write_arrow
log = DeltaLog.for_table(sys.argv[1], {"spark.lakelog.commit.group": "true"})
for number in range(8):
    work = lambda number=number: write_arrow(log, {"id": [number]}, mode="append")
    threading.Thread(target=work).start()
"""
    subprocess.run([sys.executable, "-c", script, uri], check=True, timeout=60)
    assert DeltaLog.for_table(uri).snapshot.num_files == 9
