"""`once_per_batch`: a function for `foreachBatch` whose change counts once, by any command."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from lakelog.core import DeltaConf, DeltaLog
from lakelog.core.engine.tables import record_commits
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.session.session import session_conf
from lakelog.spark.streaming.query_checkpoint import running_query

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from pyspark.sql import DataFrame


def once_per_batch(
    table: str | os.PathLike[str],
    function: Callable[[DataFrame, int], object],
    *,
    name: str = "",
    app_id: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """Make a function for `foreachBatch` change its table once for each batch.

        def upsert(batch, batch_id):
            target = DeltaTable.forPath(spark, "/lake/customers").alias("t")
            merge = target.merge(batch.alias("s"), "t.id = s.id")
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

        df.writeStream.foreachBatch(once_per_batch("/lake/customers", upsert)).start()

    The one commit that the function makes to the table (a MERGE, a write, an UPDATE, a DELETE)
    records the batch. Where the table has it already the function is not called, so that a batch
    that Spark tries again after a crash changes nothing. A second commit to the table within one
    batch is refused before it is made. What the function does to other tables is its own affair:
    give each its function, and call them one after the other.

    Args:
        table: the table that it changes, by path, as the function opens it.
        function: takes the rows of a batch and its number.
        name: distinguishes functions that change the same table in one query. It is part of what
            the table records, and so the same after a restart.
        app_id: what the table knows the query by; default: the query's own id, which its
            checkpoint keeps. Over Spark Connect there is no default.

    Returns:
        The function for `foreachBatch`. It raises `DeltaAnalysisError` for a second commit, and
        where nothing says which query runs it.
    """

    @functools.wraps(function)
    def once(frame: DataFrame, batch_id: int) -> None:
        spark = frame.sparkSession
        query = app_id or running_query(spark)
        if query is None:
            raise DeltaAnalysisError(
                "which query this batch belongs to is not known here: give once_per_batch an "
                "app_id, a name of the query's own that no other query has",
                table=str(table),
            )
        key = f"{query}/{name}" if name else query
        log = DeltaLog.for_table(table, DeltaConf.from_mapping(session_conf(spark)))
        # This spares the work. That two drivers do not both write the batch is seen to by the
        # commit, which conflicts with any other that records the same query.
        if log.table_exists() and log.update().txn_version(key) >= batch_id:
            return
        with record_commits(log.table, key, batch_id):
            function(frame, batch_id)

    return once
