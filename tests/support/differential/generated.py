"""Scenarios made of parts: what a table is like, what a job reads, what others do, what it commits.

Every two parts of different kinds meet at least once (a pairwise covering array, drawn with a
fixed seed): each read meets each winner, each winner each commit, at each isolation level.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from support.differential.lines import add, change_file, domain, protocol, remove, schema, txn
from support.differential.scenario import (
    Scenario,
    Step,
    Table,
    commits,
    reads,
    reads_app,
    reads_whole_table,
    replaces_partitions_of,
    sets_metadata,
    wins,
    wins_silently,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from support.differential.lines import Line

Row: TypeAlias = tuple[str, ...]
"""One choice of each kind."""


class Shape(NamedTuple):
    """How the table is partitioned. The job works `here`, and has a file there and one far off."""

    by: tuple[str, ...]
    columns: Mapping[str, str]
    here: dict[str, Any]
    far: dict[str, Any]
    condition: str
    """What selects the rows that are here."""

    def table(self, level: str) -> Table:
        """With file `a` here and `b` far off."""
        return Table(
            by=self.by,
            columns=self.columns,
            properties={"delta.isolationLevel": level},
            features=("appendOnly", "domainMetadata", "invariants"),
            files=(add("a", **self.here), add("b", ids=(11, 19), **self.far)),
        )


SHAPES: Final[dict[str, Shape]] = {
    "by text": Shape(("p",), {"id": "long", "p": "string"}, {"p": "1"}, {"p": None}, "p = '1'"),
    "by day and country": Shape(
        ("day", "country"),
        {"id": "long", "day": "date", "country": "string"},
        {"day": "2024-01-01", "country": "DE"},
        {"day": "2024-01-02", "country": "FR"},
        "day = '2024-01-01'",
    ),
    "unpartitioned": Shape((), {"id": "long"}, {}, {}, "id < 10L"),
}

LEVELS: Final = ("Serializable", "WriteSerializable", "SnapshotIsolation")

READS: Final[dict[str, Callable[[Shape], list[Step]]]] = {
    "nothing": lambda _: [],
    "all": lambda _: reads(),
    "here": lambda s: reads(s.condition),
    "not here": lambda s: reads(f"NOT ({s.condition})"),
    "here, some rows": lambda s: reads(f"{s.condition} AND id > 5L"),
    "some rows": lambda _: reads("id > 10L"),
    "here or some rows": lambda s: reads(f"{s.condition} OR id > 10L"),
    "here, then not here": lambda s: reads(s.condition, f"NOT ({s.condition})"),
    "no row": lambda _: reads("id > 100L"),
    "whole table": lambda s: [*reads(s.condition), reads_whole_table()],
    "app": lambda _: [reads_app("job")],
    "what it replaces": lambda s: [replaces_partitions_of(add("new", **s.here))],
}


def _property(shape: Shape, level: str, key: str) -> Line:
    return shape.table(level).changed({key: "1"})


def _wider(shape: Shape, level: str) -> Line:
    return shape.table(level).changed(schemaString=schema(**shape.columns, more="string"))


WINNERS: Final[dict[str, Callable[[Shape, str], list[Step]]]] = {
    "appends here, blind": lambda s, _: [wins(add("w", **s.here), blind=True)],
    "appends here": lambda s, _: [wins(add("w", **s.here))],
    "appends here without commitInfo": lambda s, _: [wins_silently(add("w", **s.here))],
    "appends far off": lambda s, _: [wins(add("w", ids=(11, 19), **s.far))],
    "removes a": lambda s, _: [wins(remove("a", **s.here), operation="DELETE")],
    "removes b": lambda s, _: [wins(remove("b", **s.far), operation="DELETE")],
    "rewrites a": lambda s, _: [
        wins(remove("a", **s.here), add("a2", **s.here), operation="UPDATE")
    ],
    "compacts a": lambda s, _: [
        wins(
            remove("a", data_change=False, **s.here),
            add("a2", data_change=False, **s.here),
            operation="OPTIMIZE",
        )
    ],
    "sets a property": lambda s, level: [wins(_property(s, level, "winner"))],
    "adds a column and a file": lambda s, level: [
        wins(_wider(s, level), add("w", **s.here), blind=True)
    ],
    "adds a feature": lambda *_: [
        wins(protocol("appendOnly", "changeDataFeed", "domainMetadata", "invariants"))
    ],
    "drops a feature": lambda *_: [wins(protocol("appendOnly", "domainMetadata"))],
    "records the job's app": lambda *_: [wins(txn("job", 7), blind=True)],
    "records another app": lambda s, _: [wins(txn("other"), add("w", **s.far), blind=True)],
    "sets a domain": lambda *_: [wins(domain("mine", "theirs"))],
    "appends twice": lambda s, _: [
        wins(add("w", ids=(11, 19), **s.far), blind=True),
        wins(add("x", **s.here), blind=True),
    ],
    "commits nothing": lambda *_: [wins()],
}

COMMITS: Final[dict[str, Callable[[Shape, str], list[Step]]]] = {
    "appends": lambda s, _: [commits("WRITE", add("new", **s.here))],
    "appends and says how far it is": lambda s, _: [
        commits("WRITE", txn("job", 8), add("new", **s.here))
    ],
    "removes a": lambda s, _: [commits("DELETE", remove("a", **s.here))],
    "removes b": lambda s, _: [commits("TRUNCATE", remove("b", **s.far))],
    "rewrites a": lambda s, _: [commits("UPDATE", remove("a", **s.here), add("new", **s.here))],
    "compacts a": lambda s, _: [
        commits(
            "OPTIMIZE",
            remove("a", data_change=False, **s.here),
            add("new", data_change=False, **s.here),
        )
    ],
    "rearranges a by a write": lambda s, _: [
        commits(
            "WRITE",
            remove("a", data_change=False, **s.here),
            add("new", data_change=False, **s.here),
        )
    ],
    "records changes": lambda s, _: [
        commits("WRITE", add("new", **s.here), change_file("_change_data/c", **s.here))
    ],
    "commits nothing": lambda *_: [commits("TRUNCATE")],
    "commits nothing by hand": lambda *_: [commits("Manual Update")],
    "sets a domain": lambda *_: [commits("Manual Update", domain("mine", "ours"))],
    "sets a property": lambda s, level: [
        sets_metadata(_property(s, level, "job")),
        commits("SET TBLPROPERTIES"),
    ],
    "adds a column and a file": lambda s, level: [
        sets_metadata(_wider(s, level)),
        commits("WRITE", add("new", **s.here)),
    ],
    "adds a feature": lambda *_: [
        commits(
            "Manual Update",
            protocol("appendOnly", "checkConstraints", "domainMetadata", "invariants"),
        )
    ],
}

KINDS: Final[tuple[tuple[str, ...], ...]] = (
    tuple(SHAPES),
    LEVELS,
    tuple(READS),
    tuple(WINNERS),
    tuple(COMMITS),
)


def scenario(row: Row) -> Scenario:
    """The scenario of one choice of each kind."""
    shape_name, level, read, winner, commit = row
    shape = SHAPES[shape_name]
    return Scenario(
        f"{shape_name}, {level}: reads {read}; another {winner}; the job {commit}",
        shape.table(level),
        READS[read](shape),
        WINNERS[winner](shape, level),
        COMMITS[commit](shape, level),
    )


def covering_rows(kinds: tuple[tuple[str, ...], ...] = KINDS, seed: int = 1) -> list[Row]:
    """Few rows in which every two choices of different kinds meet.

    Each row starts with a pair that is still missing, and of fifty ways to fill it up the one
    that brings most missing pairs together is taken.
    """
    draw = random.Random(seed)
    missing = dict.fromkeys(
        ((i, x), (j, y))
        for (i, xs), (j, ys) in itertools.combinations(enumerate(kinds), 2)
        for x in xs
        for y in ys
    )
    rows: list[Row] = []
    while missing:
        first = next(iter(missing))
        candidates = [_filled(kinds, first, draw) for _ in range(50)]
        best = max(candidates, key=lambda row: sum(pair in missing for pair in _pairs(row)))
        rows.append(best)
        for pair in _pairs(best):
            missing.pop(pair, None)
    return rows


def _filled(kinds: tuple[tuple[str, ...], ...], pair: Any, draw: random.Random) -> Row:
    fixed = dict(pair)
    return tuple(fixed.get(i) or draw.choice(choices) for i, choices in enumerate(kinds))


def _pairs(row: Row) -> Iterator[Any]:
    return itertools.combinations(enumerate(row), 2)


GENERATED: Final = [scenario(row) for row in covering_rows()]
