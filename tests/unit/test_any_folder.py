"""A clone works whatever its folder is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOTS = ("cli", "contrib", "core", "logstores", "spark")
TRIED = (
    # What packs lakelog for Spark's workers by the names of its folders, and what starts them.
    "spark/workers/test_pyfiles.py",
    "spark/workers/test_interpreter.py",
    "spark/workers/test_daemon.py",
    "logstores/service/test_service.py",  # a program, and a jar beside it
    "cli/test_vacuum.py",
)


@pytest.mark.one_day_in(3, 2)
def test_tests_pass_in_a_clone_below_a_folder_with_any_name(tmp_path: Path) -> None:
    clone = tmp_path / "50 % of it's lakelog.zip, #1" / "lakelog"
    unit = clone / "tests" / "unit"
    # What is compiled is taken along: compiling it again takes longer than the tests.
    leave = shutil.ignore_patterns("remembered")
    for each in (*ROOTS, "tests/support", *(f"tests/unit/{part}" for part in TRIED)):
        source, target = REPOSITORY / each, clone / each
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=leave)
        else:
            shutil.copy(source, target)
    for each in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(REPOSITORY / each, clone / each)
    (unit / "test_where.py").write_text(
        "import lakelog.core, lakelog.logstores, lakelog.spark, pathlib\n"
        "def test_it():\n"
        "    here = str(pathlib.Path(__file__).parents[2])\n"
        "    for root in (lakelog.core, lakelog.logstores, lakelog.spark):\n"
        "        assert root.__file__.startswith(here)\n"
    )
    options = ["-qx", "--no-programs", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(unit)],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(clone / each) for each in ROOTS)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
