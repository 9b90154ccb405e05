"""The example of a store of one's own: installed as a package, chosen by conf, passes the kit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_logstore"
CODE_LINES = 60
IN_SHORT = ("-p", "support.kit_in_short")


def test_the_store_is_sixty_lines_long() -> None:
    lines = (EXAMPLE / "lakelog_redis" / "store.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= CODE_LINES


@pytest.mark.one_day_in(3, 2)
def test_the_installed_package_passes_its_tests_on_a_real_redis(
    redis_url: str, tmp_path: Path
) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-build-isolation", "--root-user-action=ignore"]
    subprocess.run(
        [*pip, "--target", str(tmp_path / "site"), str(EXAMPLE)], check=True, timeout=120
    )
    path = os.pathsep.join([str(tmp_path / "site"), str(Path(__file__).parents[1])])
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *IN_SHORT],
        cwd=EXAMPLE,
        env={**os.environ, "PYTHONPATH": path, "REDIS_URL": redis_url},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout
