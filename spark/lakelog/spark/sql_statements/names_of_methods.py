"""Tables and views by their names, for the methods that `enable` wraps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.identifiers import parse
from lakelog.spark.names.plain import plain_method
from lakelog.spark.sql_statements.commands.caching import cache_named, key_of
from lakelog.spark.sql_statements.queries.cached_rows import is_cached, release
from lakelog.spark.sql_statements.queries.query_runner import QueryRunner

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import DataFrame, SparkSession


def named_frame(spark: SparkSession, name: str) -> DataFrame | None:
    """The rows of a Delta table as they are now, or of a view over one.

    Args:
        spark: the session.
        name: as Spark reads it.

    Returns:
        `None` for what Spark reads by itself.

    Raises:
        DeltaError: the table can't be read.
    """
    runner = _runner(spark)
    try:
        parts = parse(name)
    except DeltaAnalysisError:
        return None  # which Spark will refuse
    return runner.named(parts)


def cache_table(spark: SparkSession, name: str, level: StorageLevel | None = None) -> bool:
    """Cache a Delta table, or a view over one, at its first use; `False` for anything else."""
    runner, parts = _runner(spark), parse(name)
    if key_of(spark, runner, parts) is None:
        return False
    cache_named(spark, runner, parts, level)
    return True


def uncache_table(spark: SparkSession, name: str) -> bool:
    """Undo `cache_table`; `False`: it is no Delta table and no view over one."""
    key = key_of(spark, _runner(spark), parse(name))
    if key is not None:
        release(spark, key)
    return key is not None


def is_table_cached(spark: SparkSession, name: str) -> bool | None:
    """Whether a Delta table or a view over one is cached; `None`: it is neither."""
    key = key_of(spark, _runner(spark), parse(name))
    return None if key is None else is_cached(spark, key)


def _runner(spark: SparkSession) -> QueryRunner:
    return QueryRunner(spark, plain_method(spark, "sql"))
