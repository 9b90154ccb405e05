"""`enable`: PySpark's own `df.write`, `spark.read` and `df.writeStream`, sent to lakelog.

The methods of PySpark's reader and writer classes are wrapped. A wrapper records its arguments and
always calls the original, so that every other format works as before; only those that read or
write look at the format, or at the table that a name means, and take over where it is ours.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

from lakelog.spark.format.claims import forget_claims, is_ours
from lakelog.spark.format.enable_names import (
    CATALOG,
    FRAME,
    READER,
    SESSION_NAMES,
    WRITER,
    WRITER_V2,
    asked_writer,
    name_classes,
)
from lakelog.spark.format.enable_sql import SESSION
from lakelog.spark.format.enable_streams import STREAM_READER, STREAM_WRITER, stream_classes
from lakelog.spark.format.requests import (
    Note,
    Request,
    layout_note,
    note_cluster_by,
    note_format,
    note_option,
    note_options,
    note_partition_by,
    noting,
    request_of,
)
from lakelog.spark.names.lookup import unwatch, watch
from lakelog.spark.names.plain import ORIGINAL
from lakelog.spark.names.provider import accept_delta
from lakelog.spark.replay.logs import forget_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

logger: logging.Logger = logging.getLogger("lakelog")

_lock = threading.Lock()
_originals: dict[type, dict[str, Any]] = {}


def enable(spark: SparkSession) -> None:
    """Send `df.write.format("delta")…save(path)` and `spark.read.format("delta")` to lakelog.

    And `readStream`, `writeStream`, the statements of `spark.sql`, and methods that take the names
    of tables: docs/enabled-methods.md lists them all. So it does with the format `lakelog`, and
    with `spark.sql.sources.default` where no format is named.
    `delta` is left alone where the session has delta-spark's jar, with a warning in the log. Holds
    for every session of this process that is of the same kind (classic or Connect), until
    `disable`. Calling it again changes nothing.

    Args:
        spark: a session, classic or Connect.
    """
    with _lock:
        for owner in _classes(spark):
            # A method of a later PySpark is not in an earlier one.
            wrappers = WRAPPERS[owner.__name__]
            _patch(owner, {name: wrap for name, wrap in wrappers.items() if hasattr(owner, name)})
        watch(type(spark))
    if is_ours(spark, "delta"):
        accept_delta(spark)
    else:
        logger.warning(
            "this session has delta-spark's jar, so format('delta') stays its own; take the "
            "jar out of spark.jars and spark.jars.packages, or use format('lakelog')"
        )


def disable(spark: SparkSession) -> None:
    """Undo `enable`: PySpark's classes get their own methods back.

    Args:
        spark: a session of the kind that was enabled. Nothing happens if none was.
    """
    with _lock:
        for each in _classes(spark):
            for name, original in _originals.pop(each, {}).items():
                setattr(each, name, original)
        forget_claims()
        unwatch(type(spark))
    forget_logs(spark)


def _classes(spark: SparkSession) -> tuple[Any, ...]:
    reader = type(spark.read)
    writer = sys.modules[reader.__module__].DataFrameWriter
    return type(spark), reader, writer, *stream_classes(spark), *name_classes(spark)


def _patch(owner: Any, wrappers: dict[str, Callable[[Any], Any]]) -> None:
    if owner in _originals:
        return
    _originals[owner] = {name: getattr(owner, name) for name in wrappers}
    for name, wrap in wrappers.items():
        original = _originals[owner][name]
        wrapped = functools.wraps(original)(wrap(original))
        setattr(wrapped, ORIGINAL, original)
        setattr(owner, name, wrapped)


def _note_mode(request: Request, saveMode: str | None) -> None:  # noqa: N803  # PySpark's name
    request.mode = request.mode if saveMode is None else saveMode


_WRITER_NOTES: dict[str, Note] = {
    "format": note_format,
    "mode": _note_mode,
    "option": note_option,
    "options": note_options,
    "partitionBy": note_partition_by,
    "bucketBy": layout_note("bucketBy"),
    "sortBy": layout_note("sortBy"),
    "clusterBy": note_cluster_by,
}


def _save(original: Any) -> Any:
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's name
        **options: Any,
    ) -> None:
        request = request_of(self)
        if not is_ours(self._spark, format or request.format):
            original(self, path, format, mode, partitionBy, **options)
            return
        asked_writer(self, mode, partitionBy, options).save(path)

    return save


WRAPPERS: dict[str, dict[str, Any]] = {
    "SparkSession": {**SESSION, **SESSION_NAMES},
    "DataFrame": FRAME,
    "DataFrameReader": READER,
    "DataFrameWriter": {"save": _save, **WRITER, **noting(_WRITER_NOTES)},
    "DataFrameWriterV2": WRITER_V2,
    "DataStreamReader": STREAM_READER,
    "DataStreamWriter": STREAM_WRITER,
    "Catalog": CATALOG,
}
"""Class of PySpark's -> method -> what wraps PySpark's own, in sessions of either kind."""
