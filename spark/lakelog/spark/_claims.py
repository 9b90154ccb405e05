"""Whether a session has delta-spark's jar, which then owns the format `delta`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["delta_is_claimed"]

_CLASS = "org.apache.spark.sql.delta.sources.DeltaDataSource"
_KEYS = (
    "spark.jars",
    "spark.jars.packages",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.extensions",
)
_TRACE = re.compile(r"io\.delta[.:]|org\.apache\.spark\.sql\.delta\.|delta-(?:spark|core)_")


def delta_is_claimed(spark: SparkSession) -> bool:
    """Whether `format("delta")` means delta-spark in a session.

    The confs tell of jars that came by `--packages` or `--jars`; for a jar in Spark's own folder
    Spark is asked to load the class. (Asking for the format itself would start a Python worker to
    look for a Python data source of that name, a second or two.)
    """
    if any(_TRACE.search(str(spark.conf.get(key, ""))) for key in _KEYS):
        return True
    sql = f"SELECT try_reflect('java.lang.Class', 'forName', '{_CLASS}') AS found"
    try:
        row = spark.sql(sql).first()
    except PySparkException:
        # A catalog or a proxy that forbids reflection: nothing says that the jar is there.
        return False
    return row is not None and row.found is not None
