"""What a text of SQL means stays what it was: more may be understood, and nothing otherwise."""

from __future__ import annotations

import pytest

from support.expressions.doors import outcome
from support.expressions.recorded import DOORS, read
from support.expressions.texts import CONDITIONS, VALUES

RECORDED = read()


def test_every_text_is_recorded():
    assert set(RECORDED) == {*CONDITIONS, *VALUES}


@pytest.mark.parametrize("door", DOORS)
def test_what_was_understood_is_understood_in_the_same_way(door):
    different = []
    for text, doors in RECORDED.items():
        if "found" not in doors.get(door, {}):
            continue
        was, now = doors[door]["found"], outcome(DOORS[door], text).get("found")
        # Statistics may answer more than they did.
        if door == "filter" and now is not None and was[0] == "computed":
            was, now = was[1:], now[1:]
        if now != was:
            different.append((text, was, now))
    assert different == []
    assert sum("found" in doors.get(door, {}) for doors in RECORDED.values()) > 450
