"""The judge of row ids and commit times finds what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from simulation.numbering import IDS, TIMES, mark_line, plain, wrong_ids, wrong_times


def added(path: str, first: int | None, version: int, rows: int = 2) -> dict[str, Any]:
    ids = {} if first is None else {"baseRowId": first, "defaultRowCommitVersion": version}
    return {"add": {"path": path, "stats": f'{{"numRecords":{rows}}}', **ids}}


GOOD = {
    0: [added("a", 0, 0), mark_line(1)],
    1: [],
    2: [added("b", 2, 2), added("c", 4, 2, rows=0), mark_line(3)],
}


@pytest.mark.parametrize(
    ("version", "lines", "wrong"),
    [
        (2, GOOD[2], None),
        (2, [added("b", 1, 2), mark_line(3)], "as has a"),
        (2, [added("b", 2, 2)], "mark 1"),
        (2, [added("b", 2, 1), mark_line(3)], "says version 1"),
        (2, [added("b", None, 2)], "the row id None"),
        (2, [mark_line(1), mark_line(1)], "2 marks"),
        (2, [mark_line(0)], "back from 1 to 0"),
    ],
)
def test_an_id_is_given_once(version: int, lines: list[dict[str, Any]], wrong: str | None) -> None:
    found = list(wrong_ids({**GOOD, version: lines}))
    assert (not found) if wrong is None else any(wrong in each for each in found)


def line(time: int | None = None, **settings: str) -> list[dict[str, Any]]:
    info = {"commitInfo": {} if time is None else {"inCommitTimestamp": time}}
    return [info, {"metaData": {"configuration": settings}}] if settings else [info]


SINCE = "delta.inCommitTimestampEnablement"
SWITCHED = {**TIMES, f"{SINCE}Version": "1", f"{SINCE}Timestamp": "7"}


@pytest.mark.parametrize(
    ("history", "wrong"),
    [
        ([line(5, **TIMES), line(6), line(9)], None),
        ([line(), line(7, **SWITCHED), line(8)], None),
        ([line(5, **TIMES), line(5)], "the time 5, after 5"),
        ([line(5, **TIMES), line()], "the time None"),
        ([line(5)], "needs none"),
        ([line(), line(6, **SWITCHED)], "records ('1', '7')"),
        ([line(), line(7, **TIMES)], "records (None, None)"),
        ([[{"add": {}}]], "does not begin"),
    ],
)
def test_times_ascend_from_where_they_are_on(history: list[Any], wrong: str | None) -> None:
    found = list(wrong_times(dict(enumerate(history))))
    assert (not found) if wrong is None else any(wrong in each for each in found)


def test_what_a_commit_adds_by_itself_is_no_setting() -> None:
    names = {"delta.rowTracking.materializedRowIdColumnName": "x"}
    assert plain({**SWITCHED, **IDS, **names}) == {**TIMES, **IDS}
