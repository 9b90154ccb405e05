"""The page of delta-spark's Python methods is made from the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "delta_tables_page.py"
PAGE = REPOSITORY / "docs" / "delta-tables.md"


def test_the_page_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_is_there_and_what_is_not() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for line in (
        "| `restoreToVersion` | yes |",
        "| `forName` | yes |",
        "| `clusterBy` | yes |",
        "| `step` | yes |",
    ):
        assert line in page
