"""The reading half of `format("lakelog")`: planned in a daemon, carried out by executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakelog.core.actions import Metadata, Protocol
from lakelog.core.arrow_types import to_arrow_schema
from lakelog.core.clock import SystemClock
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaError
from lakelog.core.file_state import FileState
from lakelog.core.log_segment import LogSegment
from lakelog.core.paths import commit_path
from lakelog.core.replay import State
from lakelog.core.snapshot import Snapshot
from lakelog.logstores import FileStatus, log_store_for
from lakelog.spark._marked import marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from lakelog.core.schema import StructType

__all__ = ["FilteringReader", "SourceReader"]

_TASK_BYTES = 64 << 20
_COMPARISONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}


@dataclass
class _Part(InputPartition):
    """Some files of a snapshot: one task."""

    files: pa.Table

    def __init__(self, files: pa.Table) -> None:
        super().__init__(None)
        self.files = files


class SourceReader(DataSourceReader):
    """Reads one version. Picklable: it travels from the planner to the executors."""

    def __init__(self, snapshot: Snapshot, conf: Mapping[str, str], schema: StructType) -> None:
        """Pin the version; keep what executors need to open the files.

        Args:
            snapshot: the version.
            conf: the session's conf; it leads to the store.
            schema: the columns that Spark expects, in order.
        """
        self._table = snapshot.table
        self._version = snapshot.version
        self._metadata = snapshot.metadata.to_json_value()
        self._protocol = snapshot.protocol.to_json_value()
        self._conf = dict(conf)
        self._schema = schema
        self._files = snapshot.file_table

    def partitions(self) -> list[InputPartition]:
        """Tasks of about 64 MB; no file is split."""
        parts: list[InputPartition] = []
        start = taken = 0
        for row, size in enumerate(self._files["size"].to_pylist()):
            if row > start and taken + size > _TASK_BYTES:
                parts.append(_Part(self._files.slice(start, row - start)))
                start, taken = row, 0
            taken += size
        if self._files.num_rows:
            parts.append(_Part(self._files.slice(start)))
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task. Spark calls this once for a table without files, too."""
        if not isinstance(partition, _Part):
            return
        with marked():
            target = to_arrow_schema(self._schema)
            part = self._snapshot(partition.files)
            for batch in part.to_batches(columns=self._schema.names):
                if batch.num_rows:
                    yield batch.cast(target) if batch.schema != target else batch

    def _snapshot(self, files: pa.Table) -> Snapshot:
        """The snapshot, with nothing but the given files."""
        store = log_store_for(self._table, self._conf)
        last = FileStatus(commit_path(self._table, self._version), 0, 0)
        state = State(
            version=self._version,
            timestamp=None,
            protocol=Protocol.from_json_value(self._protocol),
            metadata=Metadata.from_json_value(self._metadata),
            transactions={},
            domains={},
            info=None,
            files=FileState(self._table, live=lambda: files),
            segment=LogSegment(self._table, self._version, None, (), last),
        )
        return Snapshot(self._table, store, DeltaConf.of(self._conf), SystemClock(), state)


class FilteringReader(SourceReader):
    """Skips files by the query's filters. Spark 4.1 or later, with filter pushdown switched on."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # PySpark's
        """Keep the files that may match, and give every filter back for Spark to apply."""
        with marked():
            part = self._snapshot(self._files)
            for each in filters:
                wanted = _as_tuple(each)
                if wanted is not None:
                    self._files = _pruned(part, self._files, wanted)
        return filters


def _pruned(part: Snapshot, files: pa.Table, wanted: tuple[str, str, Any]) -> pa.Table:
    from lakelog.core.expressions import normalize_filter
    from lakelog.core.pruning import keep_files

    try:
        expression = normalize_filter([wanted], part.schema)
        if expression is None:
            return files
        kept = keep_files(files, expression, part.schema, part.partition_columns)
    except DeltaError:
        # A value that we can't compare: Spark applies the filter itself in any case.
        return files
    return files.filter(kept)


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
