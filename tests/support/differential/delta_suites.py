"""The cases of Delta's own conflict tests: `OptimisticTransactionSuite` and its older relatives.

Their names are kept, so that a case is found there. Where Delta's tests commit a winner through
a second transaction, its commit is spelled out here.
"""

from __future__ import annotations

from typing import Any, Final

from support.differential.lines import add, protocol, remove, txn
from support.differential.scenario import (
    Scenario,
    Table,
    commits,
    reads,
    reads_app,
    reads_whole_table,
    replaces_partitions_of,
    wins,
)

_PLAIN: Final = Table()
_BY_X: Final = Table(by=("x",), columns={"id": "long", "x": "integer"})
_BY_PART: Final = Table(
    by=("part",),
    columns={"id": "long", "part": "integer"},
    files=(add("a", part="0"), add("b", part="1")),
)
_BY_ODD_NAME: Final = Table(
    by=("partitionValues",),
    columns={"id": "long", "partitionValues": "integer"},
    files=(add("a", partitionValues="0"), add("b", partitionValues="1")),
)


def by_x(*files: str) -> Table:
    """Files named by letter and partition, as `a2`."""
    lines = tuple(add(name[0], x=name[1:]) for name in files)
    return Table(by=("x",), columns={"id": "long", "x": "integer"}, files=lines)


_CHECKED: Final = [
    Scenario(
        "append / append",
        _PLAIN,
        wins(add("a"), operation="TRUNCATE", blind=True),
        commits("TRUNCATE", add("b")),
    ),
    Scenario(
        "disjoint txns",
        _PLAIN,
        reads_app("t1"),
        wins(txn("t2", 0), operation="TRUNCATE", blind=True),
        commits("TRUNCATE"),
    ),
    Scenario(
        "disjoint delete / read",
        by_x("a2"),
        reads("x = 1"),
        wins(remove("a", x="2"), operation="TRUNCATE"),
        commits("TRUNCATE"),
    ),
    Scenario(
        "disjoint add / read",
        _BY_X,
        reads("x = 1"),
        wins(add("a", x="2"), operation="TRUNCATE", blind=True),
        commits("TRUNCATE"),
    ),
    Scenario(
        "delete / delete",
        _PLAIN,
        wins(remove("a"), operation="TRUNCATE"),
        commits("TRUNCATE", remove("a")),
    ),
    Scenario(
        "add / read + write",
        _BY_X,
        reads("x = 1"),
        wins(add("a", x="1"), operation="TRUNCATE", blind=True),
        commits("TRUNCATE", add("b", x="1")),
    ),
    Scenario(
        "add / read + no write",
        _BY_X,
        reads("x = 1"),
        wins(add("a", x="1"), operation="TRUNCATE", blind=True),
        commits("TRUNCATE"),
    ),
    Scenario(
        "add in part=2 / read from part=1,2 and write to part=1",
        _BY_X,
        reads("x = 1", "x = 2"),
        wins(add("a", x="1"), operation="TRUNCATE", blind=True),
        commits("TRUNCATE", add("b", x="2")),
    ),
    Scenario(
        "delete / read",
        by_x("a1"),
        reads("x = 1"),
        wins(remove("a", x="1"), operation="TRUNCATE"),
        commits("TRUNCATE"),
    ),
    Scenario(
        "schema change",
        _PLAIN,
        wins(_PLAIN.changed(id="another"), operation="TRUNCATE", blind=True),
        commits("TRUNCATE"),
    ),
    Scenario(
        "conflicting txns",
        _PLAIN,
        reads_app("t1"),
        wins(txn("t1", 0), operation="TRUNCATE", blind=True),
        commits("TRUNCATE"),
    ),
    Scenario(
        "upgrade / upgrade",
        _PLAIN,
        wins(protocol(writer=3), operation="TRUNCATE", blind=True),
        commits("TRUNCATE", protocol(writer=4)),
    ),
    Scenario(
        "taint whole table",
        by_x("a2"),
        reads("x = 1"),
        reads_whole_table(),
        wins(add("b", x="3"), operation="TRUNCATE", blind=True),
        commits("TRUNCATE", add("c", x="4")),
    ),
    Scenario(
        "taint whole table + concurrent remove",
        Table(files=(add("a"),)),
        reads_whole_table(),
        wins(remove("a"), operation="TRUNCATE"),
        commits("TRUNCATE", add("b")),
    ),
]


def _overwrites(table: Table) -> list[Scenario]:
    (column,) = table.by
    kept: dict[str, Any] = {column: "0"}
    new: dict[str, Any] = {column: "1"}
    cases = {
        "append same partition": add("y", **kept),
        "append different partition": add("y", **new),
        "delete same partition": remove("a", **kept),
        "delete different partition": remove("b", **new),
    }
    return [
        Scenario(
            f"filterFiles({column}): {name}",
            table,
            replaces_partitions_of(add("x", **kept)),
            wins(line, operation="TRUNCATE", blind="add" in line),
            commits("TRUNCATE", remove("a", **kept), add("x", **kept)),
        )
        for name, line in cases.items()
    ]


DELTA_SUITES: Final = [
    *_CHECKED,
    *_overwrites(_BY_PART),
    *_overwrites(_BY_ODD_NAME),
]
