"""No table yet: two who make it at once, and one who finds it made."""

from __future__ import annotations

from typing import Final

from support.differential.lines import add, info, protocol, remove, txn
from support.differential.scenario import (
    Scenario,
    Step,
    Table,
    commits,
    reads,
    reads_app,
    reads_whole_table,
    sets_metadata,
    wins,
)

_TABLE: Final = Table(by=("p",))
_OTHER: Final = Table(by=("p",), columns={"id": "long", "p": "string", "more": "long"})
_MAKES: Final = [sets_metadata(_TABLE.metadata), commits("WRITE", add("new", p="1"))]


def _made(table: Table) -> Step:
    """Another makes the table."""
    return Step("wins", ([*table.lines, add("w", p="1")],))


CREATION_CASES: Final = [
    Scenario("nobody else makes the table", None, _MAKES),
    Scenario("another makes the same table", None, _made(_TABLE), _MAKES),
    Scenario("another makes another table", None, _made(_OTHER), _MAKES),
    Scenario("another makes the table and goes on", None, _made(_TABLE), wins(), _MAKES),
    Scenario("the job read the table that was not there", None, reads(), _made(_TABLE), _MAKES),
    Scenario(
        "the job read all of the table that was not there",
        None,
        reads_whole_table(),
        _MAKES,
    ),
    Scenario(
        "the job records its progress in a new table",
        None,
        reads_app("job"),
        sets_metadata(_TABLE.metadata),
        commits("WRITE", txn("job"), add("new", p="1")),
    ),
    Scenario("the first commit has no metadata", None, commits("WRITE", add("new", p="1"))),
    Scenario(
        "the first commit has no metadata, and another makes the table",
        None,
        _made(_TABLE),
        commits("WRITE", add("new", p="1")),
    ),
    Scenario(
        "the first commit brings metadata and protocol",
        None,
        commits("WRITE", protocol(writer=2), _TABLE.metadata, add("new", p="1")),
    ),
    Scenario(
        "another begins a log without a table",
        None,
        Step("wins", ([info("WRITE", blind=True), add("w", p="1")],)),
        _MAKES,
    ),
    Scenario(
        "a new table removes a file",
        None,
        sets_metadata(_TABLE.metadata),
        commits("WRITE", remove("old", p="1"), add("new", p="1")),
    ),
]
