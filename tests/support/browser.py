"""A real browser that opens a page of lakelog's: Chromium by Playwright, judged by axe-core.

All three come from PyPI and npm. Playwright has an environment of its own, so that the tests' needs
none of it; the script beside this module runs there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.servers._service import built, need_program, run_step
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["browser", "look"]

PLAYWRIGHT, CHROMIUM, AXE = "1.55", "147.0", "4.11"
_SCRIPT = Path(__file__).with_name("browser_script.py")
_SECONDS = 120


@tool("browser")
def browser() -> Path:
    """The folder that has Chromium, Playwright and axe-core."""
    return built(f"browser-{PLAYWRIGHT}-{CHROMIUM}-{AXE}", _build)


def _build(folder: Path) -> None:
    npm, node = need_program("npm", "Chromium"), need_program("node", "Chromium")
    run_step([sys.executable, "-m", "venv", str(folder / "venv")], cwd=folder)
    python = str(folder / "venv" / "bin" / "python")
    wanted = f"playwright~={PLAYWRIGHT}"
    run_step([python, "-m", "pip", "install", "--quiet", wanted], cwd=folder)
    options = ["--no-audit", "--no-fund", "--prefix", str(folder)]
    packages = [f"axe-core@~{AXE}", f"@sparticuz/chromium@~{CHROMIUM}"]
    run_step([npm, "install", *options, *packages], cwd=folder)
    packed = folder / "node_modules" / "@sparticuz" / "chromium" / "bin"
    run_step([node, "-e", _UNPACK, str(packed), str(folder)], cwd=folder)
    (folder / "chromium").chmod(0o755)
    # With its libraries and letters, which a bare machine lacks, and what draws without a GPU.
    for name in ("al2023", "fonts", "swiftshader"):
        run_step(["tar", "xf", f"{name}.tar"], cwd=folder)


_UNPACK = """
const [packed, folder] = process.argv.slice(1);
const fs = require("fs");
for (const name of ["chromium", "al2023.tar", "fonts.tar", "swiftshader.tar"]) {
  const data = fs.readFileSync(`${packed}/${name}.br`);
  fs.writeFileSync(`${folder}/${name}`, require("zlib").brotliDecompressSync(data));
}
"""


def look(url: str, ask: Mapping[str, Any]) -> dict[str, Any]:
    """Open a page, do what is asked, and give what was seen.

    Args:
        url: of the page.
        ask: what the script knows: `width`, `dark`, `script`, `sort`, `filter`, `screenshot`,
            `steps`, …
    """
    folder = browser()
    axe = folder / "node_modules" / "axe-core" / "axe.min.js"
    given = {"url": url, "chromium": str(folder / "chromium"), "axe": str(axe), **ask}
    libraries = {"LD_LIBRARY_PATH": str(folder / "lib"), "FONTCONFIG_PATH": str(folder / "fonts")}
    done = subprocess.run(
        [str(folder / "venv" / "bin" / "python"), str(_SCRIPT), json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        env={**os.environ, **libraries},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen
