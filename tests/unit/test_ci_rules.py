"""The suite's own rule: a user sees a skip, CI does not accept one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.forked_pytest import Ended, ForkedPytest

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@pytest.fixture(scope="module")
def forked() -> Iterator[ForkedPytest]:
    with ForkedPytest() as each:
        yield each


def _pytest(
    forked: ForkedPytest, folder: Path, code: str, ci: str, *more: str, named: str = ""
) -> Ended:
    (folder / "test_one.py").write_text(code)
    what = str(folder / f"test_one.py::{named}") if named else str(folder)
    options = ["-q", "-ra", "-c", os.devnull, "-p", "conftest", "-p", "no:cacheprovider"]
    env = {**os.environ, "CI": ci}
    return forked.run(folder, [*options, "--rootdir", str(folder), what, *more], env)


@pytest.mark.parametrize("where", SKIPS)
def test_a_skip_fails_in_ci(forked: ForkedPytest, tmp_path: Path, where: str) -> None:
    done = _pytest(forked, tmp_path, SKIPS[where], "true")
    assert done.returncode in (1, 2), done.stdout
    assert "CI accepts no skip" in done.stdout
    assert "no tool" in done.stdout


def test_a_skip_elsewhere_passes_and_shows_its_reason(forked: ForkedPytest, tmp_path: Path) -> None:
    done = _pytest(forked, tmp_path, SKIPS["a fixture"], "")
    assert done.returncode == 0, done.stdout
    assert "1 skipped" in done.stdout
    assert "no tool" in done.stdout


def _ci_run(tmp_path: Path, make: str, limit: int) -> subprocess.CompletedProcess[str]:
    """`.ci/run` where `make` is this shell script."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "make").write_text(f"#!/usr/bin/env bash\n{make}\n")
    (programs / "make").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    ours = {"PATH": path, "PYTHON": sys.executable, "LAKELOG_CI_SECONDS": str(limit)}
    return subprocess.run(
        [TESTS.parent / ".ci" / "run"],
        env=os.environ | ours,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_ci_tells_how_long_each_stage_took(tmp_path: Path) -> None:
    done = _ci_run(tmp_path, 'echo "make $*"', 3600)
    assert done.returncode == 0, done.stderr
    stages = [line.split(":")[0] for line in done.stdout.splitlines() if line.startswith("==")]
    assert stages == [
        "== environment",
        "== checks",
        "== programs",
        "== benchmarks",
        "== tests",
        "== all but programs",
    ]


def test_ci_does_not_count_what_is_built_once(tmp_path: Path) -> None:
    done = _ci_run(tmp_path, '[ "$1" != programs ] || sleep 7.0625', 5)
    # A stage has what is left of the limit, and building has a limit of its own.
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_ends_with_the_first_stage_that_fails(tmp_path: Path) -> None:
    done = _ci_run(tmp_path, 'echo "make $*"; [ "$1" != check ] || exit 3', 3600)
    assert done.returncode == 3
    assert "make test" not in done.stdout


def test_ci_fails_a_run_that_takes_too_long_and_names_the_slowest_tests(tmp_path: Path) -> None:
    waits = f"sleep 49.{os.getpid()}1"
    make = r"""
[ "$1" = test ] || exit 0
folder=${2#*\'}; folder=${folder%%\'*}
echo '{"kind": "begin", "id": "tests/test_a.py::test_endless"}' > "$folder/gw0.jsonl"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"kind\": \"test\", \"id\": \"tests/test_b.py::test_$i\", \"wall\": $i, \"cpu\": 1}"
done >> "$folder/gw1.jsonl"
printf '{"kind": "te' >> "$folder/gw1.jsonl"
WAITS
echo "came so far"
"""
    done = _ci_run(tmp_path, make.replace("WAITS", waits), 5)
    assert done.returncode == 1, done.stderr
    assert "not ended  tests/test_a.py::test_endless" in done.stdout
    named = [line.split()[-1] for line in done.stdout.splitlines() if "test_b.py" in line]
    assert named == [f"tests/test_b.py::test_{i}" for i in range(12, 2, -1)]
    assert "came so far" not in done.stdout
    left = subprocess.run(["pgrep", "-f", waits], capture_output=True, check=False)
    assert left.stdout == b""


def test_a_group_of_tests_stays_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.xdist_group('shared')\n"
        "@pytest.mark.parametrize('n', range(12))\n"
        "def test_it(n):\n"
        f"    open({str(tmp_path)!r} + '/' + os.environ['PYTEST_XDIST_WORKER'], 'w').close()\n"
    )
    options = ["-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", *options, tmp_path],
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert len(list(tmp_path.glob("gw*"))) == 1


def test_a_worker_that_hangs_ends_the_run_and_names_its_test(tmp_path: Path) -> None:
    # `PyDLL` keeps the lock of the interpreter: no signal handler and no thread gets a turn.
    (tmp_path / "test_one.py").write_text(
        "import ctypes\ndef test_stuck():\n    ctypes.PyDLL(None).sleep(50)\n"
    )
    ours = str(TESTS.parent / "pyproject.toml")
    options = ["-c", ours, "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "--max-worker-restart", "0", *options,
         "-o", "faulthandler_timeout=1", tmp_path],
        capture_output=True, text=True, timeout=45, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "crashed while running 'test_one.py::test_stuck'" in done.stdout


def test_a_soak_ends_with_the_seed_and_the_story_of_the_first_failure(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(
        "import os, pytest\n"
        "@pytest.mark.soak\n"
        "def test_drawn():\n"
        "    assert os.environ['LAKELOG_SEED'] != '7', 'two commits of one version'\n"
    )
    done = subprocess.run(
        [sys.executable, TESTS / "support" / "soak.py", "--jobs", "0", "--seed", "6", "--", file],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "two commits of one version" in done.stdout
    assert f"make soak SEED=7 SOAK_ARGS='{file}'" in done.stdout


def test_a_soak_ends_when_its_time_is_up(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import pytest, time\n@pytest.mark.soak\ndef test_drawn():\n    time.sleep(100)\n"
    )
    done = subprocess.run(
        [sys.executable, TESTS / "support" / "soak.py", "--jobs", "0", "--minutes", "0.05", "--",
         tmp_path],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing found in 0 whole rounds" in done.stdout


LIMITS = """
import pytest

def limit(request):
    return request.node.get_closest_marker("timeout")

@pytest.mark.timeout(7)
def test_its_own(request):
    assert limit(request).args == ({own},)

@pytest.mark.timeout(0)
def test_without(request):
    assert limit(request).args == (0,)

def test_the_usual(request):
    assert limit(request) {usual}
"""


@pytest.mark.parametrize(
    ("seed", "more", "own", "usual"),
    [
        ("0", [], 7, "is None"),
        ("3", [], 35, ".args == (0,)"),
        ("0", ["--nightly"], 35, ".args == (0,)"),
    ],
)
def test_a_soak_takes_only_a_hang_for_a_failure(
    forked: ForkedPytest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: str,
    more: list[str],
    own: int,
    usual: str,
) -> None:
    """The folder of this test sets no usual limit, which is 0, and five times that is 0."""
    monkeypatch.setenv("LAKELOG_SEED", seed)
    done = _pytest(forked, tmp_path, LIMITS.format(own=own, usual=usual), "false", *more)
    assert "3 passed" in done.stdout, done.stdout


TURNS = """
import pytest

CASES = [1, 2, 3]

def test_draws(of_the_day):
    assert len(of_the_day(CASES)) == {drawn}

@pytest.mark.one_day_in(3)
@pytest.mark.parametrize("case", CASES)
def test_in_turns(case):
    pass

def test_each_day():
    pass
"""


@pytest.mark.parametrize(
    ("more", "drawn", "run"),
    [
        ([], 1, "3 passed, 2 deselected"),
        (["--nightly"], 3, "5 passed"),
        (["--nightly", "-m", "nightly"], 3, "3 passed, 2 deselected"),
    ],
)
def test_at_night_runs_what_a_day_leaves_out(
    forked: ForkedPytest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    drawn: int,
    run: str,
) -> None:
    monkeypatch.setenv("LAKELOG_DAY", "740000")
    done = _pytest(forked, tmp_path, TURNS.format(drawn=drawn), "", *more)
    assert run in done.stdout, done.stdout


def test_who_names_a_test_wants_it_on_any_day(
    forked: ForkedPytest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_DAY", "740000")
    done = _pytest(forked, tmp_path, TURNS.format(drawn=1), "", named="test_in_turns")
    assert "3 passed" in done.stdout, done.stdout
