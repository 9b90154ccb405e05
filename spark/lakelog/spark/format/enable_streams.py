"""What `enable` does to PySpark's `DataStreamReader` and `DataStreamWriter`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from lakelog.spark.format.claims import is_ours
from lakelog.spark.format.enable_names import frame_of, reader_methods, refuse_format
from lakelog.spark.format.our_names import is_our_name
from lakelog.spark.format.requests import (
    Note,
    Request,
    note_cluster_by,
    note_format,
    note_option,
    note_options,
    note_partition_by,
    noting,
    request_of,
)
from lakelog.spark.format.stream_reader import DeltaStreamReader
from lakelog.spark.names.lookup import forget
from lakelog.spark.streaming.stream_writer import DeltaStreamWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelog.spark.format.requests import Wrap


def stream_classes(spark: SparkSession) -> tuple[Any, Any]:
    """PySpark's reader and writer for sessions of this kind."""
    reader = type(spark.readStream)
    return reader, sys.modules[reader.__module__].DataStreamWriter


def _note_output_mode(request: Request, outputMode: str) -> None:  # noqa: N803  # PySpark's name
    request.mode = outputMode


def _note_query_name(request: Request, queryName: str) -> None:  # noqa: N803  # PySpark's name
    request.query_name = queryName


def _note_trigger(request: Request, **trigger: Any) -> None:
    request.trigger = trigger


def _note_function(request: Request, *_: Any, **__: Any) -> None:
    # Spark makes a function the query's sink in place of the format that was named before.
    request.format = "foreachBatch"


_NOTES: dict[str, Note] = {
    "format": note_format,
    "outputMode": _note_output_mode,
    "option": note_option,
    "options": note_options,
    "partitionBy": note_partition_by,
    "clusterBy": note_cluster_by,
    "queryName": _note_query_name,
    "trigger": _note_trigger,
    "foreach": _note_function,
    "foreachBatch": _note_function,
}


def _start(original: Any) -> Any:
    def start(
        self: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        *args: Any,
        **options: Any,
    ) -> Any:
        if not is_ours(_session(self), format or request_of(self).format):
            return original(self, path, format, *args, **options)
        return _writer(self).start(path, format, *args, **options)

    return start


def _to_table(original: Any) -> Any:
    def to_table(
        self: Any,
        tableName: str,  # noqa: N803  # PySpark's name
        format: str | None = None,  # noqa: A002  # PySpark's name
        *args: Any,
        **options: Any,
    ) -> Any:
        spark, source = _session(self), format or request_of(self).format
        # A table that is there has its format; one that is made has the one that is named.
        if not is_ours(spark, source) and not (source is None and is_our_name(spark, tableName)):
            refuse_format(spark, source, tableName)
            try:
                return original(self, tableName, format, *args, **options)
            finally:
                forget()
        return _writer(self).toTable(tableName, format, *args, **options)

    return to_table


def _writer(writer: Any) -> DeltaStreamWriter:
    request = request_of(writer)
    ours = DeltaStreamWriter(frame_of(writer, _session(writer))).options(**request.options)
    if request.mode is not None:
        ours.outputMode(request.mode)
    if request.partition_by is not None:
        ours.partitionBy(*request.partition_by)
    if request.cluster_by:
        ours.clusterBy(*request.cluster_by)
    if request.query_name is not None:
        ours.queryName(request.query_name)
    return ours.trigger(**request.trigger)


def _session(writer: Any) -> SparkSession:
    # A Connect writer calls its session `_session`.
    found: SparkSession = writer.__dict__.get("_session") or writer.__dict__["_spark"]
    return found


STREAM_READER: dict[str, Wrap] = reader_methods(DeltaStreamReader)
"""Method -> what wraps PySpark's own."""
STREAM_WRITER: dict[str, Wrap] = {"start": _start, "toTable": _to_table, **noting(_NOTES)}
"""Method -> what wraps PySpark's own."""
