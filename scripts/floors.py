"""The lowest release of each package that lakelog asks for, and which ones a run had.

    python scripts/floors.py                       # constraints for pip: name==lowest
    python scripts/floors.py --table lowest=PYTHON highest=PYTHON

The packages are those of `dependencies` and of every extra in pyproject.toml; tools of the tests
are none of a user's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<floor>[\d.]+(?:b\d+)?)")


def floors() -> dict[str, tuple[str, str]]:
    """Of each package its lowest release, and what it is for."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    asked = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, tuple[str, str]] = {}
    for extra, requirements in asked.items():
        for each in requirements:
            if each.startswith("lakelog["):
                continue
            match = _REQUIREMENT.match(each)
            if match is None:
                raise SystemExit(f"{PROJECT.name}: {each!r} has no lowest release (name>=1.2)")
            found[match["name"]] = (match["floor"], extra or "always")
    return found


def installed(python: str) -> dict[str, str]:
    """The releases of all packages in the environment of an interpreter."""
    done = subprocess.run(
        [python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        check=True,
        capture_output=True,
        text=True,
    )
    return {each["name"].lower(): each["version"] for each in json.loads(done.stdout)}


def table(runs: dict[str, str]) -> list[str]:
    """A row for each package: what it is for, its floor, and what each run had."""
    had = {name: installed(python) for name, python in runs.items()}
    rows = [("package", "for", "floor", *runs)]
    for name, (floor, extra) in sorted(floors().items()):
        rows.append((name, extra, floor, *(each.get(name, "missing") for each in had.values())))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        lines = table(dict(each.split("=", 1) for each in sys.argv[2:]))
    else:
        lines = [f"{name}=={floor}" for name, (floor, _) in floors().items()]
    sys.stdout.write("\n".join([*lines, ""]))
