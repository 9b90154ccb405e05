"""Replay of a log by Spark: for tables of more files than one process should hold.

    checkpoint parts ──► rows, those that the filter keeps ──► left anti join ─┐
                                                                 │ keys        ├──► driver
    commits ──► rows ──► last of each key ───────────────────────┴─────────────┘

A checkpoint is reconciled already, so only the keys of the commits after it are grouped, and the
checkpoint is never shuffled whole. Every row is made, keyed and chosen by the code of the core
(`_replay_tasks`), so the result is the core's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from lakelog.core.engine.log import FILE_SCHEMA, TOMBSTONE_SCHEMA, cast, load_state
from lakelog.core.engine.values import empty_table, pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import keys as store_keys
from lakelog.spark.replay.tasks import BLOCK, IS_KIND, KEY, ROW, CheckpointRows, CommitRows
from lakelog.spark.workers.executor_tasks import rows_on_executors
from lakelog.spark.workers.marked_errors import lacks_pyarrow, unwrap_error
from lakelog.spark.workers.pyfiles import ship

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import DeltaConf
    from lakelog.core.engine.log import FileSelection, Kind, ReplayJob

logger: logging.Logger = logging.getLogger("lakelog")

_MODE = store_keys.REPLAY.name
_MODES = ("auto", "driver", "spark")
_MOST_CHUNKS = 256

_SCHEMAS: Mapping[Kind, pa.Schema] = {"add": FILE_SCHEMA, "remove": TOMBSTONE_SCHEMA}
_VECTOR = (
    "struct<storageType:string,pathOrInlineDv:string,offset:int,sizeInBytes:int,cardinality:bigint>"
)
_TYPES = {
    "string": "string",
    "int64": "bigint",
    "bool": "boolean",
    "map<string, string>": "map<string,string>",
}


def replayer_for(spark: SparkSession, conf: DeltaConf) -> SparkReplayer | None:
    """What replays a table's log, by `spark.lakelog.replay`; `None` for the driver alone.

    Args:
        spark: a session, classic or Connect.
        conf: of the table.

    Raises:
        DeltaAnalysisError: the conf has an unknown mode, or not a number of bytes.
    """
    mode = conf.read(store_keys.REPLAY).strip().lower()
    if mode not in _MODES:
        raise DeltaAnalysisError(
            f"the conf {_MODE} must be one of {', '.join(_MODES)}, not {mode!r}",
            key=_MODE,
            value=mode,
        )
    least = conf.read(store_keys.REPLAY_LEAST)
    if mode == "driver":
        return None
    return SparkReplayer(spark, 0 if mode == "spark" else least, must=mode == "spark")


class SparkReplayer:
    """A `lakelog.core.state.replayer.Replayer`."""

    def __init__(self, spark: SparkSession, least_bytes: int, *, must: bool) -> None:
        """Keep the settings; Spark is not called yet.

        Args:
            spark: a session, classic or Connect.
            least_bytes: logs that are smaller stay with the driver.
            must: whether to fail where Spark can't do it, rather than leave it to the driver.
        """
        self._spark = spark
        self._least_bytes = least_bytes
        self._must = must

    def takes(self, job: ReplayJob) -> bool:
        """Whether the log is large enough, and executors can read it.

        Raises:
            DeltaAnalysisError: it must be Spark, and the log is in the driver's memory.
        """
        if job.store.filesystem.type_name.endswith("memory"):
            if self._must:
                raise DeltaAnalysisError(
                    f"{job.segment.table} is in the memory of this process, where executors can't "
                    f"read it, so {_MODE}=spark does not work. Set it to auto or driver",
                    table=job.segment.table,
                    key=_MODE,
                )
            return False
        return job.size_in_bytes >= self._least_bytes

    def replay(self, job: ReplayJob, kind: Kind, selection: FileSelection | None) -> pa.Table:
        """See `lakelog.core.state.replayer.Replayer.replay`.

        Raises:
            DeltaAnalysisError: it must be Spark, and the executors' Python lacks pyarrow.
        """
        try:
            return self._replay(job, kind, selection)
        except Exception as exc:
            original = unwrap_error(exc)
            if original is not None:
                raise original from exc
            if not lacks_pyarrow(exc):
                raise
            return self._by_driver(job, kind, selection, exc)

    def _replay(self, job: ReplayJob, kind: Kind, selection: FileSelection | None) -> pa.Table:
        ship(self._spark)
        schema = _SCHEMAS[kind]
        checkpoint = CheckpointRows.from_job(job, kind, schema, selection)
        commits = CommitRows.from_job(job, kind, schema, selection)
        if checkpoint is None:
            if commits is None:
                return empty_table(schema)
            return _conformed(self._latest(commits, schema).toArrow(), schema)
        base = self._frame(checkpoint, f"{KEY} string, {_ddl(schema)}")
        if commits is None:
            return self._collected(job, kind, base, schema)
        latest = self._latest(commits, schema, with_key=True).persist()
        try:
            # Counting also shows Spark its size, so that Spark chooses a fitting join.
            if latest.count():
                kept = base.join(latest.select(KEY), KEY, "left_anti")
                found = latest.where(IS_KIND).select(KEY, *schema.names)
                base = kept.select(KEY, *schema.names).union(found)
            return self._collected(job, kind, base, schema)
        finally:
            latest.unpersist()

    def _frame(self, tasks: CheckpointRows | CommitRows, columns: str) -> DataFrame:
        numbers = self._spark.range(0, tasks.count, 1, tasks.count)
        return rows_on_executors(numbers, tasks, columns)

    def _latest(
        self, commits: CommitRows, schema: pa.Schema, *, with_key: bool = False
    ) -> DataFrame:
        """The last action of each key; without keys only those of the kind."""
        columns = f"{KEY} string, {BLOCK} bigint, {ROW} bigint, {IS_KIND} boolean, {_ddl(schema)}"
        names = [IS_KIND, *schema.names]
        last = sf.max_by(sf.struct(*names), sf.struct(BLOCK, ROW))
        found = self._frame(commits, columns).groupBy(KEY).agg(last.alias("last"))
        flat = found.select(KEY, *(sf.col(f"last.{name}").alias(name) for name in names))
        return flat if with_key else flat.where(IS_KIND).select(*schema.names)

    def _collected(self, job: ReplayJob, kind: Kind, df: DataFrame, schema: pa.Schema) -> pa.Table:
        """Bring the rows here; the tasks' counts among them must add up to the expected number."""
        rows = df.select(*schema.names).toArrow()
        counts = rows["path"].is_null()
        if kind == "add":
            read = sum(rows["size"].filter(counts).to_pylist())
            assert job.checkpoint is not None  # otherwise nothing was counted
            job.checkpoint.check_count(read)
        return _conformed(rows.filter(pc.invert(counts)), schema)

    def _by_driver(
        self, job: ReplayJob, kind: Kind, selection: FileSelection | None, exc: Exception
    ) -> pa.Table:
        table = job.segment.table
        if self._must:
            raise DeltaAnalysisError(
                f"{_MODE} is spark, but the executors' Python has no pyarrow to replay the log of "
                f"{table} with. Install it there, or set {_MODE} to auto or driver",
                table=table,
                key=_MODE,
            ) from exc
        logger.warning(
            "the executors' Python has no pyarrow, so the driver replays the log of %s, of %d "
            "bytes. Set %s=driver to choose this without the warning",
            table,
            job.size_in_bytes,
            _MODE,
        )
        files = load_state(job.store, table, job.segment.version).files
        if selection is not None:
            return files.selected_by(selection)
        return files.live if kind == "add" else files.tombstones


def _ddl(schema: pa.Schema) -> str:
    """The columns as Spark DDL."""
    found = []
    for field in schema:
        kind = _VECTOR if field.name == "deletion_vector" else _TYPES[str(field.type)]
        found.append(f"{field.name} {kind}")
    return ", ".join(found)


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the exact types of a schema: Spark names the fields within maps differently."""
    batches = [
        pa.record_batch(
            [cast(batch.column(field.name), field.type) for field in schema], schema=schema
        )
        for batch in table.to_batches()
    ]
    found = pa.Table.from_batches(batches, schema=schema)
    return found.combine_chunks() if len(batches) > _MOST_CHUNKS else found
