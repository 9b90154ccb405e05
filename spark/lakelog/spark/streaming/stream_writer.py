"""`lakelog.spark.write_stream(df)`: PySpark's `DataStreamWriter`, committed by lakelog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from lakelog.core import DeltaConf, DeltaLog, create_table
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.governed import lasting
from lakelog.spark.names.placing import place_for
from lakelog.spark.session.given_options import WithColumns, without_path
from lakelog.spark.session.session import session_conf, with_storage
from lakelog.spark.streaming.query_checkpoint import checkpoint_location
from lakelog.spark.streaming.sink import BatchSink, refuse_void
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.writing.clustered import check_clustering
from lakelog.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from lakelog.core.engine.write import SaveMode
    from lakelog.core.schema import StructType

_MODES: dict[str, SaveMode] = {"append": "append", "complete": "overwrite"}
_WITHOUT_BATCHES = ("continuous", "realTime")
_NOT_FOR_BATCHES = ("path", "checkpointlocation", "txnappid", "txnversion", "replacewhere")


class DeltaStreamWriter(WithColumns):
    """Writes a streaming DataFrame to a Delta table, with the methods of `DataStreamWriter`.

        query = (
            lakelog.spark.write_stream(df)
            .option("checkpointLocation", "/lake/_checkpoints/flights")
            .trigger(availableNow=True)
            .start("/lake/flights")
        )

    Each batch is one commit, which records the query's id and the batch's number: a batch that is
    tried again after a crash is written once. A query that delta-spark began goes on where it was.
    A new table is made when the query starts.

    Options: `checkpointLocation`, `mergeSchema`, `overwriteSchema` (with `complete`),
    `userMetadata`, `maxRecordsPerFile`, `compression`, `delta.…` for the properties of a new table,
    `fs.…` and `dfs.…` for settings of the storage for this query alone. `txnAppId` and `txnVersion`
    are ignored, as by Delta: a batch is known by its query.
    """

    _takes = ("this writer writes", "df.writeStream.format")

    def __init__(self, frame: DataFrame) -> None:
        """Nothing happens before `start`."""
        super().__init__()
        self._frame = frame
        self._output_mode = "append"
        self._query_name: str | None = None
        self._trigger: dict[str, Any] = {}

    def outputMode(self, outputMode: str) -> Self:  # noqa: N802, N803  # PySpark's names
        """Set what a batch does: `append` (the default) adds rows, `complete` replaces them all.

        Raises:
            DeltaAnalysisError: `update`, which Delta tables don't have, or no such mode.
        """
        mode = outputMode.strip().lower()
        if mode == "update":
            raise DeltaAnalysisError(
                "[DELTA_UNSUPPORTED_OUTPUT_MODE] Data source delta does not support Update output "
                "mode: use append or complete, or MERGE each batch into the table with "
                "foreachBatch",
                mode=outputMode,
            )
        if mode not in _MODES:
            raise DeltaAnalysisError(
                f"unknown output mode {outputMode!r}: use append or complete", mode=outputMode
            )
        self._output_mode = mode
        return self

    def queryName(self, queryName: str) -> Self:  # noqa: N802, N803  # PySpark's names
        """Set the name of the query."""
        self._query_name = queryName
        return self

    def trigger(self, **trigger: Any) -> Self:
        """Set when a batch begins: `processingTime`, `availableNow` or `once`, as in PySpark.

        Raises:
            DeltaAnalysisError: `continuous` or `realTime`, which have no batches to commit.
        """
        given = {key: value for key, value in trigger.items() if value is not None}
        for key in _WITHOUT_BATCHES:
            if key in given:
                raise DeltaAnalysisError(
                    f"a Delta table can't be written with trigger({key}={given[key]!r}): each "
                    "batch is a commit, and that trigger hands rows over without batches. Use "
                    f"trigger(processingTime={given[key]!r}) or trigger(availableNow=True).",
                    trigger=key,
                )
        self._trigger = given
        return self

    def start(
        self,
        path: str | os.PathLike[str] | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        outputMode: str | None = None,  # noqa: N803  # PySpark's name
        partitionBy: str | list[str] | None = None,  # noqa: N803  # PySpark's name
        queryName: str | None = None,  # noqa: N803  # PySpark's name
        **options: bool | float | int | str | None,
    ) -> StreamingQuery:
        """Start the query.

        Args:
            path: the table, made by the first batch if there is none; default: the option `path`.
            format: see `format`.
            outputMode: see `outputMode`.
            partitionBy: see `partitionBy`.
            queryName: see `queryName`.
            options: see `options`.

        Returns:
            PySpark's handle on the query. An error of a batch ends the query, and is in its
            `exception()`; what had been committed stays.

        Raises:
            DeltaAnalysisError: no path, no checkpoint location, options that can't be read, or a
                column without a type.
        """
        if format is not None:
            self.format(format)
        if outputMode is not None:
            self.outputMode(outputMode)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        self.options(**options)
        spark = self._frame.sparkSession
        given = {key.lower(): value for key, value in self._options.items()}
        target = path or given.get("path")
        if target is None:
            raise DeltaAnalysisError("start() needs the path of the table")
        name = queryName or self._query_name
        checkpoint = checkpoint_location(spark, given, name)
        conf = with_storage(session_conf(spark), self._options)
        table = lasting(target, conf)
        refuse_void(to_delta_schema(self._frame.schema), table)
        wanted = self._wanted(conf)
        # By itself the first batch makes a table, but one without clustering.
        if self._cluster_by and not check_clustering(
            DeltaLog.for_table(table, conf), self._cluster_by
        ):
            self._create(table, to_delta_schema(self._frame.schema), conf)
        sink = BatchSink(table, conf, wanted, checkpoint)
        writer = self._frame.writeStream.outputMode(self._output_mode).foreachBatch(sink)
        if name is not None:
            writer = writer.queryName(name)
        if self._trigger:
            writer = writer.trigger(**self._trigger)
        return writer.option("checkpointLocation", checkpoint).start()

    def toTable(  # noqa: N802  # PySpark's name
        self,
        tableName: str,  # noqa: N803  # PySpark's name
        format: str | None = None,  # noqa: A002  # PySpark's name
        outputMode: str | None = None,  # noqa: N803  # PySpark's name
        partitionBy: str | list[str] | None = None,  # noqa: N803  # PySpark's name
        queryName: str | None = None,  # noqa: N803  # PySpark's name
        **options: bool | float | int | str | None,
    ) -> StreamingQuery:
        """Start the query, into a table by its name; one of Spark's own catalog is made if needed.

        Args:
            tableName: `table`, `database.table`, `spark_catalog.database.table` or
                `catalog.schema.table`. A new table is at the option `path`, or managed.
            format: see `format`.
            outputMode: see `outputMode`.
            partitionBy: see `partitionBy`.
            queryName: see `queryName`.
            options: see `options`.

        Raises:
            DeltaAnalysisError: the name is one of something else, or of a table in another folder
                than `path`; and see `start`.
        """
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        self.options(**options)
        path, self._options = without_path(self._options)
        spark, schema = self._frame.sparkSession, to_delta_schema(self._frame.schema)
        conf = session_conf(spark)
        # What `start` refuses is refused before a table is made.
        texts = {key.lower(): value for key, value in self._options.items()}
        checkpoint_location(spark, texts, queryName or self._query_name)
        self._wanted(conf)
        refuse_void(schema, tableName)
        with place_for(spark, tableName, schema, "create_or_replace", path) as place:
            if not place.exists:
                self._create(place.location, schema, with_storage(conf, self._options))
        return self.start(place.location, format, outputMode, None, queryName)

    def _create(self, location: str, schema: StructType, conf: dict[str, str]) -> None:
        create_table(
            location,
            schema,
            mode="create_if_not_exists",
            partition_by=self._partition_by or (),
            cluster_by=self._cluster_by,
            properties={k: v for k, v in self._options.items() if k.lower().startswith("delta.")},
            conf=conf,
        )

    def _wanted(self, conf: dict[str, str]) -> WriteOptions:
        mode = _MODES[self._output_mode]
        options = {k: v for k, v in self._options.items() if k.lower() not in _NOT_FOR_BATCHES}
        # A batch in mode `complete` replaces all rows, whatever a batch write would.
        options["partitionOverwriteMode"] = "static"
        return WriteOptions.from_options(
            mode, self._partition_by, options, DeltaConf.from_mapping(conf)
        )
