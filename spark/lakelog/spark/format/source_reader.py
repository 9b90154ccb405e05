"""The reading half of `format("lakelog")`: planned in a daemon, carried out by executors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakelog.core.engine.conditions import (
    Column,
    Comparison,
    EvalContext,
    In,
    IsNull,
    Literal,
    Not,
    StartsWith,
    join_and,
    keep_files,
    normalize_filter,
)
from lakelog.core.errors import DeltaError
from lakelog.spark.reading.arrow_scan import ArrowScan
from lakelog.spark.workers.marked_errors import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType as SparkStructType

    from lakelog.core import Expression, Snapshot

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
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
        # The statistics are no longer needed, so the executors need not carry them.
        self._files = None
        return [InputPartition(number) for number in range(self._job.tasks)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of a task. Spark calls this once even for a table without files."""
        if partition is None or partition.value is None:  # before 4.1, and since
            return
        with marked():
            yield from (b for b in self._job.batches(partition.value) if b.num_rows)


class FilteringReader(SourceReader):
    """Skips files, and row groups within them, by the query's filters.

    Spark 4.1 or later, with filter pushdown switched on. Spark gives a source in Python nothing of
    the columns that a query needs.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # PySpark's
        """Keep what may match, and give every filter back for Spark to apply."""
        with marked():
            wanted = [each for each in map(self._understood, filters) if each is not None]
            if wanted:
                self._prune(join_and(wanted))
        return filters

    def _understood(self, of: Filter) -> Expression | None:
        """A filter as lakelog has it, bound to the table; `None` for what it has no use for."""
        table = self._job.reader
        try:
            found = _expression(of)
            if found is None:
                return None
            return normalize_filter(found, table.schema, EvalContext(table.session_tz))
        except DeltaError:
            # A value that we can't compare: Spark applies the filter itself in any case.
            return None

    def _prune(self, wanted: Expression) -> None:
        table = self._job.reader
        try:
            kept = keep_files(
                self._files,
                wanted,
                table.schema,
                table.partition_columns,
                session_tz=table.session_tz,
            )
        except DeltaError:
            return
        job = self._job.only(kept)
        self._files = self._files.filter(kept)
        self._job = replace(job, reader=replace(job.reader, prune=wanted))


def _expression(of: Filter) -> Expression | None:
    """A filter as a tree; `None` for a kind that statistics say nothing about."""
    kind = type(of).__name__
    if kind == "Not":
        inside = _expression(of.child)  # type: ignore[attr-defined]
        return None if inside is None else Not(inside)
    path: tuple[str, ...] = getattr(of, "attribute", ())
    if not path:
        return None
    column, value = Column(tuple(path)), getattr(of, "value", None)

    def literal(each: Any) -> Literal:
        # Spark has filled up what is compared with a CHAR, where it does that.
        return Literal(each, exact=True)

    match kind:
        case "IsNull":
            return IsNull(column)
        case "IsNotNull":
            return Not(IsNull(column))
        case "In" if value is not None and all(each is not None for each in value):
            return In(column, tuple(map(literal, value)))
        case "StringStartsWith" if value is not None:
            return StartsWith(column, value)
        case _ if kind in _COMPARISONS and value is not None:
            return Comparison(_COMPARISONS[kind], column, literal(value))
    return None
