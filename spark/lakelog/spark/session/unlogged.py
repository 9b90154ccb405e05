"""Questions to Spark's analysis whose refusals PySpark does not log.

PySpark logs each expression that it can't resolve as an error, with its trace in the JVM. An
expression that lakelog only asks about is not an error.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from pyspark.logger import PySparkLogger
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_asks: ContextVar[bool] = ContextVar("lakelog_asks", default=False)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep from PySpark's loggers what is refused in this block, of this thread."""
    _watch()
    before = _asks.set(True)
    try:
        yield
    finally:
        _asks.reset(before)


def analyse(rows: DataFrame) -> None:
    """Have Spark analyse a plan.

    Over Connect, the rows that a filter, an order or a limit leaves have the schema of the rows
    before, where that is known, and PySpark does not ask the server for it. It does for a
    projection.

    Raises:
        PySparkException: Spark can't resolve it, or does not accept it.
    """
    _ = rows.select(sf.lit(0)).schema


@functools.cache
def _watch() -> None:
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_wanted)


def _is_wanted(_: logging.LogRecord) -> bool:
    return not _asks.get()
