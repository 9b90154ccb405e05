"""`delta.tables` under its own name, for scripts whose imports can't be changed.

import lakelog.spark.compat as compat

compat.install()
from delta.tables import DeltaTable
from delta.exceptions import ConcurrentAppendException
from delta import configure_spark_with_delta_pip
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from lakelog.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaAnalysisError,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

_MADE = "__lakelog_compat__"


def install() -> None:
    """Make `delta` importable in this process, with lakelog's classes under delta-spark's names.

    And its modules `delta.tables`, `delta.exceptions` and `delta.pip_utils`. Calling it again
    changes nothing.

    Raises:
        DeltaAnalysisError: a package `delta` is installed, or a module of that name imported.
    """
    found = sys.modules.get("delta")
    if found is not None and hasattr(found, _MADE):
        return
    try:
        spec = importlib.util.find_spec("delta")
    except ValueError:
        spec = None
    if found is not None or spec is not None:
        where = getattr(found, "__file__", None) or getattr(spec, "origin", None)
        raise DeltaAnalysisError(
            f"there is a package `delta` already, at {where}: uninstall delta-spark to use lakelog "
            "in its place, or import from lakelog.spark",
            module="delta",
        )
    from lakelog.spark.dml.merge_builder import DeltaMergeBuilder
    from lakelog.spark.table.delta_table import DeltaTable
    from lakelog.spark.table.optimization import DeltaOptimizeBuilder
    from lakelog.spark.table.table_builder import DeltaTableBuilder, IdentityGenerator

    modules = {
        "tables": (
            DeltaTable,
            DeltaMergeBuilder,
            DeltaTableBuilder,
            DeltaOptimizeBuilder,
            IdentityGenerator,
        ),
        "exceptions": (
            DeltaConcurrentModificationException,
            ConcurrentWriteException,
            MetadataChangedException,
            ProtocolChangedException,
            ConcurrentAppendException,
            ConcurrentDeleteReadException,
            ConcurrentDeleteDeleteException,
            ConcurrentTransactionException,
        ),
        "pip_utils": (configure_spark_with_delta_pip,),
    }
    package = ModuleType("delta", __doc__)
    package.__path__ = []
    setattr(package, _MADE, True)
    for each in (DeltaTable, configure_spark_with_delta_pip):
        setattr(package, each.__name__, each)
    sys.modules["delta"] = package
    for name, members in modules.items():
        made = ModuleType(f"delta.{name}", __doc__)
        for member in members:
            setattr(made, member.__name__, member)
        setattr(package, name, made)
        sys.modules[made.__name__] = made


def uninstall() -> None:
    """Undo `install`; what scripts have imported stays theirs."""
    if hasattr(sys.modules.get("delta"), _MADE):
        for name in [each for each in sys.modules if each.partition(".")[0] == "delta"]:
            del sys.modules[name]


def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder,
    extra_packages: Sequence[str] | None = None,
) -> SparkSession.Builder:
    """Give back a builder whose sessions are made without Delta's jars, and enabled.

    The confs by which scripts name Delta's catalog and extension, for which a session would look
    in the jars, are taken out. While `install` is in force, `lakelog.spark.enable` is called on the
    session that the builder gives; otherwise that is left to the caller.

    Args:
        spark_session_builder: a builder.
        extra_packages: coordinates of further jars, which are still loaded.

    Raises:
        TypeError: `spark_session_builder` is not a builder, as with delta-spark.
    """
    from pyspark.sql import SparkSession

    if not isinstance(spark_session_builder, SparkSession.Builder):
        raise TypeError(
            "This function must be called with a SparkSession.Builder as the first argument, not "
            f"{type(spark_session_builder)}"
        )
    without_confs_of_the_jars(spark_session_builder)
    if extra_packages:
        spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    if hasattr(sys.modules.get("delta"), _MADE):
        for name in ("getOrCreate", "create"):
            setattr(spark_session_builder, name, _enabling(getattr(spark_session_builder, name)))
    return spark_session_builder


def without_confs_of_the_jars(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Take the confs out of a builder by which a session looks for Delta's classes in its jars.

    Args:
        builder: one that names a jar of Delta's keeps them, as where `spark-submit` named one.
    """
    from lakelog.spark.format.claims import JAR_KEYS, names_delta_spark

    options = builder._options  # the only way to take one back
    given = [options.get(key, "") for key in JAR_KEYS]
    if not any(map(names_delta_spark, (*given, *_submitted_jars(JAR_KEYS)))):
        for key, theirs in _OF_THE_JARS.items():
            if options.get(key) == theirs:
                del options[key]
    return builder


def _submitted_jars(keys: Sequence[str]) -> list[str]:
    """What the command that started this program says of jars."""
    found = [os.environ.get("PYSPARK_SUBMIT_ARGS", "")]
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Started by `spark-submit`: the JVM is there, and has the confs of its command line.
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()
        conf = SparkConf()
        found += [conf.get(key, "") or "" for key in keys]
    return found


def _enabling(make: Callable[[], SparkSession]) -> Callable[[], SparkSession]:
    @functools.wraps(make)
    def made() -> SparkSession:
        from lakelog.spark.format.enable import enable

        spark = make()
        enable(spark)
        return spark

    return made


_OF_THE_JARS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
