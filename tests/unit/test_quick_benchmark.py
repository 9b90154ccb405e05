"""The short benchmark notices what became slower, and says which row it is."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "quick.py"


@pytest.fixture(scope="module")
def quick() -> Any:
    spec = importlib.util.spec_from_file_location("quick_benchmark", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look there
        spec.loader.exec_module(module)
        yield module


def test_a_ratio_that_is_as_it_was_passes(quick: Any) -> None:
    assert quick.complaints({"commit": 0.14, "append": 0.5}, {"commit": 0.1, "append": 0.9}) == []


def test_a_ratio_that_became_worse_is_named(quick: Any) -> None:
    said = quick.complaints({"commit": 0.16, "append": 0.5}, {"commit": 0.1, "append": 0.5})
    assert said == ["commit: 0.16 of the peer's time, 1.6 times the 0.10 of ratios.json"]


def test_a_row_without_a_ratio_and_a_ratio_without_a_row_are_named(quick: Any) -> None:
    said = quick.complaints({"new": 1.0}, {"old": 1.0})
    assert [each.split(":")[0] for each in said] == ["new", "old"]


def clock_of(costs: list[float]) -> Any:
    """A clock of CPU time that each work moves on by what it costs."""
    now = itertools.accumulate(costs, initial=0.0)
    return lambda: next(now)


def test_the_least_of_each_side_counts(quick: Any) -> None:
    # Ours and theirs in turns, with the time that passes between two works.
    clock = clock_of([3, 0, 4, 0, 1, 0, 9, 0, 2, 0, 5, 0])
    done: list[str] = []
    row = quick.Row("r", lambda: done.append("a"), lambda: done.append("b"), rounds=3, cpu=clock)
    assert quick.ratio_of(row) == pytest.approx(1 / 4)
    assert done == ["a", "b"] * 4


def test_the_file_holds_a_ratio_a_row(quick: Any) -> None:
    ratios = json.loads(quick.RATIOS.read_text())
    assert len(ratios) >= 8
    assert all(0 < ratio < 10 for ratio in ratios.values())
