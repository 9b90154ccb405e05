"""Which formats go to lakelog; `delta` does not where a session has delta-spark's jar."""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lakelog.spark.names.plain import ORIGINAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = ("lakelog", "delta")
_DEFAULT_FORMAT = "spark.sql.sources.default"
_CLASS = "org.apache.spark.sql.delta.sources.DeltaDataSource"
JAR_KEYS = ("spark.jars", "spark.jars.packages")
_KEYS = (*JAR_KEYS, "spark.sql.catalog.spark_catalog", "spark.sql.extensions")
_TRACE = re.compile(r"io\.delta[.:]|org\.apache\.spark\.sql\.delta\.|delta-(?:spark|core)_")

_claimed: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()


def names_delta_spark(text: object) -> bool:
    """Whether the value of a conf names delta-spark's jar, its coordinates or a class of it."""
    return _TRACE.search(str(text)) is not None


def delta_is_claimed(spark: SparkSession) -> bool:
    """Whether `format("delta")` means delta-spark in a session.

    The confs list jars that came by `--packages` or `--jars`; for a jar in Spark's own folder
    Spark is asked to load the class. (Asking for the format itself would start a Python worker to
    look for a Python data source of that name, a second or two.)
    """
    if any(names_delta_spark(spark.conf.get(key, "")) for key in _KEYS):
        return True
    sql = f"SELECT try_reflect('java.lang.Class', 'forName', '{_CLASS}') AS found"
    try:
        # By Spark alone: what `enable` has put before it asks whose statement it is.
        original = getattr(spark.sql, ORIGINAL, None)
        row = (spark.sql(sql) if original is None else original(spark, sql)).first()
    except PySparkException:
        # A catalog or a proxy forbids reflection: assume that the jar is not there.
        return False
    return row is not None and row.found is not None


def is_ours(spark: SparkSession, source: str | None) -> bool:
    """Whether a read or write of the format goes to lakelog.

    Args:
        spark: the session.
        source: the format; `None` where none was named, which means the session's default.
    """
    if source is None:
        source = str(spark.conf.get(_DEFAULT_FORMAT, "parquet"))
    name = source.lower()
    if name not in _OURS:
        return False
    if name == "lakelog":
        return True
    if spark not in _claimed:
        _claimed[spark] = delta_is_claimed(spark)
    return not _claimed[spark]


def forget_claims() -> None:
    """Ask each session again."""
    _claimed.clear()
