"""The guides' examples run as pasted: each page's Python blocks, in order, in one fresh namespace.

A block that needs a server, Spark or a package of the reader's own is fenced as `py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    page.name: blocks
    for page in sorted(DOCS.glob("*.md"))
    if "/tmp/guide/" in (blocks := "\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))))
}


def test_the_guides_without_spark_are_among_them() -> None:
    assert {"without-spark.md", "concurrency.md", "row-changes.md", "columns.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_the_page_run_as_pasted(page: str, tmp_path: Path) -> None:
    code = PAGES[page].replace('"/tmp/guide/', f'"{tmp_path}/')
    exec(compile(code, str(DOCS / page), "exec"), {"__name__": "__main__"})
