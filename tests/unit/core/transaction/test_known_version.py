"""An append behind the version that is known: one request where no one else writes."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakelog.core.actions.operation import Operation
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import ConcurrentWriteException, MetadataChangedException
from lakelog.core.log.file_names import commit_path
from lakelog.logstores import Capabilities, MemoryLogStore, Scope
from support.manual_clock import ManualClock
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TRIP = 0.03
WRITE = Operation("WRITE")


class Far(MemoryLogStore):
    """Storage a journey away; it says what was asked of it."""

    def __init__(self, clock: ManualClock, scope: Scope = Scope.CLUSTER) -> None:
        super().__init__()
        self.clock, self.scope = clock, scope
        self.asked: list[str] = []
        self.fails = False

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exclusive_create=self.scope)

    def _ask(self, what: str, path: str) -> None:
        # What another thread asks travels beside what this one does.
        if threading.current_thread() is threading.main_thread():
            self.clock.advance(TRIP)
        name, _, kind = path.rpartition("/")[2].partition(".")
        self.asked.append(f"{what} {int(name)}" if kind == "json" else f"{what} {name}")

    def read(self, path: str) -> Iterator[str]:
        self._ask("read", path)
        return super().read(path)

    def read_bytes(self, path: str) -> bytes:
        self._ask("read", path)
        return super().read_bytes(path)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self._ask("make", path)
        if self.fails:
            raise OSError("no room")
        super().write(path, lines, overwrite=overwrite)


class Table:
    """One that was made by another log, and a log that has just committed version 1 of it."""

    def __init__(self, scope: Scope = Scope.CLUSTER) -> None:
        self.uri = f"memory://known-version-{uuid.uuid4().hex}/t"
        self.rival = new_table(self.uri, properties={"delta.checkpointInterval": "1000"})
        self.clock = ManualClock()
        self.store = Far(self.clock, scope)
        self.log = DeltaLog(self.uri, self.store, DeltaConf.from_mapping(None), self.clock)
        self.append(newest=True)

    def append(self, *, newest: bool = False) -> list[str]:
        """Commit one file; what that asked of the storage."""
        self.store.asked.clear()
        txn = self.log.start_transaction(newest=newest)
        txn.commit([add_file(uuid.uuid4().hex)], WRITE)
        return self.store.asked

    def met_no_one_for(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.append()

    def rival_appends(self) -> None:
        self.rival.start_transaction().commit([add_file(uuid.uuid4().hex)], WRITE)

    @property
    def files(self) -> int:
        return len(DeltaLog.for_table(self.uri).snapshot.files())


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table()
    yield table
    MemoryLogStore.forget(table.uri.removeprefix("memory://").partition("/")[0])


def test_a_commit_is_one_request_and_every_ninth_looks(table: Table) -> None:
    asked = [list(table.append()) for _ in range(18)]
    for number in (*range(8), *range(9, 17)):
        assert asked[number] == [f"make {number + 2}"]
    assert asked[8] == ["read 10", "read 9", "make 10"]
    assert asked[17] == ["read 19", "read 18", "make 19"]
    assert table.log.snapshot.version == 19
    assert table.files == 19


def test_who_asks_for_the_newest_version_looks_each_time(table: Table) -> None:
    assert table.append(newest=True) == ["read 2", "read 1", "make 2"]
    assert table.append(newest=True) == ["read 3", "read 2", "make 3"]


def test_near_storage_is_looked_at_each_time() -> None:
    table = Table(Scope.HOST)
    assert [each.partition(" ")[0] for each in table.append()] == ["read", "read", "read", "make"]


def test_what_was_made_a_round_trip_ago_is_looked_at(table: Table) -> None:
    table.clock.advance(TRIP)
    assert table.append() == ["read 1", "make 2"]
    table.clock.advance(TRIP * 0.9)
    assert table.append() == ["make 3"]


def test_a_slow_create_is_no_look_of_the_same_length(table: Table) -> None:
    table.clock.advance(TRIP)
    txn = table.log.start_transaction(newest=False)
    table.clock.advance(-TRIP)
    slow = table.store._ask

    def ask(what: str, path: str) -> None:
        table.clock.advance(5.0)
        slow(what, path)

    table.store._ask = ask  # type: ignore[method-assign]
    txn.commit([add_file("slow")], WRITE)
    table.store._ask = slow  # type: ignore[method-assign]
    table.clock.advance(0.1)
    assert table.append() == ["read 2", "make 3"]


def test_what_was_not_seen_for_a_second_is_asked_for(table: Table) -> None:
    table.clock.advance(1.0)
    assert sorted(table.append()) == ["make 2", "read 1", "read 1", "read 2"]


def test_a_loss_costs_one_look_and_ends_the_trust(table: Table) -> None:
    table.append()
    table.rival_appends()
    asked = table.append()
    # Side by side: the winner, what may come after it, and whether the table is still the same.
    assert (asked[0], asked[-1]) == ("make 3", "make 4")
    assert sorted(asked[1:-1]) == ["read 2", "read 3", "read 4"]
    assert table.log.snapshot.version == 4
    assert table.files == 4
    assert table.append() == ["read 5", "read 4", "make 5"]
    table.met_no_one_for(0.5)
    assert table.append()[-1] == "make 7"
    table.met_no_one_for(4.5)
    assert table.append() == ["make 9"]


def test_who_meets_news_looks_for_a_while(table: Table) -> None:
    table.append()
    table.rival_appends()
    table.log.update()
    assert table.append() == ["read 4", "read 3", "make 4"]


def test_new_metadata_is_a_conflict_once(table: Table) -> None:
    table.append()
    txn = table.rival.start_transaction()
    txn.update_metadata(replace(txn.metadata, configuration={"a": "b"}))
    txn.commit([], Operation("SET TBLPROPERTIES"))
    with pytest.raises(MetadataChangedException):
        table.append()
    table.append()
    assert table.log.snapshot.metadata.configuration["a"] == "b"
    assert table.files == 3


def test_a_failure_ends_the_trust(table: Table) -> None:
    table.append()
    table.store.fails = True
    with pytest.raises(OSError, match="no room"):
        table.append()
    table.store.fails = False
    assert table.append() == ["read 3", "read 2", "make 3"]


@pytest.mark.parametrize("versions", [0, 1, 2, 3, 5])
def test_nothing_lands_in_another_table_of_the_same_path(table: Table, versions: int) -> None:
    table.append()
    name = table.uri.removeprefix("memory://").partition("/")[0]
    MemoryLogStore.forget(name)
    if versions:
        other = new_table(table.uri)
        for number in range(1, versions):
            other.start_transaction().commit([add_file(f"other-{number}")], WRITE)
    table.clock.advance(TRIP)  # the least that it takes to drop a table and to make another
    with pytest.raises((ConcurrentWriteException, FileNotFoundError)):
        table.append()
    made = [] if not versions else MemoryLogStore().list_from(commit_path(table.uri, 0))
    assert [each.name.removesuffix(".json") for each in made] == [
        f"{each:020d}" for each in range(versions)
    ]


def test_what_reads_is_checked_against_all_that_came_after_what_it_read(table: Table) -> None:
    table.append()
    (doomed, *_) = table.rival.update().files()
    removal = table.rival.start_transaction()
    removal.filter_files()
    removal.commit([doomed.remove(1)], Operation("DELETE"))
    txn = table.log.start_transaction(newest=False)
    assert txn.snapshot is not None
    assert txn.snapshot.version == 2
    found = txn.filter_files()
    with pytest.raises(Exception, match="DELTA_CONCURRENT_DELETE_READ"):
        txn.commit([each.remove(1) for each in found], Operation("DELETE"))
