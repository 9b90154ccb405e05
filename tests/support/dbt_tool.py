"""dbt with its adapter for Spark and the tests of adapters, in a virtual environment of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from support.tools import tool
from support.venvs import OURS, kept_environment, lakelog_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["dbt_environment", "dbt_python"]

# From 1.12 on dbt-core needs a package that is fetched from GitHub when it is installed.
_DBT = ("dbt-core>=1.11,<1.12", "dbt-spark>=1.11,<1.12", "dbt-tests-adapter>=1.20,<1.21")


@tool("dbt")
def dbt_python() -> Path:
    """The Python of an environment that has dbt, and what lakelog needs but not lakelog.

    Raises:
        PeerUnavailableError: a download failed.
    """
    others = ("pyspark>=4,<5", "pandas>=2.2,<3", "rich", "pytest>=9,<9.2")
    return kept_environment("dbt-1.11", *_DBT, *OURS, *others)


def dbt_environment(python: Path) -> Mapping[str, str]:
    """Variables of a process in which lakelog can be imported, and Spark finds its Python.

    Args:
        python: `dbt_python`.
    """
    return os.environ | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": lakelog_path(),
        "PYSPARK_PYTHON": str(python),
        # Not long enough for more to be worth it.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
