"""What the documents point at exists."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    {
        str(page.relative_to(REPOSITORY))
        for pattern in ("*.md", "docs/**/*.md", "[!.]*/*.md")
        for page in REPOSITORY.glob(pattern)
    }
)
BUILT = ("gallery/flights.html",)
"""Made with the pages, whose build says what leads nowhere."""
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def _text(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_of_the_page_leads_to_a_file(page: str) -> None:
    folder = (REPOSITORY / page).parent
    prose = re.sub(r"```.*?```", "", _text(page), flags=re.DOTALL)
    targets = [t.split("#")[0] for t in LINK.findall(prose) if "://" not in t]
    assert [t for t in targets if t and t not in BUILT and not (folder / t).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_python_block_of_the_page_is_python(page: str) -> None:
    for _, code in CODE.findall(_text(page)):
        ast.parse(textwrap.dedent(code), page)


def test_the_make_targets_that_the_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", _text("Makefile"), re.MULTILINE))
    spoken = r"(?:`|^)make ([a-z-]+)"
    named = {t for page in PAGES for t in re.findall(spoken, _text(page), re.MULTILINE)}
    assert named
    assert named <= targets


def test_make_help_lists_every_target_that_readers_are_pointed_to() -> None:
    listed = set(re.findall(r"^([a-z-]+):.*## \S", _text("Makefile"), re.MULTILINE))
    assert {"help", "demo", "test", "check", "check-matrix", "bench", "clean"} <= listed


@pytest.mark.parametrize("package", ["lakelog.core", "lakelog.spark", "lakelog.logstores"])
def test_each_public_name_is_on_one_page_of_the_reference(package: str) -> None:
    pages = [_text(page) for page in PAGES if page.startswith("docs/reference/")]
    shown = re.findall(rf"^::: {package}\.(\w+)$", "\n".join(pages), re.MULTILINE)
    names = {*importlib.import_module(package).__all__}
    modules = {name for name in shown if name not in names}
    for module in modules:
        names -= {*importlib.import_module(f"{package}.{module}").__all__}
    assert sorted(shown) == sorted(modules | names - {"__version__"})
