"""The function that a query calls with each batch, to write it to the table."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core import DeltaConf
from lakelog.core.engine.commit import BATCH, observing, traceparent
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores.logins import without_logins
from lakelog.spark.names.governed import keys_of_name
from lakelog.spark.replay.logs import opened_log
from lakelog.spark.streaming.query_checkpoint import query_id, streamed_tables
from lakelog.spark.types.spark_types import to_delta_schema, without_void
from lakelog.spark.writing.save import StreamBatch, save_batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from lakelog.core import DeltaLog
    from lakelog.core.actions import AddFile
    from lakelog.core.schema import StructType
    from lakelog.spark.writing.options import WriteOptions

_logger = logging.getLogger("lakelog")

_FEW_ROWS = 10_000
_FEW_BYTES = 8 << 20


class BatchSink:
    """Writes the batches of one query; each of them is one commit, however often it is tried.

    A commit records the query's id and the number of the batch (PROTOCOL.md, "Transaction
    Identifiers"), as delta-spark's do, so that either client knows what the other has written.

    Over Spark Connect the function travels to the server, with its settings and without its log.
    """

    def __init__(
        self,
        path: str,
        conf: Mapping[str, str],
        options: WriteOptions,
        checkpoint: str,
    ) -> None:
        """Nothing is read before the first batch.

        Args:
            path: the table.
            conf: the session's, when the query was started.
            options: mode `overwrite` where each batch replaces the table's rows.
            checkpoint: the query's checkpoint location.
        """
        self._path = path
        self._conf = dict(conf)
        self._options = options
        self._checkpoint = checkpoint
        self._log: DeltaLog | None = None
        self._query_id: str | None = None
        self._streamed: frozenset[str] = frozenset()
        self._last_was_small = False
        self._started_by = traceparent(conf)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what belongs to this process, and logins but for the table's own catalog."""
        own: dict[str, Any] = {
            "_conf": without_logins(self._conf, keys_of_name(self._path, self._conf)),
            "_log": None,
            "_query_id": None,
            "_streamed": frozenset(),
            "_last_was_small": False,
        }
        return {**self.__dict__, **own}

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write a batch.

        Raises:
            DeltaError: it can't be written. The table stays as it was, and the query ends.
        """
        log = self._open(frame)
        refuse_void(to_delta_schema(frame.schema), log.table)
        if self._query_id is None:
            # Once: neither the query nor what it reads changes before it is started again.
            self._query_id = query_id(frame.sparkSession, self._checkpoint)
            self._streamed = streamed_tables(frame.sparkSession, self._checkpoint, batch_id)
            self._warn_of_another(log, self._query_id, batch_id)
        complete = self._options.mode == "overwrite"
        batch = StreamBatch(
            self._query_id,
            batch_id,
            "Complete" if complete else "Append",
            self._last_was_small,
            self._streamed,
        )
        options = replace(self._options, batch=(self._query_id, batch_id))
        adds = observing(
            log.conf,
            BATCH,
            log.table,
            lambda _: save_batch(frame, log, options, batch),
            link=self._started_by,
            query_id=self._query_id,
            batch=batch_id,
        )
        if adds is None:
            _logger.info(
                "%s has batch %d of the query %s already: skipped",
                log.table,
                batch_id,
                self._query_id,
            )
            return
        self._last_was_small = _is_small(adds)

    def _warn_of_another(self, log: DeltaLog, query: str, batch_id: int) -> None:
        """Warn where a query goes on in a table that has none of its earlier batches."""
        if batch_id == 0 or (log.table_exists() and log.update().txn_version(query) >= 0):
            return
        # Not an error: the table may have been made again on purpose.
        _logger.warning(
            "%s has none of the batches before %d of the query %s, which the checkpoint %s has as "
            "done: their rows are in another table, or in one that was here before. To have them "
            "in this one, start the query with another checkpointLocation.",
            log.table,
            batch_id,
            query,
            self._checkpoint,
        )

    def _open(self, frame: DataFrame) -> DeltaLog:
        if self._log is None:
            conf = DeltaConf.from_mapping(self._conf)
            self._log = opened_log(frame.sparkSession, self._path, conf, makes=True)
        return self._log


def refuse_void(schema: StructType, table: str) -> None:
    """Refuse columns of the type void, which no batch can give a type later.

    Raises:
        DeltaAnalysisError: names the columns.
    """
    kept = set(without_void(schema).names)
    void = [each.name for each in schema if each.name not in kept]
    if void:
        raise DeltaAnalysisError(
            "[DELTA_NULL_SCHEMA_IN_STREAMING_WRITE] Delta doesn't accept NullTypes in the schema "
            f"for streaming writes: {', '.join(void)} of the rows for {table}. Cast to the type "
            "that the values would have, or drop the column.",
            table=table,
            columns=void,
        )


def _is_small(adds: Sequence[AddFile]) -> bool:
    """Whether the next batch is likely to be cheaper to fetch than to give to a job."""
    rows = [add.num_records for add in adds]
    if any(count is None for count in rows):
        return False
    return sum(count or 0 for count in rows) <= _FEW_ROWS and (
        sum(add.size for add in adds) <= _FEW_BYTES
    )
