"""Winners that change the protocol, and jobs that change protocol or metadata in odd ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from support.differential.lines import add, protocol, remove
from support.differential.scenario import (
    Scenario,
    Step,
    Table,
    commits,
    reads,
    sets_metadata,
    wins,
)

if TYPE_CHECKING:
    from support.differential.lines import Line

_FILES: Final = (add("a", p="1"), add("b", p="2"))
_OLD: Final = Table(by=("p",), files=_FILES)
_LISTED: Final = Table(
    by=("p",), files=_FILES, features=("appendOnly", "invariants", "checkConstraints")
)
_APPENDS: Final = commits("WRITE", add("new", p="1"))


def _protocol_wins(name: str, table: Table, line: Line, *job: Step | list[Step]) -> Scenario:
    won = wins(line, operation="UPGRADE PROTOCOL", blind=True)
    return Scenario(f"the protocol {name}", table, won, *(job or (_APPENDS,)))


_PROTOCOLS: Final = [
    _protocol_wins("rises to a higher writer version", _OLD, protocol(writer=4)),
    _protocol_wins("rises to reader version 2", _OLD, protocol(reader=2, writer=5)),
    _protocol_wins("is written again", _OLD, protocol(writer=2)),
    _protocol_wins("comes to list features", _OLD, protocol("appendOnly", "invariants")),
    _protocol_wins("comes to list fewer features than it had", _OLD, protocol("appendOnly")),
    _protocol_wins(
        "gets a feature of readers",
        _LISTED,
        protocol("appendOnly", "invariants", "checkConstraints", "vacuumProtocolCheck"),
    ),
    _protocol_wins(
        "gets a feature of writers",
        _LISTED,
        protocol("appendOnly", "invariants", "checkConstraints", "domainMetadata"),
    ),
    _protocol_wins("loses a feature", _LISTED, protocol("appendOnly", "invariants")),
    _protocol_wins(
        "swaps one feature for another",
        _LISTED,
        protocol("appendOnly", "invariants", "domainMetadata"),
    ),
    _protocol_wins(
        "gets a feature that nobody knows",
        _LISTED,
        protocol("appendOnly", "invariants", "checkConstraints", "fromTheFuture"),
    ),
    _protocol_wins("asks for a reader from the future", _OLD, protocol(reader=9, writer=9)),
    _protocol_wins(
        "rises while the job raises it, too",
        _OLD,
        protocol(writer=3),
        commits("UPGRADE PROTOCOL", protocol(writer=3)),
    ),
    _protocol_wins(
        "rises while a property of the job raises it, too",
        _OLD,
        protocol(writer=3),
        sets_metadata(_OLD.changed({"delta.constraints.small": "id < 100"})),
        commits("SET TBLPROPERTIES"),
    ),
    _protocol_wins(
        "rises while the job empties a partition",
        _OLD,
        protocol(writer=3),
        reads("p = '1'"),
        commits("DELETE", remove("a", p="1")),
    ),
    Scenario(
        "the protocol rises, and a file comes where the job read",
        _OLD,
        reads("p = '1'"),
        wins(protocol(writer=3), add("w", p="1"), blind=True),
        commits("DELETE", remove("a", p="1")),
    ),
    Scenario(
        "the protocol and the schema change at once",
        _OLD,
        wins(
            protocol(writer=3),
            _OLD.changed({"delta.constraints.small": "id < 100"}),
            blind=True,
        ),
        _APPENDS,
    ),
]

_CHECKED: Final = {"delta.constraints.small": "id < 100"}
_IN_ONE_LIST: Final = [
    Scenario(
        "metadata among the actions",
        _OLD,
        wins(add("w", p="1"), blind=True),
        commits("Manual Update", _OLD.changed({"job": "1"}), add("new", p="1")),
    ),
    Scenario(
        "metadata and the protocol that it needs, among the actions",
        _OLD,
        wins(add("w", p="1"), blind=True),
        commits("Manual Update", _OLD.changed(_CHECKED), protocol(writer=3)),
    ),
    Scenario(
        "metadata among the actions, after metadata was set",
        _OLD,
        sets_metadata(_OLD.changed({"job": "1"})),
        commits("Manual Update", _OLD.changed({"job": "2"})),
    ),
    Scenario(
        "metadata of the actions meets metadata of another",
        _OLD,
        wins(_OLD.changed({"mine": "1"}), blind=True),
        commits("Manual Update", _OLD.changed({"job": "1"})),
    ),
    Scenario(
        "the protocol goes down",
        Table(by=("p",), own_protocol=protocol(writer=4)),
        commits("Manual Update", protocol(writer=3)),
    ),
    Scenario(
        "the partitioning changes by a write",
        _OLD,
        sets_metadata(_OLD.changed(partitionColumns=["id"])),
        commits("WRITE", add("new", id="1")),
    ),
]

PROTOCOL_CASES: Final = [*_PROTOCOLS, *_IN_ONE_LIST]
