from __future__ import annotations

import threading
import uuid
from collections import Counter
from dataclasses import replace

import pytest

from lakelog.core.actions import CommitInfo, Metadata, Protocol
from lakelog.core.commit.attempt import Attempt
from lakelog.core.commit.draft import Draft
from lakelog.core.commit.lock import LockChoice, LockKind
from lakelog.core.commit.look_ahead import LookAhead
from lakelog.core.commit.loop import CommitLoop
from lakelog.core.conf import DeltaConf
from lakelog.core.conflicts.checker import PendingCommit
from lakelog.core.conflicts.read_set import ReadSet
from lakelog.core.conflicts.winner import WinningCommit, read_winner
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.log.file_names import commit_path, log_path
from lakelog.core.schema import StructType
from lakelog.logstores import Capabilities, MemoryLogStore, Scope
from support.manual_clock import ManualClock

PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
METADATA = Metadata(id="id", schema_string='{"type":"struct","fields":[]}')
SLOW = 0.03


class FarStore(MemoryLogStore):
    """A store a journey away, which counts what it is asked, and by which threads."""

    def __init__(self, clock: ManualClock | None = None, seconds: float = 0.0) -> None:
        super().__init__()
        self.clock, self.seconds = clock, seconds
        self.asked: Counter[str] = Counter()
        self.ahead: Counter[str] = Counter()
        self.fails_ahead: set[str] = set()
        self.not_there_at_first: set[str] = set()
        self.together: threading.Barrier | None = None

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exclusive_create=Scope.CLUSTER)

    def read(self, path):
        self._ask(path)
        return super().read(path)

    def read_bytes(self, path):
        self._ask(path)
        return super().read_bytes(path)

    def write(self, path, lines, *, overwrite=False):
        if self.clock is not None:
            self.clock.advance(self.seconds)
        super().write(path, lines, overwrite=overwrite)

    def _ask(self, path):
        self.asked[path] += 1
        if threading.current_thread() is not threading.main_thread():
            self.ahead[path] += 1
            if path in self.fails_ahead:
                raise ConnectionError(path)
        if path in self.not_there_at_first and self.asked[path] == 1:
            raise FileNotFoundError(path)
        if self.together is not None:
            self.together.wait(30)


@pytest.fixture
def table() -> str:
    return f"memory://look-ahead/{uuid.uuid4().hex}"


def put(store: MemoryLogStore, table: str, version: int, txn_id: str | None = None) -> None:
    info = CommitInfo(operation="WRITE", txn_id=txn_id or f"rival-{version}", is_blind_append=True)
    store.write(commit_path(table, version), [info.to_json()])


def with_commits(store: FarStore, table: str, *versions: int) -> FarStore:
    store.create_folder(log_path(table))
    for version in versions:
        put(store, table, version)
    return store


class Looking:
    """A look ahead, and what it had to read by itself."""

    def __init__(self, store: FarStore, table: str, seconds: float = SLOW, ours: str = "") -> None:
        self.attempt = Attempt(1, write_seconds=seconds)
        self.ahead = LookAhead(store, table, self.attempt)
        self.store, self.table, self.ours = store, table, ours
        self.read_here: list[int] = []

    def read(self, version: int) -> WinningCommit | None:
        return self.ahead.read(version, self._read, lambda each: each.txn_id == self.ours)

    def _read(self, version: int) -> WinningCommit | None:
        self.read_here.append(version)
        return read_winner(self.store, self.table, version)

    def all_from(self, version: int) -> list[int]:
        found = []
        while (winner := self.read(version)) is not None:
            assert winner.version == version
            found.append(version)
            version += 1
        return found


def test_two_versions_are_asked_for_at_the_same_time(table: str) -> None:
    store = with_commits(FarStore(), table, 1)
    # Neither read goes on before the other has begun.
    store.together = threading.Barrier(2)
    assert Looking(store, table).all_from(1) == [1]


def test_twice_as_many_are_asked_for_each_time_and_each_once(table: str) -> None:
    store = with_commits(FarStore(), table, *range(1, 30))
    looking = Looking(store, table)
    assert looking.all_from(1) == list(range(1, 30))
    assert looking.read_here == [1, 3, 7, 15, 23]
    assert [store.asked[commit_path(table, version)] for version in range(1, 30)] == [1] * 29
    assert looking.attempt.requests == store.asked.total() - len(looking.read_here)


def test_one_at_a_time_is_read_where_a_request_takes_no_time(table: str) -> None:
    store = with_commits(FarStore(), table, *range(1, 6))
    looking = Looking(store, table, seconds=0.001)
    assert looking.all_from(1) == [1, 2, 3, 4, 5]
    assert (looking.read_here, store.ahead.total()) == ([1, 2, 3, 4, 5, 6], 0)


def test_what_could_not_be_read_ahead_is_read_when_its_turn_comes(table: str) -> None:
    store = with_commits(FarStore(), table, *range(1, 8))
    store.fails_ahead = {commit_path(table, version) for version in (2, 4, 5)}
    looking = Looking(store, table)
    assert looking.all_from(1) == list(range(1, 8))
    assert {2, 4, 5} <= set(looking.read_here)


def test_a_version_that_came_into_being_meanwhile_is_not_passed_over(table: str) -> None:
    store = with_commits(FarStore(), table, *range(1, 6))
    store.not_there_at_first = {commit_path(table, 4)}
    looking = Looking(store, table)
    assert looking.all_from(1) == [1, 2, 3, 4, 5]
    assert 4 in looking.read_here


def test_a_commit_of_ours_that_was_met_ahead_is_read_with_care(table: str) -> None:
    store = with_commits(FarStore(), table, 1)
    put(store, table, 2, "ours")
    looking = Looking(store, table, ours="ours")
    assert looking.all_from(1) == [1, 2]
    assert looking.read_here[:2] == [1, 2]


def commit(store: FarStore, table: str, clock: ManualClock, txn_id: str = "mine") -> int:
    return CommitLoop(
        store,
        clock,
        DeltaConf(),
        pending=PendingCommit(
            table=table,
            read_version=0,
            partition_schema=StructType(),
            metadata=METADATA,
            protocol=PROTOCOL,
            reads=ReadSet(),
            isolation=IsolationLevel.SERIALIZABLE,
            is_blind_append=True,
            changes_metadata=False,
            changes_protocol=False,
            removed_paths={},
            domains=frozenset(),
        ),
        draft=Draft(
            commit_info=CommitInfo(operation="WRITE", txn_id=txn_id, is_blind_append=True),
            actions=(),
        ),
        lock=LockChoice(LockKind.NONE, "test"),
        read_at_ms=clock.now_ms(),
        attempts=[],
    ).do_commit_retry_iteratively()


@pytest.mark.parametrize(("seconds", "ahead"), [(SLOW, True), (0.0, False)])
def test_a_commit_looks_ahead_where_its_write_took_long(
    table: str, seconds: float, ahead: bool
) -> None:
    clock = ManualClock()
    store = with_commits(FarStore(clock, seconds), table, *range(20))
    assert commit(store, table, clock) == 20
    assert (store.ahead.total() > 0) is ahead


def test_a_lost_reply_is_known_again_among_what_was_read_ahead(table: str) -> None:
    clock = ManualClock()
    store = with_commits(FarStore(clock, SLOW), table, 0, 1)
    put(store, table, 2, "mine")
    put(store, table, 3)
    assert commit(store, table, clock) == 2
