"""The checkpoint of a streaming query: where it is, and which query it belongs to."""

from __future__ import annotations

import json
import posixpath
import re
import uuid
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.session.session import is_connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_CONF = "spark.sql.streaming.checkpointLocation"
_OPTION = "checkpointLocation"
_QUERY_ID = "sql.streaming.queryId"
_TABLE_ID = re.compile(r'"reservoirId"\s*:\s*"([^"]+)"')
_GLOB = re.compile(r"([\\{}\[\]*?])")


def checkpoint_location(
    spark: SparkSession, options: Mapping[str, str], query_name: str | None
) -> str:
    """Where a query keeps its progress, as Spark would choose it for any other sink.

    Args:
        spark: the session.
        options: of the query, names in any case.
        query_name: the query's, which names its folder below the session's default.

    Raises:
        DeltaAnalysisError: neither the options nor the session's conf say.
    """
    for key, value in options.items():
        if key.lower() == _OPTION.lower() and value:
            return value
    default = spark.conf.get(_CONF, None)
    if default:
        return posixpath.join(default, query_name or str(uuid.uuid4()))
    raise DeltaAnalysisError(
        "checkpointLocation must be specified either through "
        f'option("{_OPTION}", …) or spark.conf.set("{_CONF}", …): a stream into a Delta table '
        "keeps its progress there, and writes no row twice when it is started again",
        option=_OPTION,
    )


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """The id of the running query, which is its own for as long as its checkpoint lives.

    To be called while a batch is processed, by the thread that processes it.

    Args:
        spark: the session of the batch.
        checkpoint: the query's checkpoint location, read where Spark can't be asked.

    Raises:
        DeltaAnalysisError: the checkpoint does not say.
    """
    return running_query(spark) or _written_in(spark, checkpoint)


def running_query(spark: SparkSession) -> str | None:
    """The id of the query whose batch this thread processes; `None` over Connect, and outside."""
    if is_connect(spark):
        return None
    found: Any = spark.sparkContext.getLocalProperty(_QUERY_ID)
    return found or None


def streamed_tables(spark: SparkSession, checkpoint: str, batch_id: int) -> frozenset[str]:
    """The ids of the Delta tables that a query reads as streams, by whatever client.

    Args:
        spark: the session of the batch.
        checkpoint: the query's checkpoint location.
        batch_id: a batch that is being processed: Spark has noted its offsets before it began.

    Raises:
        DeltaAnalysisError: the checkpoint does not say how far the batch goes.
    """
    try:
        text = _text(spark, checkpoint, "offsets", str(batch_id))
    except (PySparkException, IndexError) as exc:
        raise DeltaAnalysisError(
            f"the checkpoint {checkpoint} does not say what batch {batch_id} reads: its file "
            f"offsets/{batch_id} can't be read. Without it a query that reads the table that it "
            "writes would pass for one that only appends.",
            checkpoint=checkpoint,
        ) from exc
    return frozenset(_TABLE_ID.findall(text))


def _written_in(spark: SparkSession, checkpoint: str) -> str:
    try:
        return str(json.loads(_text(spark, checkpoint, "metadata"))["id"])
    except (PySparkException, IndexError, ValueError, KeyError, TypeError) as exc:
        raise DeltaAnalysisError(
            f"the checkpoint {checkpoint} does not say which query it belongs to: its file "
            "metadata can't be read. Without the query's id a batch could be written twice.",
            checkpoint=checkpoint,
        ) from exc


def _text(spark: SparkSession, checkpoint: str, *names: str) -> str:
    path = posixpath.join(_GLOB.sub(r"\\\1", checkpoint), *names)
    return str(spark.read.text(path, wholetext=True).collect()[0][0])
