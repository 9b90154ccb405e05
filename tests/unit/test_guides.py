"""The pages that need no Spark run as pasted, in order, and show what they print.

So do those that need it, in `tests/integration/test_guides.py`, and those about a storage, in
`tests/backends/test_guides.py`. Here is also what holds for all.
"""

from __future__ import annotations

import collections
import logging
import re
from typing import TYPE_CHECKING

import pytest

from support.pages import REPOSITORY, RUN, STORAGES, Page, documents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCUMENTS = documents()
PAGES = [
    page for page in DOCUMENTS if page.run and not page.needs_spark and page.name not in STORAGES
]
DATA = {"dockerfile", "json", "properties", "text", "toml", "xml", "yaml"}
"""Languages of fences that nobody runs."""


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    logger = logging.getLogger("lakelog")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.parametrize("page", PAGES, ids=repr)
def test_the_page_runs_as_pasted_and_shows_what_it_prints(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.showing(page.outputs(tmp_path))
    if request.config.getoption("--write-pages"):
        page.write(text)
    else:
        assert page.text == text


@pytest.mark.parametrize("page", DOCUMENTS, ids=repr)
def test_each_fence_of_the_page_runs_or_is_data(page: Page) -> None:
    languages = {block.language for block in page.blocks}
    assert languages <= DATA | set(RUN)


@pytest.mark.parametrize("page", DOCUMENTS, ids=repr)
def test_each_file_that_the_page_shows_is_as_it_is_there(page: Page) -> None:
    for block in page.blocks:
        if block.file:
            assert (REPOSITORY / block.file).read_text("utf-8") == block.code


def test_what_does_not_run_is_little_and_has_one_of_a_few_reasons() -> None:
    found = collections.Counter(
        block.reason for page in DOCUMENTS for block in page.blocks if block.language in RUN
    )
    ran = found.pop(None)
    (testing,) = (page for page in DOCUMENTS if page.name == "docs/testing.md")
    table = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|$", testing.text, re.MULTILINE))
    assert {reason: int(count) for reason, count in table.items() if reason in found} == found
    assert ran > 2 * found.total()


def test_no_page_writes_to_a_table_of_another_page() -> None:
    users = collections.defaultdict(set)
    for page in DOCUMENTS:
        local = r"(?<![\w/.])/(?:lake|tmp)"
        roots = f"(?:{local}|s3a://lake)" if page.name in STORAGES else local
        for block in page.run:
            for path in re.findall(rf"{roots}/[\w/-]+", block.code):
                users[path].add(page.name)
    assert {path: names for path, names in users.items() if len(names) > 1} == {}
