"""Importing the core stays cheap: what is heavy is loaded by what needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pandas", "numpy", "sqlglot", "pyarrow.dataset", "pyarrow.parquet")


def _loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


@pytest.mark.parametrize("package", ["lakelog.core", "lakelog.logstores"])
def test_importing_a_lower_layer_loads_no_engine_and_nothing_heavy(package: str) -> None:
    assert not _loaded(f"import {package}") & set(HEAVY)


def test_opening_a_log_needs_no_engine(tmp_path: object) -> None:
    loaded = _loaded(
        "from lakelog.core import AddFile, DeltaLog, Operation\n"
        f"DeltaLog.for_table({str(tmp_path)!r}).table_exists()"
    )
    assert not loaded & {"pyspark", "pandas", "sqlglot", "pyarrow.dataset"}


def test_the_data_pipeline_is_the_only_layer_that_loads_pyspark() -> None:
    assert "pyspark" not in _loaded("import lakelog.spark"), "only a session's user needs it"
