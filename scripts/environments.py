"""Virtual environments by uv, which links what it has unpacked once: one more costs seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("LAKELOG_CACHE", Path(__file__).parents[1] / ".cache")).resolve()
_WHEELS = CACHE / "wheels"
_UV = Path(sys.executable).with_name("uv")


def keep_pyspark(requirement: str) -> Path:
    """Have a wheel of PySpark, which an index has as a source alone: 450 MB for each environment.

    Args:
        requirement: which one, as `pyspark==4.1.*`; the newest of those.

    Returns:
        The wheel.

    Raises:
        subprocess.CalledProcessError: pip failed; its output says why.
    """
    _WHEELS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_WHEELS) as folder:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
        subprocess.run([*pip, "--find-links", str(_WHEELS), requirement], check=True)
        (made,) = Path(folder).iterdir()
        kept = _WHEELS / made.name
        # uv unpacks a file again whose time is another one.
        return kept if kept.exists() else made.replace(kept)


def environment(folder: Path, python: str, *arguments: str) -> Path:
    """Make a virtual environment, or bring it to what is asked for.

    Args:
        folder: where it is or will be.
        python: the interpreter to make it of.
        arguments: of `uv pip install`.

    Returns:
        Its interpreter.

    Raises:
        subprocess.CalledProcessError: uv failed; its output says why.
    """
    own = folder / "bin" / "python"
    if not own.exists():
        _uv("venv", "--quiet", "--python", python, str(folder))
    _WHEELS.mkdir(parents=True, exist_ok=True)
    found = ("--find-links", str(_WHEELS))
    _uv("pip", "install", "--quiet", "--python", str(own), *found, *arguments)
    return own


def _uv(*arguments: str) -> None:
    env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    # Links reach no other file system than that of the environments.
    env.setdefault("UV_CACHE_DIR", str(CACHE / "uv"))
    subprocess.run([str(_UV), *arguments], env=env, check=True)
