"""The pictures of the documentation are what their script draws, with words for who sees none."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

REPOSITORY = Path(__file__).parents[2]
PICTURES = REPOSITORY / "docs" / "pictures"
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)?#]+)[^)]*\)")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    return importlib.import_module("docs_pictures")


def test_the_diagrams_are_what_the_script_draws(script: Any) -> None:
    for name in script.DIAGRAMS:
        assert (PICTURES / f"{name}.svg").read_text("utf-8") == script.drawn(name), (
            f"{name}.svg: run scripts/docs_pictures.py"
        )


def test_nothing_of_a_diagram_sticks_out(script: Any) -> None:
    for name in script.DIAGRAMS:
        root = ET.fromstring(script.drawn(name))
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for box in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y, w, h = (float(box.attrib[each]) for each in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width, name
            assert 0 <= y <= y + h <= height, name
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            x = float(text.attrib["x"])
            long = 6.6 * len(text.text or "")
            left = {"start": 0.0, "middle": long / 2, "end": long}[text.attrib["text-anchor"]]
            assert x - left >= 0, (name, text.text)
            assert x - left + long <= width, (name, text.text)


def test_every_picture_is_there_has_words_and_is_shown() -> None:
    shown = set()
    for page in PAGES:
        for words, path in SHOWN.findall(page.read_text("utf-8")):
            assert len(words) > 20, (page, path)
            picture = (page.parent / path).resolve()
            assert picture.is_file(), (page, path)
            shown.add(picture)
    assert shown >= set(PICTURES.iterdir())
