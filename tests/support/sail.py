"""Sail, a Spark Connect server without a JVM, in a virtual environment of its own.

It takes clients of PySpark up to 4.1, and PySpark's pure client has no JVM either.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from support.delta_spark import cache_folder, exclusively, run
from support.tools import tool

if TYPE_CHECKING:
    from pathlib import Path

SAIL = "0.7.2"
_PACKAGES = (f"pysail=={SAIL}", "pyspark-client==4.1.*", "pandas<3", "pyarrow", "orjson")


@tool("sail")
def sail_python() -> Path:
    """The Python of an environment that has Sail and a client of it.

    Raises:
        PeerUnavailableError: a download failed.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"venv-sail-{SAIL}"
    python, stamp = folder / "bin" / "python", folder / ".complete"
    with exclusively(cache / "sail.lock"):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(folder)])
            run([str(python), "-m", "pip", "install", "--quiet", *_PACKAGES, "sqlglot>=30.24,<31"])
            stamp.touch()
    return python
