"""A stream of small batches, whose rows come with a batch's plan: no task runs Python.

Spark starts a task of Python for the rows of each batch, which costs more than a handful of rows:
some 55 ms. What a `SimpleDataSourceStreamReader` reads is read by the query's own process on the
driver instead, and goes to the executors as a block of Spark's.
"""

# pyright: reportPossiblyUnboundVariable=false
# What the import may not have given is used where `CAN_READ_ON_DRIVER` says that it has.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import SimpleDataSourceStreamReader

from lakelog.core.engine.tables import option
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores.keys import flag
from lakelog.spark.workers.marked_errors import marked

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark before 4.2, where such a reader has no limits and no availableNow
    CAN_READ_ON_DRIVER = False
else:
    CAN_READ_ON_DRIVER = True

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader

MOST_BYTES = 256 << 20
"""Of the rows of one batch, in Arrow: the process has all of them in memory, and the JVM too."""
_OPTION = "readOnDriver"


def wants_driver(options: Mapping[str, str]) -> bool:
    """Whether a stream asks for its rows to be read on the driver.

    Args:
        options: names in lower case.

    Raises:
        DeltaAnalysisError: neither `true` nor `false`.
    """
    return option(options, flag(_OPTION, False))


def driver_reader(make: Callable[[], DataSourceStreamReader]) -> SimpleDataSourceStreamReader:
    """The reader of one query.

    Args:
        make: makes the reader whose offsets and rows these are; can be pickled. It is called now,
            and once in each task.
    """
    return _DriverReader(make)


if CAN_READ_ON_DRIVER:

    class _DriverReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
        def __init__(self, make: Callable[[], DataSourceStreamReader]) -> None:
            self._make = make
            self._made: Any = make()

        def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
            """Where a query begins."""
            found: dict[str, Any] = self._reader.initialOffset()
            return found

        def read(self, start: dict[str, Any]) -> tuple[Iterator[Any], dict[str, Any]]:
            """The rows of the next batch, and where it ends. Limits hold with any trigger."""
            end = self._reader.latestOffset(start, None)
            if end == start:
                return iter(()), start
            # Spark copies the iterator for each time that it asks for the batch.
            return iter(list(self._rows(start, end, MOST_BYTES))), end

        def readBetweenOffsets(  # noqa: N802  # PySpark's name
            self, start: dict[str, Any], end: dict[str, Any]
        ) -> Iterator[Any]:
            """The rows of a batch that was planned before a restart, in a task."""
            return self._rows(start, end, None)

        def commit(self, end: dict[str, Any]) -> None:
            """See `DataSourceStreamReader.commit`."""
            self._reader.commit(end)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
            """Take nothing that is committed from now on."""
            self._reader.prepareForTriggerAvailableNow()

        def __getstate__(self) -> dict[str, Any]:
            """A task makes its own reader."""
            return {"_make": self._make, "_made": None}

        @property
        def _reader(self) -> Any:
            if self._made is None:
                self._made = self._make()
            return self._made

        def _rows(
            self, start: dict[str, Any], end: dict[str, Any], most: int | None
        ) -> Iterator[pa.RecordBatch]:
            size = 0
            for each in self._reader.partitions(start, end):
                for batch in self._reader.read(each):
                    size += batch.nbytes
                    if most is not None and size > most:
                        with marked():
                            raise DeltaAnalysisError(
                                f"the rows of one batch of {self._reader.table}, from "
                                f"{_place(start)} to {_place(end)}, take more than {most >> 20} "
                                f"MB, and with the option {_OPTION} the driver has all of them in "
                                "memory. Leave the option out, so that tasks read them, or set "
                                "maxFilesPerTrigger or maxBytesPerTrigger lower; the query goes "
                                "on where it was.",
                                option=_OPTION,
                                table=self._reader.table,
                            )
                    yield batch


def _place(offset: Mapping[str, Any]) -> str:
    return f"version {offset['reservoirVersion']}, index {offset['index']}"
