"""A condition that one door takes is taken by all of them, and is true of the same rows."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from support.expressions.doors import (
    as_check,
    as_condition,
    as_filter,
    as_generated,
    as_set_value,
    outcome,
)
from support.expressions.texts import CONDITIONS

if TYPE_CHECKING:
    from collections.abc import Callable

DOORS: dict[str, Callable[[str], Any]] = {
    "condition of a MERGE": as_condition,
    "value of a SET": as_set_value,
    "generated column": as_generated,
    "CHECK": as_check,
}
TIMELESS = ("generated column", "CHECK")
"""They are not told what time it is."""
NOW = re.compile(r"current_|now\(")


@cache
def filters() -> dict[str, dict[str, Any]]:
    """What a filter makes of each: evaluated by the test, and not by whoever collects it."""
    return {text: outcome(as_filter, text) for text in CONDITIONS}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_what_is_a_filter_and_nothing_else(door: str) -> None:
    different, taken = [], 0
    for text, of_filter in filters().items():
        if door in TIMELESS and NOW.search(text):
            continue
        if door == "generated column" and text == "NULL":
            continue  # its type is none, not boolean
        if door == "CHECK" and of_filter.get("found", [""])[-1] is None:
            continue  # a row without a result is an error, as one is that only Spark checks
        found = outcome(DOORS[door], text)
        if ("found" in found) != ("found" in of_filter):
            different.append((text, found, of_filter))
            continue
        if "found" not in found:
            continue
        taken += 1
        mine, wanted = found["found"][-1], of_filter["found"][-1]
        if door == "CHECK" and wanted is not None:
            wanted = wanted.replace("-", "0")  # null is as bad as false
        # Where a row has no result it is asked for by one door and may be passed over by another.
        if None not in (mine, wanted) and mine != wanted:
            different.append((text, mine, wanted))
    assert different == []
    assert taken > 400
