"""Test lakelog on each Python that it is made for, with each PySpark and pyarrow.

    python scripts/check_matrix.py [--pythons "3.11 3.13"] [--jobs 3] [--all]

Spark is tried in each cell: every way into and out of a table, once. The unit tests run once for
each Python, with the lowest pyarrow or the newest, which take turns from day to day and from Python
to Python (`--all`: with both), and with a few random examples each: what is found here is another
release, not a rare draw. Each Python with a PySpark is an environment of its own in the cache, by
uv; what else is in it is the newest that there is. `scripts/check_floors.sh` tests the lowest
together.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from environments import CACHE, environment, keep_pyspark
from floors import floors
from interpreters import PROJECT, interpreter, minors
from release_smoke import table

if TYPE_CHECKING:
    from pathlib import Path

REPOSITORY = PROJECT.parent
SPARKS = ("4.0.*", "4.1.*", "newest")
ARROWS = ("newest", "floor")
SMOKE = "tests/integration/test_every_way_once.py"
UNIT = "tests/unit/[a-z]*/"
"""But for what judges the repository itself, which is the same with any release."""
_FIRST_WITH_WHEELS = {"3.13": "18.0"}
"""Python -> the first pyarrow that has a wheel for it, where that is above lakelog's floor."""
_LIMIT = 7200
"""Seconds for one run of tests, which only one that hangs takes, however busy the machine is."""
_EXAMPLES = "0.5"
"""Times as many random examples as `make test` draws."""


def unit_cells(pythons: list[str], day: int, *, both: bool = False) -> set[tuple[str, str, str]]:
    """Where the unit tests run: in one cell for each Python, and of two days for each pyarrow.

    Those of one Python are in two environments, which work at the same time.

    Args:
        pythons: minor versions.
        day: any number that counts days.
        both: each pyarrow at once.
    """
    return {
        (python, SPARKS[(number + turn) % len(SPARKS)], arrow)
        for number, python in enumerate(pythons)
        for turn, arrow in enumerate(ARROWS)
        if both or (day + number + turn) % len(ARROWS) == 0
    }


def arrow_floor(python: str, pyspark: Path) -> str:
    """The lowest pyarrow for a cell: what lakelog, its Python and its PySpark all take.

    Args:
        python: minor version.
        pyspark: the wheel.
    """
    with zipfile.ZipFile(pyspark) as packed:
        text = packed.read("pyspark/sql/pandas/utils.py").decode()
    asked = re.search(r'minimum_pyarrow_version = "([\d.]+)"', text)
    known = [
        floors()["pyarrow"][0],
        _FIRST_WITH_WHEELS.get(python, "0"),
        asked[1] if asked else "0",
    ]
    return max(known, key=lambda each: [int(part) for part in each.split(".")])


def main() -> int:
    """Print a row for each cell; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pythons", default=" ".join(minors()), help="minor versions")
    parser.add_argument("--jobs", type=int, default=3, help="processes at once")
    parser.add_argument("--all", action="store_true", help="the unit tests with each pyarrow")
    options = parser.parse_args()
    began = time.monotonic()
    pythons = options.pythons.split()
    found = {minor: interpreter(minor) for minor in pythons}
    wheels = {spark: keep_pyspark(_requirement(spark)) for spark in SPARKS}
    unit = unit_cells(pythons, int(time.time() // 86_400), both=options.all)

    def environment_row(cell: tuple[str, str]) -> list[tuple[str, ...]]:
        python, spark = cell
        rows = []
        folder = CACHE / f"venv-{python}-{_version(wheels[spark])}"
        for arrow in ARROWS:
            lowest = arrow_floor(python, wheels[spark])
            wanted = [f"pyarrow=={lowest}.*"] if arrow == "floor" else ["--upgrade-package=pyarrow"]
            pyspark = f"pyspark=={_version(wheels[spark])}"
            own = environment(
                folder, found[python], "--editable", str(REPOSITORY), "--group",
                f"{PROJECT}:test", pyspark, *wanted,
            )  # fmt: skip
            all_of_it = (python, spark, arrow) in unit
            name = f"{python}-{_version(wheels[spark])}-{arrow}"
            rows.append(
                (
                    python,
                    _version(wheels[spark]),
                    _installed(own, "pyarrow"),
                    _tests(own, f"{name}-spark", SMOKE),
                    _tests(own, f"{name}-unit", UNIT) if all_of_it else "",
                )
            )
        return rows

    cells = [(python, spark) for python in pythons for spark in SPARKS]
    # The longest come first, so that none of them is left alone at the end.
    long = {(python, spark) for python, spark, _ in unit}
    cells.sort(key=lambda cell: cell not in long)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = [row for part in pool.map(environment_row, cells) for row in part]
    rows.sort(key=lambda row: [int(part) for part in ".".join(row[:2]).split(".")])
    head = ["Python", "PySpark", "pyarrow", "Spark, every way", "unit tests"]
    sys.stdout.write("\n".join(table(head, rows)))
    sys.stdout.write(f"\nin {(time.monotonic() - began) / 60:.1f} minutes\n")
    return int(any("failed" in cell for row in rows for cell in row))


def _requirement(spark: str) -> str:
    return "pyspark>=4.0,<5" if spark == "newest" else f"pyspark=={spark}"


def _version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def _installed(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _tests(python: Path, name: str, what: str) -> str:
    """Run the tests that a pattern finds; how it went in few words, with a log in the cache."""
    log = CACHE / "matrix" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # A skip is what a user's machine has: with the lowest releases a few tests have no case.
    env = {key: value for key, value in os.environ.items() if key != "CI"}
    env |= {"LAKELOG_CLASS_ARCHIVES": "never", "LAKELOG_EXAMPLES": _EXAMPLES}
    command = [str(python), "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += sorted(str(each.relative_to(REPOSITORY)) for each in REPOSITORY.glob(what))
    # Runs that end at once would stumble over each other where pytest deletes what is old.
    with log.open("w") as out, tempfile.TemporaryDirectory(prefix="m") as folder:
        env["PYTEST_DEBUG_TEMPROOT"] = folder
        try:
            code = subprocess.run(
                command,
                cwd=REPOSITORY,
                env=env,
                stdout=out,
                stderr=out,
                timeout=_LIMIT,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
            out.write(f"ended after {_LIMIT} s\n")
    seconds = time.monotonic() - began
    last = next((line for line in reversed(log.read_text().splitlines()) if line.strip()), "")
    passed = re.search(r"\d+ passed", last)
    if code == 0 and passed:
        return f"{passed[0]}, {seconds:.0f} s"
    sys.stderr.write(f"== {name}: {last} ({log})\n")
    return f"failed: {last.strip('= ')[:60]}"


if __name__ == "__main__":
    sys.exit(main())
