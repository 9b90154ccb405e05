"""The table of Delta's documentation: which pairs of operations can conflict.

Every cell is run: two transactions start from one version, the winner commits first, and the cell
says what the other one gets. Where it gets nothing, both must be in the table.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest

from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
)
from support.tables import add_file, new_table, schema_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.transaction.optimistic import OptimisticTransaction

# "-": no conflict; "added", "removed": because of files that the winner added or removed.
# "same" and "other": the partition that each operation's condition names.
# "whole": a table without partitions, where no condition tells two operations apart.
# S is Serializable, WS is WriteSerializable. INSERT reads nothing: a blind append.
MATRIX = """
| this one   | the winner | S same  | WS same | S other | WS other | S whole | WS whole |
|------------|------------|---------|---------|---------|----------|---------|----------|
| INSERT     | INSERT     | -       | -       | -       | -        | -       | -        |
| INSERT     | UPDATE     | -       | -       | -       | -        | -       | -        |
| INSERT     | DELETE     | -       | -       | -       | -        | -       | -        |
| INSERT     | MERGE      | -       | -       | -       | -        | -       | -        |
| INSERT     | COMPACTION | -       | -       | -       | -        | -       | -        |
| UPDATE     | INSERT     | added   | -       | -       | -        | added   | -        |
| UPDATE     | UPDATE     | added   | added   | -       | -        | added   | added    |
| UPDATE     | DELETE     | removed | removed | -       | -        | removed | removed  |
| UPDATE     | MERGE      | added   | added   | -       | -        | added   | added    |
| UPDATE     | COMPACTION | added   | added   | -       | -        | added   | added    |
| DELETE     | INSERT     | added   | -       | -       | -        | added   | -        |
| DELETE     | UPDATE     | added   | added   | -       | -        | added   | added    |
| DELETE     | DELETE     | removed | removed | -       | -        | removed | removed  |
| DELETE     | MERGE      | added   | added   | -       | -        | added   | added    |
| DELETE     | COMPACTION | added   | added   | -       | -        | added   | added    |
| MERGE      | INSERT     | added   | -       | -       | -        | added   | -        |
| MERGE      | UPDATE     | added   | added   | -       | -        | added   | added    |
| MERGE      | DELETE     | removed | removed | -       | -        | removed | removed  |
| MERGE      | MERGE      | added   | added   | -       | -        | added   | added    |
| MERGE      | COMPACTION | added   | added   | -       | -        | added   | added    |
| COMPACTION | INSERT     | -       | -       | -       | -        | -       | -        |
| COMPACTION | UPDATE     | removed | removed | -       | -        | removed | removed  |
| COMPACTION | DELETE     | removed | removed | -       | -        | removed | removed  |
| COMPACTION | MERGE      | removed | removed | -       | -        | removed | removed  |
| COMPACTION | COMPACTION | removed | removed | -       | -        | removed | removed  |
"""

LEVELS = {"S": "Serializable", "WS": "WriteSerializable"}
ERRORS = {"added": ConcurrentAppendException, "removed": ConcurrentDeleteReadException}
_names = itertools.count()


class Cell(NamedTuple):
    """One cell of the matrix."""

    ours: str
    theirs: str
    level: str
    where: str
    outcome: str


def cells() -> list[Cell]:
    lines = [[c.strip() for c in row.strip("| ").split("|")] for row in MATRIX.split("\n") if row]
    (_, _, *columns), _, *rows = lines
    return [
        Cell(ours, theirs, column.split()[0], column.split()[1], outcome)
        for ours, theirs, *outcomes in rows
        for column, outcome in zip(columns, outcomes, strict=True)
    ]


class Side(NamedTuple):
    """Where an operation works: a partition, or a table that has none."""

    name: str
    day: str | None

    @property
    def predicate(self) -> str | None:
        """Of the operation; a condition on the rows alone does not narrow what it reads."""
        return "id > 5" if self.day is None else f"day = '{self.day}' AND id > 5"

    def add(self, suffix: str = "", *, data_change: bool = True) -> AddFile:
        values = {} if self.day is None else {"day": self.day}
        return add_file(self.name + suffix, data_change=data_change, **values)


Prepared: TypeAlias = "tuple[list[AddFile | RemoveFile], Operation]"


def insert(_txn: OptimisticTransaction, side: Side) -> Prepared:
    return [side.add()], Operation.write("Append")


def rewrite(name: str, *suffixes: str, data_change: bool = True) -> Callable[..., Prepared]:
    """An operation that replaces the files that it reads by as many as there are suffixes."""

    def prepare(txn: OptimisticTransaction, side: Side) -> Prepared:
        found = txn.filter_files(side.predicate)
        adds = [side.add(suffix, data_change=data_change) for suffix in suffixes]
        return [*adds, *(f.remove(1, data_change=data_change) for f in found)], Operation(name)

    return prepare


OPERATIONS: dict[str, Callable[[OptimisticTransaction, Side], Prepared]] = {
    "INSERT": insert,
    "UPDATE": rewrite("UPDATE", "-updated"),
    "DELETE": rewrite("DELETE"),
    "MERGE": rewrite("MERGE", "-matched", "-inserted"),
    "COMPACTION": rewrite("OPTIMIZE", "-compacted", data_change=False),
}


def table_for(cell: Cell) -> tuple[DeltaLog, Side, Side]:
    """A table with a file in each partition, and where the two operations work."""
    today = None if cell.where == "whole" else "2024-01-01"
    ours = Side("ours", today)
    theirs = Side("theirs", "2024-01-02" if cell.where == "other" else today)
    columns = {"id": "long"} if today is None else {"id": "long", "day": "date"}
    log = new_table(
        f"memory://conflict-matrix/{next(_names)}",
        schema=schema_json(**columns),
        partition_by=list(columns)[1:],
        properties={"delta.isolationLevel": LEVELS[cell.level]},
    )
    first = [Side(f"old-{day}", day).add() for day in dict.fromkeys([ours.day, theirs.day])]
    log.start_transaction().commit(first, Operation.write("Append"))
    return log, ours, theirs


@pytest.mark.parametrize("cell", cells(), ids="-".join)
def test_two_operations_conflict_as_delta_documents(cell: Cell) -> None:
    log, ours, theirs = table_for(cell)
    loser, winner = log.start_transaction(), DeltaLog.for_table(log.table).start_transaction()
    our_actions, our_operation = OPERATIONS[cell.ours](loser, ours)
    their_actions, their_operation = OPERATIONS[cell.theirs](winner, theirs)
    winner.commit(their_actions, their_operation)
    if cell.outcome != "-":
        with pytest.raises(DeltaConcurrentModificationException) as caught:
            loser.commit(our_actions, our_operation)
        assert isinstance(caught.value, ERRORS[cell.outcome])
        assert caught.value.winning_version == log.update().version == 2
        return
    assert loser.commit(our_actions, our_operation) == 3
    live = {file.path for file in log.update().files()}
    actions = [*our_actions, *their_actions]
    assert live >= {action.path for action in actions if isinstance(action, AddFile)}
    assert live.isdisjoint(action.path for action in actions if isinstance(action, RemoveFile))


def test_the_matrix_has_every_pair_at_both_levels() -> None:
    pairs = set(itertools.product(OPERATIONS, OPERATIONS))
    assert {(cell.ours, cell.theirs) for cell in cells()} == pairs
    assert len(cells()) == len(pairs) * len(LEVELS) * 3
