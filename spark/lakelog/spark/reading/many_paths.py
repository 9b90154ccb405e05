"""Spark's Parquet reader on many paths, which reach the JVM in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

__all__ = ["parquet_of"]

_SEPARATOR = "\0"
"""No path of a file system has it; a key of an object store may."""
_FEW = 8
"""Making the list in one call takes three."""


def parquet_of(spark: SparkSession, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """What `reader.parquet(*paths)` gives.

    In classic sessions that makes a call of the JVM for each path: for 10,000 of them half the
    time of planning. What stands for it is private to PySpark, so that without it the public method
    is called.

    Args:
        spark: the session of the reader.
        reader: with its schema and options.
        paths: as Hadoop spells them.

    Raises:
        AnalysisException: as the method itself.
    """
    if len(paths) > _FEW:
        array = _in_one_call(spark, paths)
        if array is not None:
            private: Any = reader
            found: DataFrame = private._df(private._jreader.parquet(array))
            return found
    return reader.parquet(*paths)


def _in_one_call(spark: SparkSession, paths: Sequence[str]) -> Any:
    """The paths as an array of the JVM; `None` where it can't be made so."""
    text = _SEPARATOR.join(paths)
    if text.count(_SEPARATOR) >= len(paths):
        return None
    try:
        jvm: Any = spark._jvm
        return jvm.java.util.regex.Pattern.compile(_SEPARATOR).split(text)
    except Exception:  # Connect, or another PySpark's inner life
        return None
