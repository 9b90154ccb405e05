"""`register`: make `format("lakelog")` known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from lakelog.core.engine.commit import traceparent
from lakelog.core.engine.tables import travelling_conf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.format.claims import is_ours
from lakelog.spark.format.data_source import LakelogSource
from lakelog.spark.names.provider import is_for_entry, note_accepted
from lakelog.spark.session.session import is_connect, session_conf
from lakelog.spark.session.sources import register_source
from lakelog.spark.workers.pyfiles import ship, ship_to_streams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession, *, conf_keys: Sequence[str] = ()) -> None:
    """Make `format("lakelog")` a Python Data Source of a session.

    And `format("delta")`, where the session does not have delta-spark's jar.

    For SQL (`CREATE TEMPORARY VIEW … USING lakelog OPTIONS (path '…')`, `INSERT INTO` it) and for
    clients that can't reach the storage themselves. Where the calling process can,
    `lakelog.spark.read` and `write` are faster and can do more: docs/spark.md has the list.

    lakelog itself travels to the workers. So do the keys of the session's conf that a table or
    one of lakelog's stores reads, storage credentials among them, as they are now: call this
    again after changing one. No other key leaves this process: docs/spark.md has the list. On
    Spark 4.1 and later it switches filter pushdown for Python sources on, so that files are
    skipped.

    Args:
        spark: a session, classic or Connect.
        conf_keys: further keys that travel, or what they begin with, up to a dot
            (`spark.mystore.`): those that a LogStore of your own reads.

    Raises:
        DeltaAnalysisError: `conf_keys` is a string, or holds an empty one, which would be all keys.
    """
    also = _checked(conf_keys)
    ship(spark)
    if not is_connect(spark):
        ship_to_streams(spark.sparkContext)
    filters = hasattr(DataSourceReader, "pushFilters")
    if filters:
        spark.conf.set(_PUSHDOWN, "true")
    conf = travelling_conf(session_conf(spark), also=also)
    # A class made here is pickled by value, with everything that it holds.
    members = {
        "conf": conf,
        "filters": filters,
        "traceparent": traceparent(conf),
        "__doc__": LakelogSource.__doc__,
    }
    made = type("RegisteredLakelogSource", (LakelogSource,), members)
    register_source(spark, made)
    if is_ours(spark, "delta"):
        # The format of named tables, which views name together with the path.
        named = {"name": classmethod(lambda _: "delta"), "schema": _schema_of_named}
        register_source(spark, type("RegisteredDeltaSource", (made,), named))
        note_accepted(spark)


def _schema_of_named(source: LakelogSource) -> StructType:
    """Of a table; of none where it is for an entry in the catalog, as delta-spark's have none."""
    return StructType() if is_for_entry(source.options) else LakelogSource.schema(source)


def _checked(conf_keys: Sequence[str]) -> tuple[str, ...]:
    if isinstance(conf_keys, str) or not all(each.strip(".") for each in conf_keys):
        raise DeltaAnalysisError(
            f"conf_keys must be a list of keys or of prefixes, not {conf_keys!r}"
        )
    return tuple(conf_keys)
