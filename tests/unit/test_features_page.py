"""The page of table features says what the code does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.core.features.registry import FEATURES

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "feature_table.py"
PAGE = REPOSITORY / "docs" / "features.md"


def check() -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )


def test_the_page_is_what_the_code_says() -> None:
    done = check()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_the_page_has_a_row_for_every_feature(name: str) -> None:
    assert f"\n| `{name}` |" in PAGE.read_text()


def test_a_page_that_differs_is_reported_with_the_command_that_mends_it(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    copy = tmp_path / "scripts" / SCRIPT.name
    for each in (SCRIPT, SCRIPT.with_name("written_page.py")):
        copy.with_name(each.name).write_text(each.read_text())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / PAGE.name).write_text(PAGE.read_text().replace("| yes |", "| no |", 1))
    command = [sys.executable, str(copy)]
    done = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "run python scripts/feature_table.py" in done.stderr
    subprocess.run(command, check=True)
    assert (tmp_path / "docs" / PAGE.name).read_text() == PAGE.read_text()
