from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.connect_server import run_connect_server
from support.spark_confs import CONF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.days import OfTheDay

HERE = Path(__file__).parent
MARKED = [
    each.name
    for each in sorted(HERE.glob("test_*.py"))
    if each != Path(__file__) and "pytest.mark.connect" in each.read_text(encoding="utf-8")
]
# A process imports PySpark for a second or two, and its session has daemons of Python of its own.
AT_ONCE = 3


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with run_connect_server(CONF) as url:
        yield url


# One process keeps the server for all of them.
@pytest.mark.xdist_group("connect")
@pytest.mark.soak
@pytest.mark.one_day_in(6, 5)
@pytest.mark.timeout(280)
@pytest.mark.parametrize("first", range(0, len(MARKED), AT_ONCE))
def test_what_differs_over_connect_holds_there(
    server: str, first: int, request: pytest.FixtureRequest, of_the_day: OfTheDay
) -> None:
    files = [str(HERE / name) for name in MARKED[first : first + AT_ONCE]]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "SPARK_"))}
    covered = ["-p", "support.covered"] if "LAKELOG_COVERAGE" in env else []
    timings = request.config.getoption("--timings")
    # In a folder of their own: what they take is this test's time already.
    timed = [f"--timings={Path(timings).absolute() / 'connect'}"] if timings else []
    # Then the tests there have all of their cases, too.
    is_whole = len(of_the_day(range(2))) == 2
    night = ["--nightly"] if is_whole else []
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *night,
            *covered,
            *timed,
            *files,
        ],
        env=env | {"LAKELOG_TEST_CONNECT": server},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=None if is_whole else 270,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " passed" in done.stdout
