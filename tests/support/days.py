"""Tests that take their turns by the day, and run all of them at night.

For tests that say the same of much that is alike, each of them dear: `one_day_in(3)` has a test run
every third day, and of the cases of one test a third each day. `one_day_in(3, 1)` is a day earlier,
so that the tests of a module take turns. On the other days such a test is marked `nightly`. With a
seed, as in `make soak`, all of them run. Over Connect the day draws in another way
(`tests/integration/conftest.py`).
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from support.examples import SEED, SEED_OF_THE_DAY

if TYPE_CHECKING:
    from collections.abc import Iterable


def leave_to_other_days(items: Iterable[pytest.Item]) -> None:
    """Mark as `nightly` what another day has its turn on."""
    if "LAKELOG_TEST_CONNECT" in os.environ:
        return
    cases: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("one_day_in")
        if mark is None:
            continue
        days, first = (*mark.args, 0)[:2]
        test = item.nodeid.partition("[")[0]
        if not SEED and (SEED_OF_THE_DAY + first + cases[test]) % days:
            item.add_marker(pytest.mark.nightly)
        cases[test] += 1
