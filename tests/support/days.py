"""What of the tests a day has; the night has all of it.

Dear cases that say the same of much that is alike take turns by the day. A test says so

- by a mark, for what pytest knows as cases: `one_day_in(3)` has a test run every third day, and of
  the cases of one test a third each day. `one_day_in(3, 1)` is a day earlier, so that the tests of
  a module take turns, and with `together=True` all cases have the same turn;
- by the fixture `of_the_day`, for what it goes through itself: `of_the_day(scripts, 20)` are
  twenty of them, the next twenty on the next day.

What a day leaves out runs at night: with `--nightly`, which all targets of `make nightly` have.
There `of_the_day` gives everything, and what the marks left out runs, with what is too long for
any day. Both are marked `nightly` then, by which a target selects them. With a seed, as in
`make soak`, everything takes part, too.

Over Connect each test has one of its cases a day (`tests/integration/conftest.py`).
"""

from __future__ import annotations

import os
import random
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

import pytest

from support.examples import SEED, SEED_OF_THE_DAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_T = TypeVar("_T")


class OfTheDay(Protocol):
    """What the fixture `of_the_day` is."""

    def __call__(self, cases: Sequence[_T], count: int = 1, *, about: str = "") -> list[_T]:
        """So many of the cases, the next ones each day; all of them at night, or with a seed.

        Args:
            cases: what may be drawn, in the same order each day.
            count: how many.
            about: what they are cases of, by which they are shuffled.
        """
        ...


def _everything(cases: Sequence[_T], count: int = 1, *, about: str = "") -> list[_T]:
    return [*cases]


def _todays(cases: Sequence[_T], count: int = 1, *, about: str = "") -> list[_T]:
    if count >= len(cases):
        return [*cases]
    # Neighbours are alike: shuffled, a day has some of each kind.
    shuffled = random.Random(about).sample(cases, len(cases))
    first = SEED_OF_THE_DAY * count
    return [shuffled[(first + i) % len(cases)] for i in range(count)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run what is too long for CI, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to the night what is its; who names a test wants it today."""
    at_night = bool(config.getoption("--nightly"))
    if at_night or not all("::" in each for each in config.args):
        share_out(items, at_night=at_night)
    if not at_night:
        left = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


@pytest.fixture(scope="session")
def of_the_day(pytestconfig: pytest.Config) -> OfTheDay:
    return _everything if SEED or pytestconfig.getoption("--nightly") else _todays


def share_out(items: Iterable[pytest.Item], *, at_night: bool) -> None:
    """Mark as `nightly` what another day has its turn on, and at night what plays more there."""
    over_connect = "LAKELOG_TEST_CONNECT" in os.environ
    of_tests = Counter(map(_test_of, items)) if over_connect else {}
    cases: Counter[str] = Counter()
    for item in items:
        test = _test_of(item)
        mark = item.get_closest_marker("one_day_in")
        if over_connect:
            mark = pytest.mark.one_day_in(of_tests[test], zlib.crc32(test.encode())).mark
        if mark is not None:
            days, first = (*mark.args, 0)[:2]
            turn = first if mark.kwargs.get("together") else first + cases[test]
            cases[test] += 1
            if not SEED and (SEED_OF_THE_DAY + turn) % days:
                item.add_marker(pytest.mark.nightly)
        if at_night and "of_the_day" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.nightly)


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
