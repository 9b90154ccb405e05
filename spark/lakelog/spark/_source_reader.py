"""The reading half of `format("lakelog")`: planned in a daemon, carried out by executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakelog.core.errors import DeltaError
from lakelog.spark._arrow_read import ArrowScan
from lakelog.spark._marked import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType as SparkStructType

    from lakelog.core.snapshot import Snapshot

__all__ = ["FilteringReader", "SourceReader"]

_COMPARISONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}


class SourceReader(DataSourceReader):
    """Reads one version. Picklable: it travels between the planners, and on to the executors."""

    def __init__(self, snapshot: Snapshot, schema: SparkStructType) -> None:
        """Pin the version; open no file.

        Args:
            snapshot: the version.
            schema: the columns that Spark expects, in order.
        """
        self._job = ArrowScan(snapshot, snapshot.file_table, schema).job
        self._files = snapshot.file_table

    def partitions(self) -> list[InputPartition]:
        """The numbers of the tasks."""
        # What is known of the files has done its duty; the executors need not carry it.
        self._files = None
        return [InputPartition(number) for number in range(self._job.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task. Spark calls this once for a table without files, too."""
        if partition.value is None:
            return
        with marked():
            yield from (b for b in self._job.batches(partition.value) if b.num_rows)


class FilteringReader(SourceReader):
    """Skips files by the query's filters. Spark 4.1 or later, with filter pushdown switched on."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # PySpark's
        """Keep the files that may match, and give every filter back for Spark to apply."""
        with marked():
            for each in filters:
                wanted = _as_tuple(each)
                kept = None if wanted is None else self._matching(wanted)
                if kept is not None:
                    self._files, self._job = self._files.filter(kept), self._job.only(kept)
        return filters

    def _matching(self, wanted: tuple[str, str, Any]) -> pa.ChunkedArray | None:
        """For each file whether it may match; `None` where that can't be said."""
        from lakelog.core.expressions import normalize_filter
        from lakelog.core.pruning import keep_files

        table = self._job.reader
        try:
            expression = normalize_filter([wanted], table.schema, session_tz=table.session_tz)
            if expression is None:
                return None
            return keep_files(
                self._files,
                expression,
                table.schema,
                table.partition_columns,
                session_tz=table.session_tz,
            )
        except DeltaError:
            # A value that we can't compare: Spark applies the filter itself in any case.
            return None


def _as_tuple(of: Filter) -> tuple[str, str, Any] | None:
    """A filter as pyarrow writes them; `None` for a kind that pruning has no use for."""
    operator = _COMPARISONS.get(type(of).__name__)
    attribute: tuple[str, ...] = getattr(of, "attribute", ())
    value = getattr(of, "value", None)
    if operator is None or len(attribute) != 1 or value is None:
        return None
    if operator == "in":
        if any(each is None for each in value):
            return None
        value = list(value)
    return attribute[0], operator, value
