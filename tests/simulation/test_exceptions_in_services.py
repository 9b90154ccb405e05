"""An exception at any line of those who commit for others loses no append and doubles none.

Each run appends one file, by a service that is in the same thread or by the queue of the host, and
raises once: before one of the lines of either, drawn by the day. Then the log is read, and the
request comes once more, as it would after a lost reply: a service that was hit must still answer.
In the queue another request waits, and must be where its process is told.
"""

from __future__ import annotations

import itertools
import json
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lakelog.core.transaction
from lakelog.core import DeltaLog, Operation
from lakelog.core.errors import CommitOutcomeUnknownError, PostCommitError
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction import (
    commit_service,
    host_commit,
    host_queue,
    requests,
    service_commit,
)
from lakelog.core.transaction.commit_service import CommitService
from lakelog.core.transaction.group import group_of
from lakelog.core.transaction.host_commit import HostCommits
from lakelog.core.wire import LostReplyError, Reply
from lakelog.logstores.locks import LockHeldError, host_lock
from support.interrupted_runs import ERRORS
from support.line_injector import Line, LineInjector
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core import OptimisticTransaction
    from support.days import OfTheDay

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

APPEND = Operation.write("Append")
ROOTS = (str(Path(lakelog.core.transaction.__file__ or "").parent),)
OWN = tuple(
    each.__file__ or ""
    for each in (commit_service, host_commit, host_queue, requests, service_commit)
)
"""Of these more lines are tried than of the others."""
CASES = ("committed", "unheard", "refused", "queued")
HOST = {"spark.lakelog.commit.host": "true"}
_names = itertools.count()


class _Stage:
    """A table with those who commit to it for others, made anew for each run."""

    def __init__(self, folder: Path, case: str) -> None:
        self.folder, self.case = folder, case
        self._origin, self._table = folder / "origin", folder / "t"
        new_table(str(self._origin))
        self.body = b""
        self.service = CommitService(["/elsewhere"], {})
        self._ticket: host_queue.Ticket | None = None
        self._raised: type[BaseException] | None = None
        self._waiting = b""

    def prepare(self) -> None:
        """Make the request that waits in the queue."""
        self._reset()
        with pytest.raises(_ItIsAskedError):
            self._begun(_ItIsAskedError).commit([add_file("g")], APPEND)
        self._waiting = self.body.partition(b"\n")[2]

    def _reset(self) -> None:
        host_commit._inside.clear()  # as in a process that has begun
        shutil.rmtree(self._table, ignore_errors=True)
        shutil.copytree(self._origin, self._table)
        root = "/elsewhere" if self.case == "refused" else str(self._table)
        self.service = CommitService([root], {})

    def _begun(self, raised: type[BaseException] | None = None) -> OptimisticTransaction:
        self._raised = raised
        conf = {
            # Of its own, as a process remembers which service is away.
            "spark.lakelog.commit.service": f"http://service-{next(_names)}.invalid",
            "spark.lakelog.commit.service.token": "token",
        }
        if self.case == "queued" and raised is None:
            conf = HOST
        return DeltaLog.for_table(str(self._table), conf).start_transaction()

    def play(self, injector: LineInjector) -> tuple[OptimisticTransaction, object]:
        """Append, and give what became of it."""
        self._reset()
        self.body = b""
        txn = self._begun()
        if self.case == "queued":
            commits = HostCommits(txn._committer.delta_log)
            with host_lock(commits._key, timeout=0.0):  # which makes the folder of the queues
                pass
            shutil.rmtree(commits._queue.folder, ignore_errors=True)
            self._ticket = commits._queue.enter(self._waiting)
        outcome: object
        try:
            injector.arm()
            outcome = txn.commit([add_file("f")], APPEND)
        except BaseException as exc:
            outcome = exc.with_traceback(None)
        finally:
            injector.disarm()
        return txn, outcome

    def send(self, body: bytes, _token: str, _seconds: float) -> Reply:
        """What a client sends arrives here."""
        self.body = body
        if self._raised is not None:
            raise self._raised
        answer = self.service.answer(body)
        if self.case == "unheard":
            raise LostReplyError("reset")
        return Reply(answer.status, answer.body, None, None)

    def complaint(self, txn: OptimisticTransaction, outcome: object) -> str | None:
        """What is wrong after a run."""
        wrong = self._wrong(txn, outcome)
        if self.case == "queued":
            return wrong or self._wrong_in_queue(txn)
        if wrong or not self.body:
            return wrong
        if self.service._running or any(
            group_of(each)._is_led for each in self.service._logs.values()
        ):
            return "who asks the service again waits for ever"
        doubt = isinstance(outcome, CommitOutcomeUnknownError) or txn.may_be_committed
        if not self._places("f") and not doubt:
            return None  # such a request is not sent again
        again = json.loads(self.service.answer(self.body).body.split(b"\n")[0])
        places = self._places("f")
        if self.case != "refused" and [again.get("version")] != places:
            return f"asked again the service says {again}, and it is in {places}"
        return self._wrong(txn, outcome)

    def _wrong(self, txn: OptimisticTransaction, outcome: object) -> str | None:
        places = self._places("f")
        match outcome:
            case _ if len(places) > 1:
                return f"it is in {places}"
            case int():
                return None if places == [outcome] else f"it heard {outcome}, and is in {places}"
            case PostCommitError():
                return None if places else f"{outcome!r}, and it is not there"
            case _ if places and not txn.may_be_committed:
                return f"{outcome!r}: its files are deleted, and it is in {places}"
            case CommitOutcomeUnknownError():
                return None
            case Exception() if places:
                return f"{outcome!r}, and it is in {places}"
            case _:
                return None

    def _wrong_in_queue(self, txn: OptimisticTransaction) -> str | None:
        assert self._ticket is not None
        places, group = self._places("g"), self._ticket.group()
        step = None if group is None else group.last()
        try:
            with host_lock(HostCommits(txn._committer.delta_log)._key, timeout=0.0):
                pass
        except LockHeldError:
            return "the turn is nobody's any more"
        finally:
            self._ticket.close()
        match step and step.kind:
            case "landed":
                assert step is not None
                return None if places == [step.version] else f"it heard {step}, and is in {places}"
            case None | "dissolved":
                return f"who waits is to commit by itself, and is in {places}" if places else None
            case _:
                return f"who waits is in {places}" if len(places) > 1 else None

    def _places(self, name: str) -> list[int]:
        log = DeltaLog.for_table(str(self._table))
        return [
            version
            for version in range(1, log.snapshot.version + 1)
            if f'"path":"{name}"' in "\n".join(log.store.read(commit_path(log.table, version)))
        ]


class _ItIsAskedError(BaseException):
    """Nothing more is to be done."""


@pytest.fixture(params=CASES)
def stage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[_Stage]:
    """One for each case."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr("os.fsync", lambda _: None)  # of some thousand runs
    made = _Stage(tmp_path, request.param)
    monkeypatch.setattr(service_commit._Service, "send", made.send)
    made.prepare()
    logging.disable()
    yield made
    logging.disable(logging.NOTSET)


def _lines(stage: _Stage, of_the_day: OfTheDay) -> list[Line]:
    stage.complaint(*stage.play(LineInjector(ROOTS)))  # the first time modules are imported
    injector = LineInjector(ROOTS)
    txn, outcome = stage.play(injector)
    assert stage.complaint(txn, outcome) is None
    assert outcome == 1
    found = [line for line in injector.seen if line.time == 0 and not line.is_bare]
    own = [line for line in found if line.file in OWN]
    others = [line for line in found if line.file not in OWN]
    return [*of_the_day(own, 50, about=stage.case), *of_the_day(others, 20, about=stage.case)]


def test_whatever_is_raised_at_lines_of_the_day_nothing_is_lost_or_doubled(
    stage: _Stage, of_the_day: OfTheDay
) -> None:
    lines, wrong, missed = _lines(stage, of_the_day), list[str](), list[Line]()
    for at, line in enumerate(lines):
        error = ERRORS[at % len(ERRORS)]
        injector = LineInjector(ROOTS, line, error("injected"))
        problem = stage.complaint(*stage.play(injector))
        if problem:
            wrong.append(f"{error.__name__} at {line}: {problem}")
        elif not injector.hit:
            missed.append(line)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(lines)}:", *wrong[:20]])
    assert len(missed) < len(lines) / 20, missed
