"""Group commit under every fault: no append is lost, none is doubled, and each is told the truth.

A first writer commits while three others get in line. Their common write meets one fault, and what
is written after it another one; another process may have committed before, and reads may fail. Of
these a day has a third.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, Operation, OptimisticTransaction
from lakelog.core.errors import CommitOutcomeUnknownError
from support.faults import Crash, Fault, FaultyLogStore
from support.tables import add_file, new_table
from support.waiting_writers import grouping_log, in_one_turn

if TYPE_CHECKING:
    from support.days import OfTheDay

WRITERS = 4
_names = itertools.count()


class _Writer:
    def __init__(self, log: DeltaLog, name: str) -> None:
        self.txn: OptimisticTransaction = log.start_transaction()
        self.name = name

    def __call__(self) -> int:
        return self.txn.commit([add_file(self.name)], Operation.write("Append"))


def _landed(table: DeltaLog, name: str) -> list[int]:
    """The versions that add a file."""
    newest = DeltaLog.for_table(table.table).snapshot.version
    versions = []
    for version in range(newest + 1):
        path = f"{table.table}/_delta_log/{version:020}.json"
        versions += [version for line in table.store.read(path) if f'"{name}"' in line]
    return versions


def _complaints(table: DeltaLog, writers: list[_Writer], found: list[Any]) -> list[str]:
    said = []
    for writer, outcome in zip(writers, found, strict=True):
        there = _landed(table, writer.name)
        if len(there) > 1:
            said.append(f"{writer.name} is in the versions {there}")
        if isinstance(outcome, int):
            if there != [outcome]:
                said.append(f"{writer.name} was told {outcome}, and is in {there}")
        elif isinstance(outcome, CommitOutcomeUnknownError | Crash):
            if there and not writer.txn.may_be_committed:
                said.append(f"{writer.name} is in {there}, and says that it can't be")
        elif there or writer.txn.may_be_committed:
            said.append(f"{writer.name} failed by {outcome!r}, and is in {there}")
    return said


def _play(faults: tuple[Fault, Fault], rival: bool, failing_reads: int) -> list[str]:
    table = new_table(f"memory://group-histories/{next(_names)}/t")
    log = grouping_log(table)
    store = log.store
    assert isinstance(store, FaultyLogStore)
    writers = [_Writer(log, f"file-{number}") for number in range(WRITERS)]

    def meanwhile() -> None:
        if rival:
            other = DeltaLog.for_table(table.table).start_transaction()
            other.commit([add_file("rival")], Operation.write("Append"))
        store.failing_reads = failing_reads

    store.writes.extend([Fault.NONE, *([Fault.NONE] if rival else []), *faults])
    first, *others = writers
    found = in_one_turn(log, first, others, meanwhile)
    store.failing_reads = 0
    store.deliver_late()
    said = _complaints(table, writers, found)
    # The turn is free: who comes next commits.
    store.writes.clear()
    later = _Writer(log, "later")
    return said + _complaints(table, [later], [later()])


@pytest.mark.soak
@pytest.mark.parametrize("first", list(Fault), ids=lambda fault: fault.name)
def test_no_append_of_a_group_is_lost_or_doubled_or_told_wrongly(
    first: Fault, of_the_day: OfTheDay
) -> None:
    troubles = [*itertools.product(Fault, (False, True), (0, 2, 9))]
    for second, rival, failing_reads in of_the_day(troubles, len(troubles) // 3, about=first.name):
        said = _play((first, second), rival, failing_reads)
        assert not said, (second.name, rival, failing_reads, said)
