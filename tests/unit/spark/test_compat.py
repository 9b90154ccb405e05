from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from lakelog.core import errors
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import DeltaTable, compat

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    compat.uninstall()


def test_imports_of_delta_spark_find_lakelog() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("delta.tables")
    compat.install()
    compat.install()
    tables = importlib.import_module("delta.tables")
    assert tables.DeltaTable is DeltaTable
    for name in ("DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTableBuilder"):
        assert getattr(tables, name).__module__.startswith("lakelog.spark.")
    assert importlib.import_module("delta").DeltaTable is DeltaTable
    theirs = importlib.import_module("delta.exceptions")
    for name in (
        *("DeltaConcurrentModificationException", "ConcurrentWriteException"),
        *("MetadataChangedException", "ProtocolChangedException", "ConcurrentAppendException"),
        *("ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException"),
        "ConcurrentTransactionException",
    ):
        assert getattr(theirs, name) is getattr(errors, name)
    utils = importlib.import_module("delta.pip_utils")
    assert utils.configure_spark_with_delta_pip is compat.configure_spark_with_delta_pip
    compat.uninstall()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("delta.tables")


def test_the_real_package_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "delta", ModuleType("delta"))
    with pytest.raises(DeltaAnalysisError, match="package `delta` already"):
        compat.install()
    compat.uninstall()
    assert "delta" in sys.modules


def test_a_builder_loses_the_confs_that_need_the_jars() -> None:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.Builder()
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.x", "y")
    )
    assert compat.configure_spark_with_delta_pip(builder, ["a:b:1", "c:d:2"]) is builder
    assert builder._options == {"spark.x": "y", "spark.jars.packages": "a:b:1,c:d:2"}
    with pytest.raises(TypeError, match=r"SparkSession\.Builder"):
        compat.configure_spark_with_delta_pip(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("--packages io.delta:delta-spark_2.13:4.0.0 pyspark-shell", True),
        ("--jars /opt/jars/delta-spark_2.13-4.0.0.jar pyspark-shell", True),
        ("--jars /home/delta/udfs.jar pyspark-shell", False),
        ("pyspark-shell", False),
    ],
)
def test_confs_of_the_jar_stay_where_the_jar_is(
    arguments: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    extension = "io.delta.sql.DeltaSparkSessionExtension"
    builder = SparkSession.Builder().config("spark.sql.extensions", extension)
    found = compat.without_confs_of_the_jars(builder)._options
    assert ("spark.sql.extensions" in found) is kept
