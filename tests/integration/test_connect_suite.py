from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.connect_port import connect_port

# Each part is a process with a server of its own, and ends within the time of one test.
PARTS = 6


def _files(part: int) -> list[str]:
    files = sorted(set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)})
    marked = [each for each in files if "pytest.mark.connect" in each.read_text(encoding="utf-8")]
    return [str(each) for each in marked[part::PARTS]]


@pytest.mark.timeout(800)
@pytest.mark.parametrize("part", range(PARTS))
def test_what_differs_over_connect_holds_there(part: int) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "SPARK_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_files(part)]
    with connect_port():
        done = subprocess.run(
            command,
            env=env | {"LAKELOG_TEST_CONNECT": "1"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=740,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " passed" in done.stdout
