"""The suite's own rule: a user sees a skip, CI does not accept one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SKIPS = {
    "a test": "import pytest\ndef test_it():\n    pytest.skip('no tool')\n",
    "a fixture": (
        "import pytest\n@pytest.fixture\ndef tool():\n    pytest.skip('no tool')\n"
        "def test_it(tool):\n    pass\n"
    ),
    "a module": (
        "import pytest\npytest.skip('no tool', allow_module_level=True)\ndef test_it():\n    pass\n"
    ),
    "a mark": "import pytest\n@pytest.mark.skip('no tool')\ndef test_it():\n    pass\n",
}


def _pytest(folder: Path, code: str, ci: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_one.py").write_text(code)
    options = ["-q", "-ra", "-c", os.devnull, "-p", "conftest", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(folder), str(folder)],
        env={**os.environ, "CI": ci, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("where", SKIPS)
def test_a_skip_fails_in_ci(tmp_path: Path, where: str) -> None:
    done = _pytest(tmp_path, SKIPS[where], "true")
    assert done.returncode in (1, 2), done.stdout
    assert "CI accepts no skip" in done.stdout
    assert "no tool" in done.stdout


def test_a_skip_elsewhere_passes_and_shows_its_reason(tmp_path: Path) -> None:
    done = _pytest(tmp_path, SKIPS["a fixture"], "")
    assert done.returncode == 0, done.stdout
    assert "1 skipped" in done.stdout
    assert "no tool" in done.stdout
