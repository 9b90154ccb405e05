"""Logs of very many commits: what they cost is counted, not timed."""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, Operation, OptimisticTransaction
from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.clock import SystemClock
from lakelog.core.commit import loop as commit_loop
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import ConcurrentDeleteReadException
from lakelog.core.log.file_names import commit_path
from lakelog.logstores import LocalLogStore, MemoryLogStore
from support.faults import FaultyLogStore
from support.manual_clock import ManualClock
from support.raw_log import RawLog, add, remove
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMITS = 10_000
WINNERS = 1_000
_names = itertools.count()


class Gauge(LocalLogStore):
    """Counts reads and listings, and how many reads are open at once."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.listings = 0
        self.at_once = self.most_at_once = self.most_open = 0
        self._lock = threading.Lock()

    def read_bytes(self, path: str) -> bytes:
        with self._lock:
            self.reads.append(path)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            data = super().read_bytes(path)
            if len(self.reads) % 100 == 0:
                self.most_open = max(self.most_open, len(os.listdir("/proc/self/fd")))
            return data
        finally:
            with self._lock:
                self.at_once -= 1

    def list_from(self, path: str) -> Iterator[object]:  # type: ignore[override]
        self.listings += 1
        return super().list_from(path)


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> RawLog:
    """10,000 commits of one file each; every third takes away the file of the one before."""
    log = RawLog(tmp_path_factory.mktemp("long") / "t").create()
    for version in range(1, COMMITS):
        gone = [remove(f"f{version - 1}")] if version % 3 == 2 else []
        log.commit(
            add(f"f{version}", size=version), {"txn": {"appId": "a", "version": version}}, *gone
        )
    return log


def test_ten_thousand_commits_without_a_checkpoint_give_the_right_table(long_log: RawLog) -> None:
    store = Gauge()
    before = len(os.listdir("/proc/self/fd"))
    log = DeltaLog(long_log.table, store, DeltaConf.from_mapping(None), SystemClock())
    snapshot = log.update()
    assert snapshot.version == COMMITS - 1
    live = {f"f{v}" for v in range(1, COMMITS) if v % 3 != 1 or v == COMMITS - 1}
    assert set(snapshot.file_table["path"].to_pylist()) == live
    assert snapshot.num_files == len(live)
    assert snapshot.tombstones.num_rows == COMMITS - 1 - len(live)
    assert snapshot.transactions == {"a": COMMITS - 1}
    assert snapshot.size_in_bytes == sum(int(path[1:]) for path in live)
    # Every commit is read once, from one listing, by a few at a time.
    assert sorted(store.reads) == [commit_path(long_log.table, v) for v in range(COMMITS)]
    assert store.listings == 1
    assert store.most_at_once <= 16
    assert store.most_open <= before + 32


def test_a_version_in_the_middle_of_them_reads_no_later_commit(long_log: RawLog) -> None:
    store = Gauge()
    log = DeltaLog(long_log.table, store, DeltaConf.from_mapping(None), SystemClock())
    assert log.snapshot_at(4_999).transactions == {"a": 4_999}
    assert len(store.reads) == 5_000


def rivals(table: str, first: int, count: int) -> None:
    """Other writers' appends to one partition, made in one go."""
    store = MemoryLogStore()
    for version in range(first, first + count):
        added = add_file(f"rival-{version}", day="1")
        info = '{"commitInfo":{"operation":"WRITE","isBlindAppend":true}}'
        store.write(commit_path(table, version), [info, added.to_json()])


def partitioned(clock: ManualClock | None = None) -> tuple[str, FaultyLogStore, DeltaLog]:
    table = f"memory://many-commits/{next(_names)}"
    made = new_table(table, partition_by=("day",), schema=DAYS, clock=clock)
    store = FaultyLogStore(made.store)
    return (
        table,
        store,
        DeltaLog(table, store, DeltaConf.from_mapping(None), clock or ManualClock()),
    )


DAYS = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"day","type":"string","nullable":true,"metadata":{}}]}'
)


def read_day_two(log: DeltaLog) -> OptimisticTransaction:
    txn = log.start_transaction()
    txn.filter_files("day = '2'")
    return txn


def test_a_thousand_winners_are_read_once_each() -> None:
    table, store, log = partitioned()
    txn = read_day_two(log)
    rivals(table, 1, WINNERS)
    store.calls.clear()
    mine: list[AddFile | RemoveFile] = [add_file("mine", day="2")]
    assert txn.commit(mine, Operation("WRITE")) == WINNERS + 1
    # The last one asked for is the first that is not there. What was read is looked at before each
    # of two writes.
    calls = list(store.calls)
    reads = [path for operation, path in calls if operation == "read"]
    asked = [0, *range(1, WINNERS + 2), 0]
    assert reads == [commit_path(table, version) for version in asked]
    assert [operation for operation, _ in calls if operation not in ("read", "write")] == []
    assert len(calls) - len(reads) == 2
    # What was checked need not be read again to know the table as it is now.
    assert log.known_version == WINNERS + 1
    assert log.snapshot.num_files == WINNERS + 1
    assert len(store.calls) == len(calls)


def test_over_several_lost_races_no_winner_is_read_again() -> None:
    """Each time the transaction has caught up, some rivals slip in before its write."""
    table, store, log = partitioned()
    txn = read_day_two(log)
    rivals(table, 1, WINNERS)
    batches = [40, 1, 7, 25]

    def slip_in(path: str) -> None:
        version = int(path.rsplit("/", 1)[1].split(".")[0])
        if batches and version > WINNERS:
            rivals(table, version, batches.pop(0))

    store.before_write = slip_in
    store.calls.clear()
    last = WINNERS + 40 + 1 + 7 + 25
    assert txn.commit([add_file("mine", day="2")], Operation("WRITE")) == last + 1
    calls = list(store.calls)
    reads = [path for operation, path in calls if operation == "read"]
    assert reads.count(commit_path(table, 0)) == 6
    winners = [p for p in reads if p not in (commit_path(table, 0), commit_path(table, last + 1))]
    # A version that was not there when it was looked for is looked for again once it was lost.
    probed = {WINNERS + 1, WINNERS + 41, WINNERS + 42, WINNERS + 49}
    again = [path for path in winners if winners.count(path) > 1]
    assert set(again) == {commit_path(table, version) for version in probed}
    assert len(winners) == last + len(probed)
    assert len([1 for operation, _ in calls if operation == "write"]) == 6


def test_winners_that_are_too_many_to_keep_are_read_again_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit_loop, "_KEPT_ACTIONS", 39)
    table, store, log = partitioned()
    txn = read_day_two(log)
    rivals(table, 1, 20)
    store.calls.clear()
    assert txn.commit([add_file("mine", day="2")], Operation("WRITE")) == 21
    assert len([1 for operation, _ in store.calls if operation == "read"]) > 21
    assert log.snapshot.num_files == 21


def test_a_conflict_with_the_last_of_a_thousand_winners_is_found() -> None:
    table, store, log = partitioned()
    txn = log.start_transaction()
    txn.commit([add_file("theirs", day="2")], Operation("WRITE"))
    txn = read_day_two(log)
    rivals(table, 2, WINNERS)
    gone = RemoveFile(path="theirs", deletion_timestamp=1, data_change=True)
    store.write(commit_path(table, WINNERS + 2), [gone.to_json()])
    store.calls.clear()
    with pytest.raises(ConcurrentDeleteReadException) as caught:
        txn.commit([add_file("mine", day="2")], Operation("WRITE"))
    assert caught.value.fields["version"] == WINNERS + 2
    reads = [path for operation, path in store.calls if operation == "read"]
    assert reads == [commit_path(table, version) for version in range(1, WINNERS + 3)]
