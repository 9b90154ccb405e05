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

from support.named_in_commands import commands, missing, targets
from support.pages import CHECKOUT, REPOSITORY, RUN, STORAGES, Page, documents

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


CLONE = [
    pytest.param(block.code, id=f"{page}:{block.line}")
    for page in DOCUMENTS
    for block in page.blocks
    if block.reason == CHECKOUT and block.language in RUN
]


@pytest.mark.parametrize("code", CLONE)
def test_a_clone_has_all_that_the_commands_for_it_name(
    code: str, request: pytest.FixtureRequest
) -> None:
    for command in commands(code):
        assert missing(command, request.config) == [], command


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("make chekc", "chekc"),
        ("make soak MINUTE=3", "MINUTE=3"),
        ("make soak MINUTES=3", None),
        ("pytest tests/unti", "tests/unti"),
        ("CI=true .venv/bin/pytest --no-such-option=3 tests", "--no-such-option=3"),
        ("python -m support.recorder", "support.recorder"),
        ("python tests/support/report.py", "tests/support/report.py"),
        ("export LAKELOG_TEST_S3=http://127.0.0.1", "LAKELOG_TEST_S3"),
        ("pip install '.[spark,clii]'", "clii"),
        (
            "pip install './lakelog-0.0.9-py3-none-any.whl[s3]'",
            "./lakelog-0.0.9-py3-none-any.whl[s3]",
        ),
        ("pip install . 'dagster==1.12.*'", "dagster==1.12.*"),
        ("lakelog rum dbt build", "rum"),
        ("cd examples/dbtt", "examples/dbtt"),
        ("mak test", "mak"),
    ],
)
def test_a_name_that_a_clone_has_not_is_found(
    command: str, word: str | None, request: pytest.FixtureRequest
) -> None:
    found = [name for words in commands(command) for name in missing(words, request.config)]
    assert set(found) == ({word} if word else set())


def test_each_target_of_make_that_the_pages_name_is_there() -> None:
    pages = [page.text for page in DOCUMENTS]
    pages.append((REPOSITORY / "CONTRIBUTING.md").read_text("utf-8"))
    named = {name for text in pages for name in re.findall(r"`make ([a-z][a-z-]*)", text)}
    assert named
    assert named <= targets()


def test_what_does_not_run_is_little_and_has_one_of_a_few_reasons() -> None:
    found = collections.Counter(
        block.reason for page in DOCUMENTS for block in page.blocks if block.language in RUN
    )
    ran = found.pop(None)
    (testing,) = (page for page in DOCUMENTS if page.name == "docs/testing.md")
    table = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|$", testing.text, re.MULTILINE))
    assert {reason: int(count) for reason, count in table.items() if reason in found} == found
    del found[CHECKOUT]  # Its names are looked up, above.
    assert ran > 6 * found.total()


def test_no_page_writes_to_a_table_of_another_page() -> None:
    users = collections.defaultdict(set)
    for page in DOCUMENTS:
        local = r"(?<![\w/.])/(?:lake|tmp)"
        roots = f"(?:{local}|s3a://lake)" if page.name in STORAGES else local
        for block in page.run:
            for path in re.findall(rf"{roots}/[\w/-]+", block.code):
                users[path].add(page.name)
    assert {path: names for path, names in users.items() if len(names) > 1} == {}
