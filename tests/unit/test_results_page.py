"""RESULTS.md says which of its figures are older than the code that they measure."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "freshness.py"


@pytest.fixture(scope="module")
def freshness() -> Any:
    return SimpleNamespace(**runpy.run_path(str(PATH)))


def page(freshness: Any, name: str, stamp: str) -> str:
    assert name in freshness.MEASURED
    return f"# Results\n\n<!-- {name} -->\nten times as fast\n{stamp}<!-- end of {name} -->\n"


def test_each_section_is_marked_if_its_code_has_changed_and_only_then(freshness: Any) -> None:
    text = freshness.RESULTS.read_text()
    assert text == freshness.marked(text), "run `python benchmarks/freshness.py`"


def test_every_section_has_code_that_it_measures(freshness: Any) -> None:
    found = [name for name, _ in freshness.SECTION.findall(freshness.RESULTS.read_text())]
    assert sorted(found) == sorted(freshness.MEASURED)


def test_what_was_measured_just_now_is_not_marked_and_anything_else_is(freshness: Any) -> None:
    new = page(freshness, "core", freshness.stamp("core"))
    assert freshness.marked(new) == new
    old = page(freshness, "core", "<!-- of 0123456789ab -->\n")
    unknown = page(freshness, "core", "")
    for each in (old, unknown):
        told = freshness.marked(each)
        assert f"<!-- core -->\n{freshness.OLDER}\n\nten times" in told
        assert freshness.marked(told) == told
    again = freshness.marked(old).replace("<!-- of 0123456789ab -->\n", freshness.stamp("core"))
    assert freshness.marked(again) == new


def test_words_and_layout_make_no_figure_old_and_code_does(freshness: Any) -> None:
    code = 'def f(x):\n    """Double."""\n    return 2 * x\n'
    same = '# why\ndef f(\n    x,\n):\n    """Twice."""\n\n    return 2 * x\n'
    assert freshness.bare(code) == freshness.bare(same)
    assert freshness.bare(code) != freshness.bare(code.replace("2", "3"))
