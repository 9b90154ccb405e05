"""The reference names what is public: modules, names, exceptions, packages."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import lakelog.core as core
import lakelog.logstores as logstores
from lakelog.core import errors

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
REFERENCE = DOCS / "reference"
SHOWN = re.compile(r"^::: (\S+)$", re.MULTILINE)
MODULES = [
    "lakelog.core.alter",
    "lakelog.core.errors",
    "lakelog.core.schema",
    "lakelog.core.actions",
    "lakelog.core.hooks",
    "lakelog.core.events",
    "lakelog.spark",
    "lakelog.logstores",
    "lakelog.logstores.object_store",
    "lakelog.logstores.conformance",
    "lakelog.logstores.service",
    "lakelog.cli",
]


def _shown() -> set[str]:
    pages = REFERENCE.glob("*.md")
    return {name for page in pages for name in SHOWN.findall(page.read_text(encoding="utf-8"))}


BY_NAME = {"lakelog.spark", "lakelog.logstores"}
"""Whose names are on several pages, one by one: `test_documents` counts them."""


@pytest.mark.parametrize("module", sorted({*MODULES} - BY_NAME))
def test_a_public_module_has_a_page_that_shows_its_names(module: str) -> None:
    """A page of a module shows its `__all__`."""
    assert module in _shown()
    assert importlib.import_module(module).__all__


def test_every_name_of_the_core_is_on_its_page_or_on_that_of_a_module_of_its_own() -> None:
    elsewhere = {
        name
        for module in (*MODULES[:6], "lakelog.logstores")
        for name in importlib.import_module(module).__all__
    }
    names = {name for name in core.__all__ if not name.startswith("__")} - elsewhere
    assert {name for name in names if f"lakelog.core.{name}" not in _shown()} == set()


def test_no_page_shows_what_is_not_public() -> None:
    for name in _shown() - set(MODULES):
        module, _, member = name.rpartition(".")
        assert member in importlib.import_module(module).__all__, name


def test_every_exception_is_reported_with_where_to_import_it() -> None:
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    raised = {
        name
        for module in (errors, logstores)
        for name in module.__all__
        if isinstance(member := getattr(module, name), type) and issubclass(member, Exception)
    }
    assert {name for name in raised if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("root", ["core", "logstores", "spark"])
def test_the_page_of_the_architecture_names_every_package(root: str) -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    inner = REPOSITORY / root / "lakelog" / root
    packages = {path.parent.name for path in inner.glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in page} == set()


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert {page for page in pages if page not in contents} == set()
