"""The cases of `OptimisticTransactionLegacyTests`, under their names, and of its younger sister.

They read and write by partition, most of them; a winner that Delta's tests commit through a
second transaction is spelled out.
"""

from __future__ import annotations

from typing import Final

from support.differential.delta_suites import by_x
from support.differential.lines import add, protocol, remove, txn
from support.differential.scenario import (
    Scenario,
    Table,
    commits,
    commits_if_needed,
    reads,
    reads_app,
    reads_whole_table,
    sets_metadata,
    wins,
)

_PLAIN: Final = Table()
_BY_X: Final = by_x()
_ALL_PARTS: Final = by_x("a1", "b2", "c3")
_NESTED: Final = Table(
    by=("a", "b"),
    columns={"id": "long", "a": "integer", "b": "integer"},
    files=(add("f1", a="1", b="1"), add("f2", a="1", b="2"), add("f3", a="2", b="1")),
)

DELTA_OLDER_SUITE: Final = [
    Scenario(
        "block append against metadata change",
        _PLAIN,
        wins(_PLAIN.changed({"any": "thing"}), operation="SET TBLPROPERTIES", blind=True),
        commits("Manual Update", add("a")),
    ),
    Scenario(
        "block read+append against append",
        _PLAIN,
        reads(),
        wins(add("a"), blind=True),
        commits("Manual Update", add("b")),
    ),
    Scenario(
        "allow blind-append against any data change",
        Table(files=(add("a"),)),
        wins(remove("a"), add("b"), operation="UPDATE"),
        commits("Manual Update", add("c")),
    ),
    Scenario(
        "allow read+append+delete against no data change",
        Table(files=(add("a"),)),
        reads(),
        wins(),
        commits("Manual Update", remove("a"), add("b")),
    ),
    Scenario(
        "allow concurrent commit on disjoint partitions",
        _ALL_PARTS,
        reads("x = 3"),
        wins(add("d", x="1"), blind=True),
        commits("Manual Update", remove("c", x="3"), add("e", x="3")),
    ),
    Scenario(
        "allow concurrent commit on disjoint partitions reading all partitions",
        _ALL_PARTS,
        reads("x = 1"),
        wins(remove("b", x="2"), add("d", x="2")),
        commits("Manual Update", add("e", x="3")),
    ),
    Scenario(
        "block concurrent commit when read partition was appended to by concurrent write",
        _ALL_PARTS,
        reads("x = 1"),
        wins(add("d", x="1"), blind=True),
        commits("Manual Update", add("e", x="3")),
    ),
    Scenario(
        "block concurrent commit on full table scan",
        _ALL_PARTS,
        reads(),
        wins(remove("a", x="1"), add("d", x="1")),
        commits("Manual Update", add("e", x="3")),
    ),
    Scenario(
        "allow concurrent adds to disjoint nested partitions when read is disjoint from write",
        _NESTED,
        reads("a = 1"),
        wins(add("g", a="2", b="1"), blind=True),
        commits("Manual Update", remove("f1", a="1", b="1"), add("h", a="1", b="1")),
    ),
    Scenario(
        "allow concurrent adds to same nested partitions when read is disjoint from write",
        _NESTED,
        reads("a = 1"),
        wins(add("g", a="2", b="1"), blind=True),
        commits("Manual Update", remove("f1", a="1", b="1"), add("h", a="2", b="1")),
    ),
    Scenario(
        "allow concurrent add when read at lvl1 partition is disjoint from concur. write at lvl2",
        _NESTED,
        reads("a = 2"),
        wins(add("g", a="1", b="2"), blind=True),
        commits("Manual Update", remove("f3", a="2", b="1"), add("h", a="2", b="3")),
    ),
    Scenario(
        "block commit when read at lvl1 partition reads lvl2 file concur. deleted",
        _NESTED,
        reads("a = 1"),
        wins(remove("f2", a="1", b="2"), operation="DELETE"),
        commits("Manual Update", remove("f1", a="1", b="1"), add("h", a="1", b="1")),
    ),
    Scenario(
        "block commit when full table read conflicts with concur. write in lvl2 nested partition",
        _NESTED,
        reads(),
        wins(add("g", a="1", b="2"), blind=True),
        commits("Manual Update", add("h", a="2", b="1")),
    ),
    Scenario(
        "block commit when part. range read conflicts with concur. write in lvl2 nested partition",
        _NESTED,
        reads("a >= 2 OR b > 1"),
        wins(add("g", a="1", b="2"), blind=True),
        commits("Manual Update", add("h", a="2", b="1")),
    ),
    Scenario(
        "block commit with concurrent removes on same file",
        _NESTED,
        reads("a = 2"),
        wins(remove("f1", a="1", b="1"), operation="DELETE"),
        commits("Manual Update", remove("f1", a="1", b="1")),
    ),
    Scenario(
        "block delete-delete conflict when winning RemoveFile has empty partitionValues",
        _NESTED,
        wins(remove("f1"), operation="DELETE"),
        commits("Manual Update", remove("f1", a="1", b="1")),
    ),
    Scenario(
        "block delete-read conflict when winning RemoveFile has empty partitionValues",
        _NESTED,
        reads("a = 1"),
        wins(remove("f1"), operation="DELETE"),
        commits("Manual Update", add("h", a="1", b="1")),
    ),
    Scenario(
        "block delete-delete conflict when our RemoveFile has empty partitionValues",
        _NESTED,
        wins(remove("f1", a="1", b="1"), operation="DELETE"),
        commits("Manual Update", remove("f1")),
    ),
    Scenario(
        "block commit when full table read conflicts with add in any partition",
        _ALL_PARTS,
        reads(),
        wins(add("d", x="1"), blind=True),
        commits("Manual Update", add("e", x="2")),
    ),
    Scenario(
        "block commit when full table read conflicts with delete in any partition",
        _ALL_PARTS,
        reads(),
        wins(remove("a", x="1"), operation="DELETE"),
        commits("Manual Update", add("e", x="2")),
    ),
    Scenario(
        "block concurrent replaceWhere initial empty",
        _BY_X,
        reads("x >= 2"),
        wins(add("d", x="3")),
        commits("Manual Update", add("e", x="3")),
    ),
    Scenario(
        "allow concurrent replaceWhere disjoint partitions initial empty",
        _BY_X,
        reads("x > 2 AND x <= 3"),
        wins(add("d", x="2")),
        commits("Manual Update", add("e", x="3")),
    ),
    Scenario(
        "block concurrent replaceWhere NOT empty but conflicting predicate",
        by_x("a1", "b2"),
        reads("x <= 2"),
        wins(add("d", x="2")),
        commits("Manual Update", remove("a", x="1"), add("e", x="1")),
    ),
    Scenario(
        "block concurrent commit on read & add conflicting partitions",
        by_x("a1"),
        reads("x = 1"),
        wins(add("d", x="1"), blind=True),
        commits("Manual Update", add("e", x="2")),
    ),
    Scenario(
        "block concurrent commit on read & delete conflicting partitions",
        by_x("a1", "b2"),
        reads("x = 1"),
        wins(remove("a", x="1"), operation="DELETE"),
        commits("Manual Update", add("e", x="2")),
    ),
    Scenario(
        "block 2 concurrent replaceWhere transactions",
        by_x("a1"),
        reads("x = 1"),
        wins(remove("a", x="1"), add("d", x="1")),
        commits("Manual Update", remove("a", x="1"), add("e", x="1")),
    ),
    Scenario(
        "block 2 concurrent replaceWhere transactions changing partitions",
        _ALL_PARTS,
        reads("x = 3"),
        wins(remove("c", x="3"), add("d", x="1")),
        commits("Manual Update", remove("c", x="3"), add("e", x="1")),
    ),
    Scenario(
        "block concurrent full table scan after concurrent write completes",
        _ALL_PARTS,
        wins(add("d", x="1"), blind=True),
        reads("x = 1"),
        commits("Manual Update", remove("b", x="2")),
    ),
    Scenario(
        "block concurrent commit mixed metadata and data predicate",
        _ALL_PARTS,
        reads("x = 1 OR id > 2019L"),
        wins(add("d", x="3"), blind=True),
        commits("Manual Update", remove("a", x="1")),
    ),
    Scenario(
        "block concurrent read (2 scans) and add when read partition was changed by concur. write",
        _ALL_PARTS,
        reads("x = 1", "x = 3"),
        wins(add("d", x="3"), blind=True),
        commits("Manual Update", remove("a", x="1")),
    ),
    Scenario(
        "no data change: allow data rearrange when new files concurrently added",
        Table(files=(add("a"), add("b"))),
        reads(),
        wins(add("e"), blind=True),
        commits(
            "OPTIMIZE",
            remove("a", data_change=False),
            remove("b", data_change=False),
            add("f", data_change=False),
        ),
    ),
    Scenario(
        "no data change: block data rearrange when concurrently delete removes same file",
        Table(files=(add("a"), add("b"))),
        reads(),
        wins(remove("a"), operation="DELETE"),
        commits(
            "OPTIMIZE",
            remove("a", data_change=False),
            remove("b", data_change=False),
            add("f", data_change=False),
        ),
    ),
    Scenario(
        "readWholeTable should block concurrent delete",
        _ALL_PARTS,
        reads_whole_table(),
        wins(remove("a", x="1"), operation="DELETE"),
        commits("Manual Update", add("e", x="2")),
    ),
    Scenario(
        "allow concurrent set-txns with different app ids",
        _PLAIN,
        reads_app("t2"),
        wins(txn("t1", 1)),
        commits("Manual Update", txn("t2", 2)),
    ),
    Scenario(
        "block concurrent set-txns with the same app id",
        _PLAIN,
        reads_app("t1"),
        wins(txn("t1", 1)),
        commits("Manual Update", txn("t1", 2)),
    ),
    Scenario(
        "elide empty commits when requested",
        by_x("a1"),
        reads("x = 1"),
        wins(remove("a", x="1"), operation="DELETE"),
        commits_if_needed("TRUNCATE"),
    ),
    Scenario(
        "only single Protocol action per commit - explicit",
        _PLAIN,
        commits("Manual Update", protocol(writer=3), protocol(writer=4)),
    ),
    Scenario(
        "only single Protocol action per commit - implicit",
        _PLAIN,
        sets_metadata(_PLAIN.changed({"delta.constraints.small": "id < 9"})),
        commits("Manual Update", protocol(writer=4)),
    ),
    Scenario(
        "AddFile with different partition schema compared to metadata should fail",
        _PLAIN,
        commits("Manual Update", add("a", x="1")),
    ),
    Scenario(
        "has SetTransaction version conflicts",
        _PLAIN,
        commits("Manual Update", txn("t1", 1), txn("t1", 2)),
    ),
    Scenario(
        "removes duplicate SetTransactions",
        _PLAIN,
        wins(add("a")),
        commits("Manual Update", txn("t1", 1), txn("t1", 1), txn("t2", 1)),
    ),
]
