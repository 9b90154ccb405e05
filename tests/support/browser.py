"""A real browser that opens a page of lakelog's: Chromium by Playwright, judged by axe-core.

Playwright has an environment of its own, so that the tests' needs none of it; the script beside
this module runs there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.servers._service import ServerUnavailableError, built, need_program, run_step
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["browser", "look"]

PLAYWRIGHT, AXE = "1.55", "4.11"
_SCRIPT = Path(__file__).with_name("browser_script.py")
_SECONDS = 120


@tool("browser")
def browser() -> Path:
    """The folder that has Playwright and axe-core; Chromium is on the PATH afterwards."""
    _chromium()
    return built(f"browser-{PLAYWRIGHT}-{AXE}", _build)


def _build(folder: Path) -> None:
    npm = need_program("npm", "axe-core")
    run_step([sys.executable, "-m", "venv", str(folder / "venv")], cwd=folder)
    python = str(folder / "venv" / "bin" / "python")
    wanted = f"playwright~={PLAYWRIGHT}"
    run_step([python, "-m", "pip", "install", "--quiet", wanted], cwd=folder)
    options = ["--no-audit", "--no-fund", "--prefix", str(folder)]
    run_step([npm, "install", *options, f"axe-core@~{AXE}"], cwd=folder)


def _chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run_step(["apt-get", "update", "-qq"], cwd=Path("/"), env=quiet)
        install = ["apt-get", "install", "-qq", "--no-install-recommends", "-y", "chromium"]
        run_step(install, cwd=Path("/"), env=quiet)
        found = shutil.which("chromium")
    if found is None:
        raise ServerUnavailableError("no Chromium on the PATH: apt install chromium")
    return found


def look(url: str, ask: Mapping[str, Any]) -> dict[str, Any]:
    """Open a page, do what is asked, and give what was seen.

    Args:
        url: of the page.
        ask: what the script knows: `width`, `dark`, `script`, `sort`, `filter`, `screenshot`, …
    """
    folder = browser()
    given = {"url": url, "chromium": _chromium(), "axe": str(_axe(folder)), **ask}
    done = subprocess.run(
        [str(folder / "venv" / "bin" / "python"), str(_SCRIPT), json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def _axe(folder: Path) -> Path:
    return folder / "node_modules" / "axe-core" / "axe.min.js"
