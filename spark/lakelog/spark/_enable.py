"""`enable`: PySpark's own `df.write` and `spark.read`, sent to lakelog for Delta's formats.

The methods of PySpark's reader and writer classes are wrapped. A wrapper notes what it was
called with and always calls on, so that every other format works as before; only `load`, `save`
and `saveAsTable` look at the format, and take over where it is ours.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark._claims import delta_is_claimed
from lakelog.spark._reader import DeltaReader
from lakelog.spark._session import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["disable", "enable"]

_OURS = ("lakelog", "delta")
_DEFAULT_FORMAT = "spark.sql.sources.default"


@dataclass(slots=True)
class _Request:
    """What was said to one reader or writer so far."""

    format: str | None = None
    schema: Any = None
    mode: str | None = None
    partition_by: list[str] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    layout: list[str] = field(default_factory=list)
    """Methods called that ask for a layout which a Delta table can't have."""


_lock = threading.Lock()
_originals: dict[type, dict[str, Any]] = {}
_claimed: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()


def enable(spark: SparkSession) -> None:
    """Send `df.write.format("delta")…save(path)` and `spark.read.format("delta")` to lakelog.

    So does the format `lakelog`, and `spark.sql.sources.default` where no format is named.
    `delta` is left alone where the session has delta-spark's jar. Holds for every session of
    this process that is of the same kind (classic or Connect), until `disable`. Calling it again
    changes nothing.

    Args:
        spark: a session, classic or Connect.
    """
    reader, writer = _classes(spark)
    with _lock:
        _patch(reader, {"load": _load, **_noting(_READER_NOTES)})
        _patch(writer, {"save": _save, "saveAsTable": _save_as_table, **_noting(_WRITER_NOTES)})


def disable(spark: SparkSession) -> None:
    """Undo `enable`: PySpark's classes get their own methods back.

    Args:
        spark: a session of the kind that was enabled. Nothing happens if none was.
    """
    with _lock:
        for each in _classes(spark):
            for name, original in _originals.pop(each, {}).items():
                setattr(each, name, original)
        _claimed.clear()


def _classes(spark: SparkSession) -> tuple[Any, Any]:
    reader = type(spark.read)
    return reader, sys.modules[reader.__module__].DataFrameWriter


def _patch(owner: Any, wrappers: dict[str, Callable[[Any], Any]]) -> None:
    if owner in _originals:
        return
    _originals[owner] = {name: getattr(owner, name) for name in wrappers}
    for name, wrap in wrappers.items():
        original = _originals[owner][name]
        setattr(owner, name, functools.wraps(original)(wrap(original)))


def _request(of: Any) -> _Request:
    found = of.__dict__.get("_lakelog_request")
    if not isinstance(found, _Request):
        found = of.__dict__["_lakelog_request"] = _Request()
    return found


def _note_format(request: _Request, source: str) -> None:
    request.format = source


def _note_schema(request: _Request, schema: Any) -> None:
    request.schema = schema


def _note_mode(request: _Request, saveMode: str | None) -> None:  # noqa: N803  # PySpark's name
    request.mode = request.mode if saveMode is None else saveMode


def _note_option(request: _Request, key: str, value: Any) -> None:
    # Names count in any case, and the last value counts; `None` says nothing, as in PySpark.
    if value is not None:
        for known in [each for each in request.options if each.lower() == key.lower()]:
            del request.options[known]
        request.options[key] = value


def _note_options(request: _Request, **options: Any) -> None:
    for key, value in options.items():
        _note_option(request, key, value)


def _note_partition_by(request: _Request, *cols: Any) -> None:
    nested = len(cols) == 1 and isinstance(cols[0], list | tuple)
    request.partition_by = list(cols[0] if nested else cols)


def _layout_note(name: str) -> Callable[..., None]:
    def note(request: _Request, *_: Any, **__: Any) -> None:
        request.layout.append(name)

    return note


_READER_NOTES: dict[str, Callable[..., None]] = {
    "format": _note_format,
    "schema": _note_schema,
    "option": _note_option,
    "options": _note_options,
}
_WRITER_NOTES: dict[str, Callable[..., None]] = {
    "format": _note_format,
    "mode": _note_mode,
    "option": _note_option,
    "options": _note_options,
    "partitionBy": _note_partition_by,
    "bucketBy": _layout_note("bucketBy"),
    "sortBy": _layout_note("sortBy"),
    "clusterBy": _layout_note("clusterBy"),
}


def _noting(notes: dict[str, Callable[..., None]]) -> dict[str, Callable[[Any], Any]]:
    """Wrappers that note a call, and then make it."""

    def wrapping(note: Callable[..., None]) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def method(self: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(self, *args, **kwargs)
                note(_request(self), *args, **kwargs)
                return result

            return method

        return wrap

    return {name: wrapping(note) for name, note in notes.items()}


def _is_ours(spark: SparkSession, source: str | None) -> bool:
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


def _load(original: Any) -> Any:
    def load(
        self: Any,
        path: Any = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        schema: Any = None,
        **options: Any,
    ) -> Any:
        request = _request(self)
        # A Connect reader calls its session `_client`; a classic one has no such attribute.
        spark = self.__dict__.get("_client") or self.__dict__["_spark"]
        if not _is_ours(spark, format or request.format):
            return original(self, path, format, schema, **options)
        reader = DeltaReader(spark).options(**request.options)
        expected = request.schema if schema is None else schema
        return reader.load(path, schema=expected, **options)

    return load


def _save(original: Any) -> Any:
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's name
        **options: Any,
    ) -> None:
        request = _request(self)
        if not _is_ours(self._spark, format or request.format):
            original(self, path, format, mode, partitionBy, **options)
            return
        if request.layout:
            raise _no_layout(request.layout)
        from lakelog.spark._writer import DeltaWriter

        _note_options(request, **options)
        writer = DeltaWriter(_frame(self)).options(**request.options)
        if (chosen := mode or request.mode) is not None:
            writer.mode(chosen)
        if partitionBy is not None:
            _note_partition_by(request, partitionBy)
        if request.partition_by is not None:
            writer.partitionBy(*request.partition_by)
        writer.save(path)

    return save


def _no_layout(methods: Sequence[str]) -> DeltaAnalysisError:
    buckets = [each for each in methods if each != "clusterBy"]
    if buckets:
        told = (
            f"a Delta table has no {', '.join(buckets)}: partition it with partitionBy, and sort "
            "rows within files with df.sortWithinPartitions"
        )
    else:
        told = (
            "lakelog writes tables that are clustered, and can't make one so yet: leave clusterBy "
            "out for a table that is clustered already, make it with delta-spark (CLUSTER BY), or "
            "partition it with partitionBy"
        )
    return DeltaAnalysisError(told, methods=list(methods))


def _save_as_table(original: Any) -> Any:
    def save_as_table(
        self: Any,
        name: str,
        format: str | None = None,  # noqa: A002  # PySpark's name
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if not _is_ours(self._spark, format or _request(self).format):
            original(self, name, format, *args, **kwargs)
            return
        raise DeltaAnalysisError(
            f"{name!r} is a name in a catalog, and lakelog writes tables by path: save(path)",
            table=name,
        )

    return save_as_table


def _frame(writer: Any) -> DataFrame:
    """The DataFrame that a writer writes; Connect's keeps the plan of it only."""
    if not is_connect(writer._spark):
        frame: DataFrame = writer._df
        return frame
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    return ConnectFrame(writer._df, writer._spark)
