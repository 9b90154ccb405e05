"""Rows to data files: which of the ways to write is taken, and what the log says of the files.

| rows | way | why |
|---|---|---|
| few, and at hand in the driver | `_small_write`, then pyarrow | no write job at all |
| on a disk, unpartitioned | `_native_write` | Spark's own writer, fastest there |
| on a disk, partitioned | `_arrow_write` | no sort by partition |
| on HDFS | `_native_write` | executors may have no other client |
| on any other storage | `_arrow_write` | no rename, which copies there; no connector |
| executors without pyarrow | `_native_write` | needs nothing but Spark |
| any, of a table that maps columns | `_arrow_write` | Spark's writer knows no nested field ids |
| a store that only this process sees | pyarrow | executors can't reach it |

The conf `spark.lakelog.write.path` (`auto`, `driver`, `native`, `arrow`) decides instead.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelog.core.actions import AddCDCFile
from lakelog.core.change_files import change_layout
from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError
from lakelog.core.executor_writer import write_batches
from lakelog.core.partition_errors import partition_errors
from lakelog.core.variants import has_variants
from lakelog.spark._arrow_write import write_on_executors
from lakelog.spark._errors import lacks_pyarrow
from lakelog.spark._files_read import lacks_filesystem
from lakelog.spark._native_write import write_natively
from lakelog.spark._paths import scheme_of
from lakelog.spark._small_write import arrow_of, fetched_if_small

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lakelog.core.actions import AddFile
    from lakelog.core.attempt_files import AttemptFiles
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.executor_writer import WritePlan
    from lakelog.core.file_layout import FileLayout
    from lakelog.core.identity_bounds import IdentityBounds
    from lakelog.spark._options import WriteOptions

__all__ = ["TableFiles"]

logger = logging.getLogger("lakelog")

_PATH_CONF = "spark.lakelog.write.path"
_PATHS = ("auto", "driver", "native", "arrow")


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Writes the data files of one table."""

    log: DeltaLog
    layout: FileLayout
    """As the table's metadata wants its files when they become part of it."""
    options: WriteOptions
    attempt: AttemptFiles
    """Owns whatever is written."""
    bounds: IdentityBounds | None = None
    """Learns the numbers of the table's identity columns, where the write gives out any."""

    def write_changes(self, frame: DataFrame) -> list[AddCDCFile]:
        """Write changed rows: the table's columns, and what happened to each row."""
        return [
            AddCDCFile(path=each.path, partition_values=each.partition_values, size=each.size)
            for each in replace(self, layout=change_layout(self.layout), bounds=None).write(frame)
        ]

    def write(
        self, frame: DataFrame, source: DataFrame | None = None, few: DataFrame | None = None
    ) -> list[AddFile]:
        """Write the rows of a DataFrame that has the table's columns.

        Args:
            frame: the rows.
            source: the user's frame, if `frame` is a projection of it.
            few: the same rows as one task makes them, for rows that are written here; default:
                `frame`.
        """
        with partition_errors(self.log.table):
            adds = self._written(frame, source, few)
        self.attempt.add(adds)
        return adds

    def _written(
        self, frame: DataFrame, source: DataFrame | None, few: DataFrame | None
    ) -> list[AddFile]:
        plan = self.layout.plan(
            self.log.store,
            self.log.table,
            **self.options.file_options(),
        )
        self._make_root(plan)
        way = self._way(plan)
        if way == "native" and (features := _arrow_only(plan)):
            raise UnsupportedFeatureError(
                f"{self.log.table} uses {', '.join(features)}, which Spark's own Parquet writer "
                f"does not know: set {_PATH_CONF} to auto or arrow",
                table=self.log.table,
                features=features,
                access="write",
            )
        if way != "native" and has_variants(plan.schema):
            # PySpark can't hand a null variant to Arrow.
            way = self._native_alone(plan)
        if way == "auto":
            fetched = fetched_if_small(frame, source, few)
            if fetched is not None:
                return self._write_here(fetched, plan)
            way = self._way_of_jobs(plan)
        match way:
            case "driver":
                return self._write_here(arrow_of(frame if few is None else few), plan)
            case "arrow":
                return self._write_on_executors(frame, plan)
        return self._write_natively(frame, plan)

    def _native_alone(self, plan: WritePlan) -> str:
        features = _arrow_only(plan)
        if features or plan.filesystem is None or plan.filesystem.type_name.endswith("memory"):
            raise UnsupportedFeatureError(
                f"{self.log.table} has variants, which Spark writes by its own Parquet writer "
                f"alone, and {', '.join(features) or 'its storage'}, which that does not know. "
                "Write the rows with lakelog.core.write_arrow, as struct<metadata, value>.",
                table=self.log.table,
                features=["variantType", *features],
                access="write",
            )
        return "native"

    def _make_root(self, plan: WritePlan) -> None:
        """Make the table's folder, so that a folder that can't be made fails here and clearly.

        Only on a disk: an object store has no folders, and elsewhere the writers make them.
        """
        if plan.filesystem is not None and plan.filesystem.type_name == "local":
            plan.filesystem.create_dir(plan.root, recursive=True)

    def _write_here(self, rows: pa.Table, plan: WritePlan) -> list[AddFile]:
        return self._reported(write_batches(rows.to_batches(), plan))

    def _write_on_executors(self, frame: DataFrame, plan: WritePlan) -> list[AddFile]:
        try:
            return self._reported(write_on_executors(frame, plan))
        except Exception as exc:
            if not lacks_pyarrow(exc):
                raise
            if features := _arrow_only(plan):
                raise UnsupportedFeatureError(
                    f"{self.log.table} uses {', '.join(features)}, and files of such a table are "
                    "written by pyarrow, which the executors' Python lacks. Set PYSPARK_PYTHON to "
                    "a Python with pyarrow, or install it there.",
                    table=self.log.table,
                    features=features,
                    access="write",
                ) from exc
            logger.warning(
                "The executors' Python has no pyarrow that Spark can use, so the write to %s "
                "takes Spark's own writer. Set PYSPARK_PYTHON to a Python with pyarrow, or "
                "install it there.",
                self.log.table,
            )
            return self._write_instead(frame, plan)

    def _write_instead(self, frame: DataFrame, plan: WritePlan) -> list[AddFile]:
        """Write without pyarrow on the executors, which Spark can only where its Hadoop can."""
        try:
            return self._write_natively(frame, plan)
        except Exception as exc:
            if not lacks_filesystem(exc):
                raise
            raise DeltaAnalysisError(
                f"{self.log.table} can't be written from here: the executors' Python has no "
                "pyarrow that Spark can use, and Spark's Hadoop has no connector for "
                f"{scheme_of(self.log.table)}://. Install pyarrow where the executors run "
                "(PYSPARK_PYTHON names their Python), or the connector",
                table=self.log.table,
            ) from exc

    def _write_natively(self, frame: DataFrame, plan: WritePlan) -> list[AddFile]:
        def actions_of(files: list[tuple[str, dict[str, str | None]]]) -> list[AddFile]:
            return self.layout.add_files_at(
                plan.filesystem or self.log.store.filesystem,
                plan.root,
                files,
                data_change=self.options.data_change,
                on_footer=self._on_footer,
            )

        return write_natively(frame, plan, self.log.table, actions_of)

    def _reported(self, results: list[tuple[Any, ...]]) -> list[AddFile]:
        return self.layout.add_files(
            results, data_change=self.options.data_change, on_footer=self._on_footer
        )

    @property
    def _on_footer(self) -> Callable[[Any], None] | None:
        return None if self.bounds is None else self.bounds.see

    def _way(self, plan: WritePlan) -> str:
        way = self.log.conf.get_str(_PATH_CONF, "auto").strip().lower()
        if way not in _PATHS:
            raise DeltaAnalysisError(
                f"the conf {_PATH_CONF} must be one of {', '.join(_PATHS)}, but it is {way!r}",
                key=_PATH_CONF,
                value=way,
            )
        in_process = plan.filesystem is not None and plan.filesystem.type_name.endswith("memory")
        return "driver" if in_process else way

    def _way_of_jobs(self, plan: WritePlan) -> str:
        if _arrow_only(plan):
            return "arrow"
        match scheme_of(self.log.table):
            case "file":
                return "arrow" if plan.partition_columns else "native"
            case "hdfs":
                return "native"
        return "arrow"


def _arrow_only(plan: WritePlan) -> list[str]:
    """What the files make use of and Spark's own Parquet writer can't do."""
    found = []
    if plan.stored is not None:
        found.append("columnMapping")
    if plan.materialize_partitions:
        found.append("materializePartitionColumns")
    return found
