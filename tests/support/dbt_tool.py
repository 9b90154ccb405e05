"""dbt with its adapter for Spark and the tests of adapters, in a virtual environment of its own."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import lakelog
from support.delta_spark import cache_folder, exclusively, run
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["dbt_environment", "dbt_python"]

# From 1.12 on dbt-core needs a package that is fetched from GitHub when it is installed.
_DBT = ("dbt-core>=1.11,<1.12", "dbt-spark>=1.11,<1.12", "dbt-tests-adapter>=1.20,<1.21")
_OURS = ("pyspark>=4,<5", "pandas>=2.2,<3", "pyarrow", "orjson", "sqlglot>=30.24,<31", "rich")


@tool("dbt")
def dbt_python() -> Path:
    """The Python of an environment that has dbt, and what lakelog needs but not lakelog.

    Raises:
        PeerUnavailableError: a download failed.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / "venv-dbt-1.11"
    python, stamp = folder / "bin" / "python", folder / ".complete"
    with exclusively(cache / "dbt.lock"):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(folder)])
            # The index has PySpark as a source alone; a wheel of it may have been kept.
            pip = [str(python), "-m", "pip", "install", "--quiet", "--find-links"]
            run([*pip, str(cache / "wheels"), *_DBT, *_OURS, "pytest>=9,<9.2"])
            stamp.touch()
    return python


def dbt_environment(python: Path) -> Mapping[str, str]:
    """Variables of a process in which lakelog can be imported, and Spark finds its Python.

    Args:
        python: `dbt_python`.
    """
    return os.environ | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(str(Path(each).parent) for each in lakelog.__path__),
        "PYSPARK_PYTHON": str(python),
        # Not long enough for more to be worth it.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
