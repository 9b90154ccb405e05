"""Where this machine has the Pythons that lakelog is made for.

python scripts/interpreters.py        # prints a path for each
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def minors() -> list[str]:
    """The minor versions that the package's classifiers name: `3.11`, `3.12`, …"""
    prefix = "Programming Language :: Python :: "
    classifiers = tomllib.loads(PROJECT.read_text())["project"]["classifiers"]
    return [each.removeprefix(prefix) for each in classifiers if each.startswith(prefix)]


def interpreter(minor: str) -> str:
    """An interpreter of that minor version: on the PATH, or of pyenv.

    Raises:
        SystemExit: there is none.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    places = [sys.executable, shutil.which(f"python{minor}")]
    for each in [*places, *sorted(pyenv.glob(f"{minor}.*/bin/python"), reverse=True)]:
        if each and _minor_of(str(each)) == minor:
            return str(each)
    raise SystemExit(
        f"there is no Python {minor}: put python{minor} on the PATH, or name the versions to test "
        f"by PYTHONS='{' '.join(m for m in minors() if m != minor)}'"
    )


def _minor_of(python: str) -> str | None:
    # pyenv's own stand-ins are on the PATH for versions that are not chosen, and fail.
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    for each in sys.argv[1:] or minors():
        sys.stdout.write(f"{each} {interpreter(each)}\n")
