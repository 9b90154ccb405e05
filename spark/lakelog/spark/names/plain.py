"""Spark's own methods, whether or not `enable` has wrapped them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORIGINAL = "lakelog_original"
"""The attribute of a wrapper that holds what it wraps."""


def plain_method(of: Any, name: str) -> Any:
    """A method of an object of PySpark's, as PySpark made it."""
    found = getattr(type(of), name)
    return getattr(found, ORIGINAL, found).__get__(of)


def plain_sql(spark: SparkSession, text: str) -> DataFrame:
    """Run a statement by Spark alone."""
    frame: DataFrame = plain_method(spark, "sql")(text)
    return frame


def plain_table(spark: SparkSession, name: str) -> DataFrame:
    """The rows of a table or view, by Spark alone.

    A Connect session's own `table` calls the `table` of its reader, which `enable` wraps too.
    """
    frame: DataFrame = plain_method(spark.read, "table")(name)
    return frame
