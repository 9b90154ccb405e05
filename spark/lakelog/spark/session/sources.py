"""Python Data Sources of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a source with a session, be it the active one or not.

    Classic Spark looks in the *active* session for a source of that name, and takes the one that
    it finds there for the other session's.

    Raises:
        AnalysisException: the name is one of Spark's own sources, or of a jar's.
    """
    try:
        spark.dataSource.register(source)
    except AnalysisException as exc:
        active = SparkSession.getActiveSession()
        if active is None or "DATA_SOURCE_ALREADY_EXISTS" not in str(exc):
            raise
    else:
        return
    _make_active(spark)
    try:
        spark.dataSource.register(source)
    finally:
        _make_active(active)


def _make_active(spark: SparkSession) -> None:
    # The one public call that does so. It runs nothing.
    spark.createDataFrame([], "none int")
