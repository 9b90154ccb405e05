"""Run dbt's own tests of adapters on lakelog, and compare with what is known: `make check-dbt`.

    cd tests && ../.venv/bin/python -m support.dbt_judge [-k Snapshot]

Fails where a test fails that is not in `exceptions.toml`, and where one passes that is in it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from lakelog.spark import on_start
from support.dbt_tool import dbt_environment, dbt_python

_HERE = Path(__file__).parent
_ENABLED = str(Path(on_start.__file__ or "").parent)


def main() -> int:
    """Print what differs; 1 if anything does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-k", dest="names", default="", help="as pytest's: some of them")
    options = parser.parse_args()
    known: dict[str, str] = {}
    for reason, names in tomllib.loads((_HERE / "exceptions.toml").read_text()).items():
        known |= dict.fromkeys(names, reason)
    failures, passed, skipped = _run(options.names)
    failed = failures.keys()
    new = sorted(failed - known.keys())
    gone = sorted(passed & known.keys())
    for name in new:
        sys.stdout.write(f"FAILED, and no exception says why: {name}: {failures[name]}\n")
    for name in gone:
        sys.stdout.write(f"PASSED, though exceptions.toml has it ({known[name]}): {name}\n")
    sys.stdout.write(
        f"== {len(passed)} passed, {len(failed & known.keys())} failed as known, "
        f"{len(skipped)} skipped by dbt, {len(new) + len(gone)} otherwise than known ==\n"
    )
    return int(bool(new or gone or not passed))


def _run(names: str) -> tuple[dict[str, str], set[str], set[str]]:
    """Which tests failed, and what they say; which passed, and which were skipped."""
    python = dbt_python()
    environment = dict(dbt_environment(python))
    environment["PYTHONPATH"] = f"{_ENABLED}:{environment['PYTHONPATH']}"
    with tempfile.TemporaryDirectory() as folder:
        # The metastore, the warehouse, dbt's logs and the seeds that tests write are then there.
        cases = shutil.copy(_HERE / "cases.py", folder)
        report = Path(folder, "report.xml")
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
        command += ["-p", "dbt.tests.fixtures.project", "--import-mode=importlib"]
        command += [f"--rootdir={folder}", f"--confcutdir={folder}", f"--basetemp={folder}/tmp"]
        command += [f"--junitxml={report}", "-k", names, cases]
        subprocess.run(command, cwd=folder, env=environment, check=False)
        tests = list(ElementTree.parse(report).iter("testcase"))
    failures = {
        _name(test): (found.get("message") or "").partition("\n")[0]
        for test in tests
        for found in (*test.findall("failure"), *test.findall("error"))
    }
    skipped = {_name(test) for test in tests if test.find("skipped") is not None}
    return failures, {_name(test) for test in tests} - failures.keys() - skipped, skipped


def _name(test: ElementTree.Element) -> str:
    family = (test.get("classname") or "").rpartition(".")[2]
    return f"{family}::{test.get('name')}"


if __name__ == "__main__":
    sys.exit(main())
