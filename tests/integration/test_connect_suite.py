from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.connect_port import connect_port


@pytest.mark.timeout(1500)
def test_all_of_this_holds_on_spark_connect() -> None:
    folder = Path(__file__).parent
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "SPARK_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    with connect_port():
        done = subprocess.run(
            [*command, "--timeout", "300"],
            env=env | {"LAKELOG_TEST_CONNECT": "1"},
            cwd=folder.parents[1],
            capture_output=True,
            text=True,
            timeout=1400,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " passed" in done.stdout
