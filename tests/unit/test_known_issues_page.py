"""The page of known issues names tests that exist."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from lakelog.logstores.conformance import HttpFaultConformance, LogStoreConformance

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "known-issues-elsewhere.md").read_text()
TESTS = sorted(set(re.findall(r"`(tests/[^`]+::[^`]+)`", PAGE)))
CHECKS = sorted(set(re.findall(r"`kit:([^`]+)`", PAGE)))
ELSEWHERE, _, OUR_OWN = PAGE.partition("\n## Our own\n")


def rows(text: str) -> list[str]:
    return [
        line
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| What")
    ]


@functools.cache
def _tests_of(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("name", TESTS)
def test_each_test_that_the_page_names_exists(name: str) -> None:
    path, _, function = name.partition("::")
    assert function.startswith("test_")
    assert function in _tests_of(REPOSITORY / path)


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_of_the_kit_that_the_page_names_exists(name: str) -> None:
    assert hasattr(LogStoreConformance, name) or hasattr(HttpFaultConformance, name)


def test_each_issue_has_a_test() -> None:
    assert rows(ELSEWHERE)
    assert rows(OUR_OWN)
    for row in rows(PAGE):
        assert re.search(r"`(tests/[^`]+::|kit:)[^`]+`", row.rsplit(" | ", 1)[1]), row
