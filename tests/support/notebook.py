"""A real kernel that runs cells: ipykernel by nbclient, and what nbconvert makes of the notebook.

They come from PyPI, into an environment of their own, which has neither ipywidgets nor a notebook's
server. lakelog and what it needs are those of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.servers._service import built, run_step
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["notebook_tools", "run_cells"]

IPYKERNEL, NBCONVERT = "7.4", "7.17"
_SCRIPT = Path(__file__).with_name("notebook_script.py")
_SECONDS = 200


@tool("notebook")
def notebook_tools() -> Path:
    """The Python that has ipykernel and nbconvert."""
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = built(f"notebook-{minor}-{IPYKERNEL}-{NBCONVERT}", _build)
    return folder / "venv" / "bin" / "python"


def _build(folder: Path) -> None:
    run_step([sys.executable, "-m", "venv", str(folder / "venv")], cwd=folder)
    python = str(folder / "venv" / "bin" / "python")
    wanted = [f"ipykernel~={IPYKERNEL}", f"nbconvert~={NBCONVERT}"]
    run_step([python, "-m", "pip", "install", "--quiet", *wanted], cwd=folder)


def run_cells(
    cells: Sequence[str],
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    pages: Mapping[str, Path] | None = None,
) -> list[list[dict[str, Any]]]:
    """Run cells in one kernel; a cell that fails ends none.

    Args:
        cells: their code.
        folder: the kernel's.
        env: what its environment has beside ours.
        pages: `light` and `dark` -> where the notebook is left as HTML.

    Returns:
        The outputs of each cell, as the notebook's format has them.
    """
    given = {
        "cells": list(cells),
        "pages": {name: str(path) for name, path in (pages or {}).items()},
        "seconds": _SECONDS,
    }
    more = {
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
        **(env or {}),
    }
    left = ("VSCODE_PID", "DATABRICKS_RUNTIME_VERSION")
    ours = {name: value for name, value in os.environ.items() if name not in left}
    done = subprocess.run(
        [str(notebook_tools()), str(_SCRIPT)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        cwd=folder,
        env=ours | more,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found
