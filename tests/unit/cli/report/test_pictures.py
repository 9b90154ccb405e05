"""Pictures are to scale."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cli.report.treemap import Tile, treemap
from lakelog.core.engine.shown import WIDTH, Series, bars, lines
from support.examples import examples

NUMBER = r"(-?[\d.]+)"
BOX = re.compile(rf'<rect class="c\d" x="{NUMBER}" y="{NUMBER}" width="{NUMBER}" height="{NUMBER}"')


def boxes(svg: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, each)) for each in BOX.findall(svg)]


@settings(max_examples=examples(40))
@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=40))
def test_the_areas_of_a_treemap_are_the_shares_and_do_not_overlap(sizes: list[float]) -> None:
    sizes = sorted(sizes, reverse=True)
    found = boxes(treemap("t", [Tile(str(each), each, "") for each in sizes]))
    assert len(found) == len(sizes)
    whole = WIDTH * 280
    for size, (x, y, w, h) in zip(sizes, found, strict=True):
        assert -0.1 <= x <= x + w <= WIDTH + 0.6
        assert -0.1 <= y <= y + h <= 280.6
        share = size / sum(sizes)
        # A line of one unit around each is left free.
        if share > 0.01:
            assert (w + 1) * (h + 1) / whole == pytest.approx(share, rel=0.05)
    for one, other in combinations(found, 2):
        apart = [
            one[at] + one[at + 2] <= other[at] + 0.6 or other[at] + other[at + 2] <= one[at] + 0.6
            for at in (0, 1)
        ]
        assert any(apart), (one, other)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30))
def test_bars_are_as_high_as_their_values(values: list[int]) -> None:
    svg = bars("t", [str(at) for at in range(len(values))], [Series("a", "c1", values)], str)
    heights = [box[3] for box in boxes(svg)]
    shown = [each for each in values if each]
    assert len(heights) == len(shown)
    if shown:
        scale = max(heights) / max(shown)
        assert max(heights) <= 170
        for height, value in zip(heights, shown, strict=True):
            assert height == pytest.approx(value * scale, abs=0.11)


def test_a_line_breaks_where_a_value_is_unknown() -> None:
    svg = lines("t", list("abcde"), Series("a", "c1", [1, 2, None, 3, 4]), str)
    assert svg.count("<polyline") == 2
    assert svg.count("<circle") == 4
    assert "<polyline" not in lines("t", ["a"], Series("a", "c1", [None]), str)
