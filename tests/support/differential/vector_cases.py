"""Deletion vectors: a file whose rows are marked is another file, under the same path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from support.differential.lines import add, remove
from support.differential.scenario import (
    Scenario,
    Table,
    commits,
    reads,
    wins,
)

if TYPE_CHECKING:
    from support.differential.lines import Line

_FILES: Final = (add("a", p="1"), add("b", p="2"))
_APPENDS: Final = commits("WRITE", add("new", p="1"))

_VECTORS: Final = Table(
    by=("p",),
    features=("deletionVectors",),
    properties={"delta.enableDeletionVectors": "true"},
    files=_FILES,
)


def _marks(path: str, p: str, vector: str, before: str | None = None) -> tuple[Line, Line]:
    """Rows of a file are deleted by a vector."""
    return remove(path, p=p, dv=before), add(path, p=p, dv=vector)


VECTOR_CASES: Final = [
    Scenario(
        "a vector comes to a file that the job deletes",
        _VECTORS,
        reads("p = '1'"),
        wins(*_marks("a", "1", "theirs"), operation="DELETE"),
        commits("DELETE", remove("a", p="1")),
    ),
    Scenario(
        "a vector comes to a file, and the job brings another to it",
        _VECTORS,
        reads("p = '1' AND id = 3L"),
        wins(*_marks("a", "1", "theirs"), operation="DELETE"),
        commits("DELETE", *_marks("a", "1", "ours")),
    ),
    Scenario(
        "two vectors, at snapshot isolation",
        Table(
            by=("p",),
            features=("deletionVectors",),
            properties={
                "delta.enableDeletionVectors": "true",
                "delta.isolationLevel": "SnapshotIsolation",
            },
            files=_FILES,
        ),
        wins(*_marks("a", "1", "theirs"), operation="DELETE"),
        commits("DELETE", *_marks("a", "1", "ours")),
    ),
    Scenario(
        "vectors for two files",
        _VECTORS,
        reads("p = '1'"),
        wins(*_marks("b", "2", "theirs"), operation="DELETE"),
        commits("DELETE", *_marks("a", "1", "ours")),
    ),
    Scenario(
        "vectors for two files of one partition",
        Table(
            by=("p",),
            features=("deletionVectors",),
            properties={"delta.enableDeletionVectors": "true"},
            files=(add("a", p="1"), add("c", p="1", ids=(11, 19))),
        ),
        reads("p = '1' AND id < 10L"),
        wins(*_marks("c", "1", "theirs"), operation="DELETE"),
        commits("DELETE", *_marks("a", "1", "ours")),
    ),
    Scenario(
        "a vector grows while the job compacts the file",
        Table(by=("p",), features=("deletionVectors",), files=(add("a", p="1", dv="old"),)),
        reads("p = '1'"),
        wins(*_marks("a", "1", "grown", before="old"), operation="DELETE"),
        commits(
            "OPTIMIZE",
            remove("a", p="1", dv="old", data_change=False),
            add("new", p="1", data_change=False),
        ),
    ),
    Scenario(
        "a file is compacted while the job brings a vector to it",
        _VECTORS,
        reads("p = '1'"),
        wins(
            remove("a", p="1", data_change=False),
            add("c", p="1", data_change=False),
            operation="OPTIMIZE",
        ),
        commits("DELETE", *_marks("a", "1", "ours")),
    ),
    Scenario(
        "a file is compacted away while the job brings a vector to it",
        _VECTORS,
        reads("p = '1'"),
        wins(remove("a", p="1", data_change=False), operation="OPTIMIZE"),
        commits("DELETE", *_marks("a", "1", "ours")),
    ),
    Scenario(
        "the job appends while a vector comes",
        _VECTORS,
        wins(*_marks("a", "1", "theirs"), operation="DELETE"),
        _APPENDS,
    ),
    Scenario(
        "a vector on a table without the feature",
        Table(by=("p",), files=_FILES),
        commits("DELETE", *_marks("a", "1", "ours")),
    ),
    Scenario(
        "a vector without statistics",
        _VECTORS,
        commits("DELETE", remove("a", p="1"), add("a", p="1", dv="ours", ids=None)),
    ),
    Scenario(
        "a file is removed and added again unchanged",
        _VECTORS,
        commits("Manual Update", remove("a", p="1"), add("a", p="1")),
    ),
]
