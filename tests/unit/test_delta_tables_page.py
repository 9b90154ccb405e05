"""The page of delta-spark's Python methods is made from the code."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("wanted", "is_taken"),
    [
        ("a, b=1, *more", True),
        ("a, b=..., *more", True),
        ("a, b=1", False),
        ("a, b=2, *more", False),
        ("a, b, *more", False),
        ("b=1, a, *more", False),
        ("a, b=1, *more, c", False),
    ],
)
def test_arguments_are_compared_with_their_order_and_defaults(
    monkeypatch: pytest.MonkeyPatch, wanted: str, is_taken: bool
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    takes = runpy.run_path(str(SCRIPT))["takes"]

    def method(self: object, a: int, b: int = 1, *more: str, c: bool = False) -> None: ...

    def other(self: object, a: int, b: int = 1, *, c: bool = False) -> None: ...

    assert takes(method, wanted) is is_taken
    assert takes(other, "a, b=1")
