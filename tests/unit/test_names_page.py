"""The page of old and new names: what it says to write is there, and what warns does warn."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "names.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| `")
]
DOTTED = re.compile(r"`(lakelog(?:\.\w+)+)`")
WARNING = sorted(
    name
    for row in ROWS
    if row[1] == "warns"
    for name in DOTTED.findall(row[0])
    if "cls" not in name
)


def find(dotted: str) -> object:
    """The module, or what is in one, that a dotted name stands for."""
    parts = dotted.split(".")
    for cut in range(len(parts), 1, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module in {dotted}")


def test_the_page_has_names() -> None:
    assert len(ROWS) > 20
    assert len(WARNING) == 4


@pytest.mark.parametrize("name", sorted({n for row in ROWS for n in DOTTED.findall(row[-1])}))
def test_what_to_write_now_is_there(name: str) -> None:
    assert find(name) is not None


@pytest.mark.parametrize("name", WARNING)
def test_what_is_said_to_warn_does(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=re.escape(name)):
        assert find(name) is not None
