"""What is written anew at each rebase: row ids, their versions, in-commit timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from support.differential.lines import MOMENT, add, remove, row_ids
from support.differential.scenario import (
    Scenario,
    Table,
    commits,
    reads,
    sets_metadata,
    wins,
)

if TYPE_CHECKING:
    from support.differential.lines import Line

_FILES: Final = (add("a", p="1"), add("b", p="2"))
_APPENDS: Final = commits("WRITE", add("new", p="1"))

_ROWS: Final = Table(
    by=("p",),
    features=("domainMetadata", "rowTracking"),
    properties={
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
    },
    files=(
        add("a", p="1", fields={"baseRowId": 0, "defaultRowCommitVersion": 0}),
        row_ids(9),
    ),
)


def _tracked(path: str, base: int, version: int, **partition: Any) -> Line:
    ids = {"baseRowId": base, "defaultRowCommitVersion": version}
    return add(path, fields=ids, **partition)


_WITH_FEATURE_ONLY: Final = Table(by=("p",), features=("domainMetadata", "rowTracking"))
_ROW_CASES: Final = [
    Scenario("an append gets row ids", _ROWS, _APPENDS),
    Scenario("the first append gets row ids", _WITH_FEATURE_ONLY, _APPENDS),
    Scenario(
        "two appends get row ids, one after the other",
        _ROWS,
        wins(_tracked("w", 10, 1, p="1"), row_ids(19), blind=True),
        _APPENDS,
    ),
    Scenario(
        "three appends get row ids",
        _ROWS,
        wins(_tracked("w", 10, 1, p="1"), row_ids(19), blind=True),
        wins(_tracked("x", 20, 2, p="2"), row_ids(29), blind=True),
        commits("WRITE", add("new", p="1"), add("more", p="2")),
    ),
    Scenario(
        "row ids after a winner that added none",
        _ROWS,
        wins(remove("a", p="1"), operation="DELETE"),
        _APPENDS,
    ),
    Scenario(
        "the winner sets the high-water mark without files",
        _ROWS,
        wins(row_ids(99), blind=True),
        _APPENDS,
    ),
    Scenario(
        "a file keeps its row ids when it is added again",
        _ROWS,
        wins(_tracked("w", 10, 1, p="2"), row_ids(19), blind=True),
        commits(
            "Manual Update",
            remove("a", p="1", data_change=False),
            add(
                "a2",
                p="1",
                data_change=False,
                fields={"baseRowId": 0, "defaultRowCommitVersion": 0},
            ),
        ),
    ),
    Scenario(
        "compaction stays at snapshot isolation with row ids",
        _ROWS,
        reads("p = '1'"),
        wins(_tracked("w", 10, 1, p="1"), row_ids(19), blind=True),
        commits(
            "OPTIMIZE",
            remove("a", p="1", data_change=False),
            add("new", p="1", data_change=False),
        ),
    ),
    Scenario(
        "an append without statistics can't get row ids",
        _ROWS,
        commits("WRITE", add("new", p="1", ids=None)),
    ),
    Scenario(
        "the job sets the high-water mark itself",
        _ROWS,
        commits("WRITE", add("new", p="1"), row_ids(50)),
    ),
    Scenario(
        "old files get row ids while the job reads them",
        Table(by=("p",), features=("domainMetadata", "rowTracking"), files=_FILES),
        reads("p = '1'"),
        wins(
            add(
                "a",
                p="1",
                data_change=False,
                fields={"baseRowId": 0, "defaultRowCommitVersion": 1},
            ),
            row_ids(9),
            operation="ROW TRACKING BACKFILL",
        ),
        commits("DELETE", remove("a", p="1")),
    ),
    Scenario(
        "old files get row ids while the job appends",
        Table(by=("p",), features=("domainMetadata", "rowTracking"), files=_FILES),
        wins(
            add(
                "a",
                p="1",
                data_change=False,
                fields={"baseRowId": 0, "defaultRowCommitVersion": 1},
            ),
            row_ids(9),
            operation="ROW TRACKING BACKFILL",
        ),
        _APPENDS,
    ),
]

_LATER: Final = 4_000_000_000_000
"""In the year 2096: after every clock that a test runs by."""
_TIMED: Final = Table(
    by=("p",),
    features=("inCommitTimestamp",),
    properties={"delta.enableInCommitTimestamps": "true"},
    files=_FILES,
)
_TIME_CASES: Final = [
    Scenario("an append gets a timestamp", _TIMED, _APPENDS),
    Scenario(
        "an append after one from the future",
        _TIMED,
        wins(add("w", p="1"), blind=True, inCommitTimestamp=_LATER),
        _APPENDS,
    ),
    Scenario(
        "an append after two from the future",
        _TIMED,
        wins(add("w", p="1"), blind=True, inCommitTimestamp=_LATER),
        wins(add("x", p="1"), blind=True, inCommitTimestamp=_LATER + 7),
        _APPENDS,
    ),
    Scenario(
        "an append after one from the past",
        _TIMED,
        wins(add("w", p="1"), blind=True, inCommitTimestamp=MOMENT + 5),
        _APPENDS,
    ),
    Scenario(
        "timestamps are switched on from the future while the job appends",
        Table(by=("p",), features=("inCommitTimestamp",), files=_FILES),
        wins(
            Table(by=("p",), features=("inCommitTimestamp",)).changed(
                {
                    "delta.enableInCommitTimestamps": "true",
                    "delta.inCommitTimestampEnablementVersion": "1",
                    "delta.inCommitTimestampEnablementTimestamp": str(_LATER),
                }
            ),
            blind=True,
            inCommitTimestamp=_LATER,
        ),
        _APPENDS,
    ),
    Scenario(
        "the job switches timestamps on and loses a version",
        Table(by=("p",), features=("inCommitTimestamp",), files=_FILES),
        wins(add("w", p="1"), blind=True),
        sets_metadata(
            Table(by=("p",), features=("inCommitTimestamp",)).changed(
                {"delta.enableInCommitTimestamps": "true"}
            )
        ),
        commits("SET TBLPROPERTIES"),
    ),
]


_IDS: Final[dict[str, Any]] = {"baseRowId": 0, "defaultRowCommitVersion": 1}
_UNNUMBERED: Final = Table(by=("p",), features=("domainMetadata", "rowTracking"), files=_FILES)
_BACKFILLS: Final = [
    *reads(),
    commits(
        "ROW TRACKING BACKFILL",
        add("a", p="1", data_change=False),
        add("b", p="2", data_change=False),
    ),
]
_NUMBERED: Final = Table(
    by=("p",),
    features=("domainMetadata", "rowTracking"),
    properties={"delta.rowTrackingSuspended": "true"},
    files=(add("a", p="1", fields={"baseRowId": 0, "defaultRowCommitVersion": 0}), row_ids(9)),
)
_UNBACKFILLS: Final = [
    *reads(),
    commits("ROW TRACKING UNBACKFILL", add("a", p="1", data_change=False)),
]
_BACKFILL_CASES: Final = [
    Scenario("the job numbers old files", _UNNUMBERED, _BACKFILLS),
    Scenario(
        "the job numbers old files while one is deleted",
        _UNNUMBERED,
        wins(remove("a", p="1"), operation="DELETE"),
        _BACKFILLS,
    ),
    Scenario(
        "the job numbers old files while one is rewritten",
        _UNNUMBERED,
        wins(remove("a", p="1"), _tracked("a2", 0, 1, p="1"), row_ids(9), operation="UPDATE"),
        _BACKFILLS,
    ),
    Scenario(
        "the job numbers old files while others append",
        _UNNUMBERED,
        wins(_tracked("w", 0, 1, p="1"), row_ids(9), blind=True),
        _BACKFILLS,
    ),
    Scenario(
        "the job numbers old files while another does",
        _UNNUMBERED,
        wins(
            add("a", p="1", data_change=False, fields=_IDS),
            row_ids(9),
            operation="ROW TRACKING BACKFILL",
        ),
        _BACKFILLS,
    ),
    Scenario(
        "the job numbers old files while another takes numbers away",
        _UNNUMBERED,
        wins(add("a", p="1", data_change=False), operation="ROW TRACKING UNBACKFILL"),
        _BACKFILLS,
    ),
    Scenario(
        "the job numbers old files while the schema changes",
        _UNNUMBERED,
        wins(_UNNUMBERED.changed({"mine": "1"}), blind=True),
        _BACKFILLS,
    ),
    Scenario("the job takes numbers away", _NUMBERED, _UNBACKFILLS),
    Scenario(
        "the job takes numbers away while others append",
        _NUMBERED,
        wins(_tracked("w", 10, 1, p="1"), row_ids(19), blind=True),
        _UNBACKFILLS,
    ),
    Scenario(
        "the job takes numbers away while the file is deleted",
        _NUMBERED,
        wins(remove("a", p="1"), operation="DELETE"),
        _UNBACKFILLS,
    ),
    Scenario(
        "the job takes numbers away while another gives them",
        _NUMBERED,
        wins(
            add("a", p="1", data_change=False, fields=_IDS),
            row_ids(9),
            operation="ROW TRACKING BACKFILL",
        ),
        _UNBACKFILLS,
    ),
    Scenario("an append while row tracking is suspended", _NUMBERED, _APPENDS),
]

REBASED_CASES: Final = [*_ROW_CASES, *_BACKFILL_CASES, *_TIME_CASES]
