"""`register`: make `format("lakelog")` known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

from lakelog.spark._datasource import LakelogSource
from lakelog.spark._pyfiles import ship
from lakelog.spark._session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make `format("lakelog")` a Python Data Source of a session.

    For SQL (`CREATE TEMPORARY VIEW … USING lakelog OPTIONS (path '…')`, `INSERT INTO` it) and for
    clients that can't reach the storage themselves. Where the calling process can,
    `lakelog.spark.read` and `write` are faster and can do more: docs/spark.md has the list.

    lakelog itself travels to the workers. The session's conf does too, as it is now: call this
    again after changing it. On Spark 4.1 and later it switches filter pushdown for Python
    sources on, so that files are skipped.

    Args:
        spark: a session, classic or Connect.
    """
    ship(spark)
    filters = hasattr(DataSourceReader, "pushFilters")
    if filters:
        spark.conf.set(_PUSHDOWN, "true")
    # A class made here is pickled by value, with what it holds.
    members = {"conf": session_conf(spark), "filters": filters, "__doc__": LakelogSource.__doc__}
    spark.dataSource.register(type("RegisteredLakelogSource", (LakelogSource,), members))
