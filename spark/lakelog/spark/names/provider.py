"""The format `delta` of catalog entries, in sessions that don't have delta-spark's jar."""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lakelog.spark.names.plain import plain_sql
from lakelog.spark.session.sources import register_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

T = TypeVar("T")

_UNKNOWN = re.compile(r"DATA_SOURCE_NOT_FOUND\b.*\bdelta\b", re.IGNORECASE)

_accepted: weakref.WeakSet[SparkSession] = weakref.WeakSet()
_reading: weakref.WeakSet[SparkSession] = weakref.WeakSet()


class DeltaByName(DataSource):
    """Stands for the format where Spark asks no more than that there is one of its name.

    Spark does not tell a Python data source where a named table is, so reading a table by way of
    this one raises an error that says what to do instead.
    """

    @classmethod
    def name(cls) -> str:
        """`delta`."""
        return "delta"

    def schema(self) -> StructType:
        """No columns for an entry of the catalog; refuse to read."""
        if is_for_entry(self.options):
            return StructType()
        raise NotImplementedError(_REFUSAL)

    def reader(self, schema: object) -> NoReturn:  # PySpark's
        """Refuse."""
        raise NotImplementedError(_REFUSAL)

    def writer(self, schema: object, overwrite: bool) -> NoReturn:  # PySpark's
        """Refuse."""
        raise NotImplementedError(_REFUSAL)


def is_for_entry(options: Mapping[str, str]) -> bool:
    """Whether a source is asked for its columns by `CREATE TABLE`, which keeps them in the catalog.

    delta-spark keeps none there: those in the log count, and a second list of them would be left
    behind by the first change.

    Args:
        options: what Spark hands to the source: of a table's entry, who owns it too.
    """
    return "provider" in options and "owner" in options


_REFUSAL = (
    "Spark does not tell a source where a table of its catalog is: use the name after "
    "lakelog.spark.enable(spark), or DeltaTable.forName(spark, name)"
)


def accept_delta(spark: SparkSession) -> None:
    """Make a session without the jar know the format.

    Otherwise Spark can't even drop a table of it, or say whether there is one.
    """
    if spark not in _accepted:
        register_source(spark, DeltaByName)
        _accepted.add(spark)


def accepts_delta(spark: SparkSession) -> bool:
    """Whether a session knows the format by lakelog, and not by delta-spark's jar."""
    try:
        accept_delta(spark)
    except AnalysisException:
        return False
    return True


def note_accepted(spark: SparkSession) -> None:
    """Note that a session knows the format by a source that can do more."""
    _accepted.add(spark)
    _reading.add(spark)


def reads_delta(spark: SparkSession) -> bool:
    """Whether a session knows the format by a source that reads tables by their path."""
    return spark in _reading


def run_using_delta(spark: SparkSession, text: str) -> None:
    """Run a statement about a table of the format, in a session that may not know it.

    Raises:
        PySparkException: what Spark raises.
    """
    using_delta(spark, lambda: plain_sql(spark, text))


def using_delta(spark: SparkSession, run: Callable[[], T]) -> T:
    """Do what may be about a table of the format, in a session that may not know it.

    Args:
        spark: the session.
        run: done once more if Spark says that it doesn't know the format, which it says before it
            has changed anything.

    Raises:
        PySparkException: what Spark raises.
    """
    # Tried before the format is registered: a session with delta-spark's jar keeps that one's.
    try:
        return run()
    except Exception as exc:
        # Classic sessions pass the JVM's error on as it is, Connect's make their own of it.
        if _UNKNOWN.search(str(exc)) is None:
            raise
    _accepted.discard(spark)
    accept_delta(spark)
    return run()
