"""Virtual environments of the tests, kept in the cache: tools that ours must not have beside it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import lakelog
from support.delta_spark import cache_folder, exclusively, run

__all__ = ["OURS", "kept_environment", "lakelog_path"]

OURS = ("pyarrow", "orjson", "sqlglot>=30.24,<31")
"""What lakelog needs, but not lakelog."""


def kept_environment(name: str, *packages: str) -> Path:
    """The Python of an environment, which is made where there is none.

    Args:
        name: of its folder, after `venv-`; another one for other packages.
        packages: as pip takes them.

    Raises:
        PeerUnavailableError: a download failed.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"venv-{name}"
    python, stamp = folder / "bin" / "python", folder / ".complete"
    with exclusively(cache / f"{name}.lock"):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(folder)])
            # The index has PySpark as a source alone; a wheel of it may have been kept.
            wheels = ["--find-links", str(cache / "wheels")]
            run([str(python), "-m", "pip", "install", "--quiet", *wheels, *packages])
            stamp.touch()
    return python


def lakelog_path() -> str:
    """What `PYTHONPATH` has to be for such a Python to import lakelog as it is here."""
    return os.pathsep.join(str(Path(each).parent) for each in lakelog.__path__)
