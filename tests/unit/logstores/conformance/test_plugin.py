"""The pytest plugin: the kit on a URI without code, and nothing at all for those who don't ask."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SUITE = "lakelog.logstores.conformance.suite"
FEW = "an_empty_file or missing_file or closing_twice"


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "-q", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_the_kit_runs_on_a_uri_and_leaves_nothing(tmp_path: Path, mode: str) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    done = run(
        tmp_path, "--pyargs", SUITE, "--lakelog-uri", str(lake), f"--import-mode={mode}", "-k", FEW
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    assert list(lake.iterdir()) == []


def test_a_store_of_the_users_own_is_named_by_its_path_and_configured(tmp_path: Path) -> None:
    (tmp_path / "own_stores.py").write_text(
        "from lakelog.logstores import LocalLogStore\n"
        "class Lossy(LocalLogStore):\n"
        "    def read(self, path):\n"
        "        assert self.conf['own.key'] == 'a=b'\n"
        "        return iter(())\n"
    )
    done = run(
        tmp_path,
        *("-p", "own_stores", "--pyargs", SUITE, "--lakelog-uri", str(tmp_path / "lake")),
        *("--lakelog-store", "own_stores.Lossy", "--lakelog-conf", "own.key=a=b"),
        *("-k", "read_back or reads_back or a_missing_file"),
    )
    assert done.returncode == 1, done.stdout
    assert "test_a_written_file_reads_back_line_by_line" in done.stdout
    assert "PromiseBrokenError" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "needs --lakelog-uri"),
        (("--lakelog-uri", "/x", "--lakelog-conf", "s3cr3t"), "number 1 is not KEY=VALUE"),
    ],
)
def test_wrong_usage_is_reported_before_anything_runs(
    tmp_path: Path, args: tuple[str, ...], message: str
) -> None:
    done = run(tmp_path, "--pyargs", SUITE, *args)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr


def test_the_plugin_imports_nothing_heavy_and_no_check() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import lakelog.logstores.conformance.plugin\n"
        "print(*set(sys.modules) - before)"
    )
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert not loaded & {"hypothesis", "pyarrow", "boto3", "numpy", "asyncio"}
    kit = {name for name in loaded if name.startswith("lakelog.logstores.conformance.")}
    assert kit == {"lakelog.logstores.conformance.plugin"}


def test_other_peoples_tests_run_as_before(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(
        "import sys\ndef test_own():\n    assert 'pyarrow' not in sys.modules\n"
    )
    done = run(tmp_path, "--strict-markers", "--strict-config")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
