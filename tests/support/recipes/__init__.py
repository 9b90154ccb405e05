"""The examples that run lakelog within other tools, each in an environment of that tool.

A module of this package runs within its tool, where none of the tests' other modules may be
imported, and prints what it saw as one line of JSON, the last one.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.tools import tool
from support.venvs import OURS, kept_environment, lakelog_path

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "EXAMPLES",
    "airflow_python",
    "dagster_python",
    "great_expectations_python",
    "pandera_python",
    "run_recipe",
    "sqlmesh_python",
]

EXAMPLES = Path(__file__).parents[3] / "examples"
_HERE = Path(__file__).parent


@tool("airflow")
def airflow_python() -> Path:
    """The Python of an environment that has Airflow, and a client of OpenLineage.

    Raises:
        PeerUnavailableError: a download failed.
    """
    return kept_environment("airflow-3.3", "apache-airflow==3.3.*", "openlineage-python", *OURS)


@tool("dagster")
def dagster_python() -> Path:
    """The Python of an environment that has Dagster.

    Raises:
        PeerUnavailableError: a download failed.
    """
    return kept_environment("dagster-1.13", "dagster==1.13.*", *OURS)


@tool("pandera")
def pandera_python() -> Path:
    """The Python of an environment that has pandera, for Polars.

    Raises:
        PeerUnavailableError: a download failed.
    """
    return kept_environment("pandera-0.35", "pandera[polars]==0.35.*", *OURS)


@tool("great_expectations")
def great_expectations_python() -> Path:
    """The Python of an environment that has Great Expectations.

    Raises:
        PeerUnavailableError: a download failed.
    """
    return kept_environment("great-expectations-1.24", "great_expectations==1.24.*", *OURS)


@tool("sqlmesh")
def sqlmesh_python() -> Path:
    """The Python of an environment that has SQLMesh, and DuckDB with its `delta` extension.

    Raises:
        PeerUnavailableError: a download failed.
    """
    duckdb = ("duckdb==1.5.5", "duckdb-extension-delta==1.5.5")
    return kept_environment("sqlmesh-0.236", "sqlmesh==0.236.*", *duckdb)


def run_recipe(
    python: Path, name: str, example: Path, folder: Path, variables: Mapping[str, str]
) -> Any:
    """Run a module of this package, and read what it printed last.

    Args:
        python: the tool's.
        name: of the module.
        example: the folder of the example that it imports.
        folder: where it runs, and finds `lake`.
        variables: of its environment, beside those of ours.
    """
    done = subprocess.run(
        [str(python), str(_HERE / f"{name}.py")],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{lakelog_path()}{os.pathsep}{example}",
            "LAKE": str(folder / "lake"),
            "RETRY_SECONDS": "0",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
