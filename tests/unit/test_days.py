"""Tests that take turns by the day: each has its turn, and a day has its share of them."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, cast

import pytest

from support import days
from support.days import share_out


class _Item:
    def __init__(self, nodeid: str, *turns: int, **how: bool) -> None:
        self.nodeid = nodeid
        mark = pytest.mark.one_day_in(*turns, **how).mark
        self._marks = {"one_day_in": mark} if turns else {}
        self.is_left = False

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._marks.get(name)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        assert mark.name == "nightly"
        self.is_left = True


def _run(items: list[_Item]) -> list[str]:
    for each in items:
        each.is_left = False
    share_out(cast("list[Any]", items), at_night=False)
    return [each.nodeid for each in items if not each.is_left]


def _on_days(monkeypatch: pytest.MonkeyPatch, items: list[_Item], count: int) -> list[list[str]]:
    monkeypatch.setattr(days, "SEED", 0)
    found = []
    for day in range(740_000, 740_000 + count):
        monkeypatch.setattr(days, "SEED_OF_THE_DAY", day)
        found.append(_run(items))
    return found


def test_each_case_of_a_test_has_its_turn_and_each_day_a_part(monkeypatch):
    cases = [_Item(f"t.py::test_it[{n}]", 3) for n in range(7)]
    found = _on_days(monkeypatch, cases, 3)
    assert sorted(itertools.chain.from_iterable(found)) == [each.nodeid for each in cases]
    assert sorted(map(len, found)) == [2, 2, 3]


def test_tests_of_a_module_take_turns_and_others_run_each_day(monkeypatch):
    items = [_Item("t.py::test_a", 2), _Item("t.py::test_b", 2, 1), _Item("t.py::test_c")]
    found = _on_days(monkeypatch, items, 4)
    assert {tuple(each) for each in found[::2]} | {tuple(each) for each in found[1::2]} == {
        ("t.py::test_a", "t.py::test_c"),
        ("t.py::test_b", "t.py::test_c"),
    }
    assert found[:2] == found[2:]


def test_cases_that_share_what_is_dear_have_one_turn(monkeypatch):
    cases = [_Item(f"t.py::test_it[{n}]", 2, together=True) for n in range(3)]
    assert sorted(map(len, _on_days(monkeypatch, cases, 2))) == [0, 3]


def test_over_connect_a_test_has_another_of_its_cases_each_day(monkeypatch):
    monkeypatch.setenv("LAKELOG_TEST_CONNECT", "sc://nowhere")
    one, three = _Item("t.py::test_one", 5), [_Item(f"t.py::test_it[{n}]", 9) for n in range(3)]
    found = _on_days(monkeypatch, [one, *three], 3)
    counts = Counter(itertools.chain.from_iterable(found))
    assert counts == {one.nodeid: 3, **{each.nodeid: 1 for each in three}}


def test_with_a_seed_all_run(monkeypatch):
    monkeypatch.setattr(days, "SEED", 7)
    assert len(_run([_Item(f"t.py::test_it[{n}]", 3) for n in range(7)])) == 7


def test_of_what_a_test_goes_through_each_day_has_so_many_and_some_days_have_all(monkeypatch):
    cases = [*range(7)]
    found = []
    for day in range(740_000, 740_003):
        monkeypatch.setattr(days, "SEED_OF_THE_DAY", day)
        found.append(days._todays(cases, 3, about="it"))
        assert len({*found[-1]}) == 3
        assert found[-1] == days._todays(cases, 3, about="it") != days._todays(cases, 3)
    assert {*itertools.chain.from_iterable(found)} == {*cases}
    assert days._todays(cases, 8) == cases
