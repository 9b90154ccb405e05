"""What decides before any winner is met: isolation level, blind append, change of rows."""

from __future__ import annotations

from typing import Final

from support.differential.lines import add, change_file, remove, txn
from support.differential.scenario import (
    Scenario,
    Step,
    Table,
    commits,
    commits_if_needed,
    reads,
    reads_app,
    reads_whole_table,
    sets_metadata,
    wins,
    wins_silently,
)

_FILES: Final = (add("a", p="1"), add("b", p="2"))
_APPENDS: Final = commits("WRITE", add("new", p="1"))


def _at(level: str, *, by: tuple[str, ...] = ("p",)) -> Table:
    files = _FILES if by else (add("a"), add("b"))
    return Table(by=by, properties={"delta.isolationLevel": level}, files=files)


_REARRANGES: Final = (remove("a", p="1", data_change=False), add("new", p="1", data_change=False))
_BLIND_HERE: Final = wins(add("w", p="1"), blind=True)


def _levels(name: str, *steps: Step | list[Step]) -> list[Scenario]:
    return [
        Scenario(f"{name}, {level}", _at(level), *steps)
        for level in ("Serializable", "WriteSerializable")
    ]


LEVEL_CASES: Final = [
    *_levels(
        "rearranges by OPTIMIZE", reads("p = '1'"), _BLIND_HERE, commits("OPTIMIZE", *_REARRANGES)
    ),
    *_levels(
        "rearranges by UPDATE", reads("p = '1'"), _BLIND_HERE, commits("UPDATE", *_REARRANGES)
    ),
    *_levels(
        "rearranges by hand while others read",
        reads("p = '1'"),
        wins(add("w", p="1")),
        commits("Manual Update", *_REARRANGES),
    ),
    *_levels(
        "rearranges and records its progress",
        reads("p = '1'"),
        _BLIND_HERE,
        commits("OPTIMIZE", txn("job", 1), *_REARRANGES),
    ),
    *_levels(
        "changes rows and rearranges at once",
        reads("p = '1'"),
        _BLIND_HERE,
        commits("OPTIMIZE", *_REARRANGES, add("more", p="1")),
    ),
    *_levels("an empty WRITE", reads("p = '1'"), wins(add("w", p="1")), commits("WRITE")),
    *_levels("an empty commit by hand", reads(), wins(add("w", p="1")), commits("Manual Update")),
    *_levels("an empty commit, if needed", reads(), commits_if_needed("Manual Update")),
    *_levels("an empty WRITE, if needed", reads(), commits_if_needed("WRITE")),
    *_levels(
        "removes files without reading",
        wins(add("w", p="1")),
        commits("DELETE", remove("a", p="1")),
    ),
    *_levels(
        "records its progress and reads",
        reads("p = '1'"),
        _BLIND_HERE,
        commits("Manual Update", txn("job", 1)),
    ),
    *_levels(
        "the winner says not whether it is blind",
        reads("p = '1'"),
        wins(add("w", p="1"), blind=None),
        commits("UPDATE", add("new", p="1")),
    ),
    *_levels(
        "the winner says nothing",
        reads("p = '1'"),
        wins_silently(add("w", p="1")),
        commits("UPDATE", add("new", p="1")),
    ),
    *_levels(
        "a blind append with a table's whole read behind it",
        reads_whole_table(),
        _BLIND_HERE,
        _APPENDS,
    ),
    *_levels(
        "changed rows of the winner only",
        reads("p = '1'"),
        wins(change_file("_change_data/c", p="1")),
        commits("UPDATE", add("new", p="1")),
    ),
    *_levels(
        "reads how far it is and appends",
        reads_app("job"),
        wins(txn("other", 3), add("w", p="1"), blind=True),
        commits("WRITE", txn("job", 1), add("new", p="1")),
    ),
    Scenario(
        "removes files of a table without partitions, without reading",
        _at("Serializable", by=()),
        wins(add("w"), blind=True),
        commits("DELETE", remove("a")),
    ),
    Scenario(
        "the same, WriteSerializable",
        _at("WriteSerializable", by=()),
        wins(add("w"), blind=True),
        commits("DELETE", remove("a")),
    ),
    Scenario(
        "an unknown isolation level",
        _at("ReadCommitted"),
        _APPENDS,
    ),
    Scenario(
        "the level in small letters",
        _at("writeserializable"),
        reads("p = '1'"),
        _BLIND_HERE,
        commits("UPDATE", add("new", p="1")),
    ),
    Scenario(
        "the job changes the level, and its new level counts",
        _at("WriteSerializable"),
        reads("p = '1'"),
        _BLIND_HERE,
        sets_metadata(_at("WriteSerializable").changed({"delta.isolationLevel": "Serializable"})),
        commits("Manual Update", add("new", p="1")),
    ),
    Scenario(
        "changes the metadata and reads, at WriteSerializable",
        _at("WriteSerializable"),
        reads("p = '1'"),
        _BLIND_HERE,
        sets_metadata(_at("WriteSerializable").changed({"job": "1"})),
        commits("SET TBLPROPERTIES"),
    ),
]
