"""Writing rows to data files: which way of writing is used, and the actions of the files.

| rows | way | why |
|---|---|---|
| few, and at hand in the driver | `by_driver`, then pyarrow | no write job at all |
| on a disk, unpartitioned | `by_spark` | Spark's own writer, fastest there |
| on a disk, partitioned | `by_arrow` | no sort by partition |
| on HDFS | `by_spark` | executors may have no other client |
| on any other storage | `by_arrow` | no rename, which copies there; no connector |
| executors without pyarrow | `by_spark` | needs nothing but Spark |
| any, of a table that maps columns | `by_arrow` | Spark's writer knows no nested field ids |
| a store that only this process sees | pyarrow | executors can't reach it |

The conf `spark.lakelog.write.path` (`auto`, `driver`, `native`, `arrow`) decides instead.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lakelog.core.actions import AddCDCFile
from lakelog.core.engine.schemas import holds_months
from lakelog.core.engine.values import has_variants
from lakelog.core.engine.write import change_layout, partition_errors, write_batches
from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError
from lakelog.core.schema import StructType
from lakelog.logstores import keys as store_keys
from lakelog.spark.session.job_errors import lacks_filesystem, names_too_long
from lakelog.spark.types.path_forms import scheme_of
from lakelog.spark.workers.marked_errors import lacks_pyarrow
from lakelog.spark.writing.balanced import balanced, bin_size, together
from lakelog.spark.writing.by_arrow import write_on_executors
from lakelog.spark.writing.by_driver import arrow_of, fetched_if_held, fetched_if_small
from lakelog.spark.writing.by_spark import write_natively
from lakelog.spark.writing.dictionaries import columns_without_dictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lakelog.core import AttemptFiles, DeltaLog
    from lakelog.core.actions import AddFile
    from lakelog.core.engine.write import FileLayout, IdentityBounds, WritePlan
    from lakelog.spark.writing.options import WriteOptions

logger: logging.Logger = logging.getLogger("lakelog")

_PATH_CONF = store_keys.WRITE_PATH.name
_PATHS = ("auto", "driver", "native", "arrow")

Fetch: TypeAlias = Literal["cheap", "all", "none"]


@dataclass(frozen=True, slots=True)
class TableFileWriter:
    """Writes the data files of one table."""

    log: DeltaLog
    layout: FileLayout
    """The layout by the table's metadata at the time when the files become part of it."""
    options: WriteOptions
    attempt: AttemptFiles
    """Owns whatever is written."""
    bounds: IdentityBounds | None = None
    """Collects the numbers of the table's identity columns, where the write assigns any."""
    fetch: Fetch = "cheap"
    """Which rows the driver fetches and writes itself, unless the conf decides: those that are
    few and cheap to get; all, or none, for rows that must not be computed in part."""
    shuffles: bool = False
    """Whether a job's rows are shuffled before it writes them; see `balanced`."""
    hidden: StructType | None = None
    """Columns of the rows that are not the table's: those of row ids."""
    repartitions: bool = False
    """Whether a job's rows, if nothing else shuffles them, are put `together` by partition."""

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
        layout = self.layout
        if self.hidden is not None:
            layout = replace(layout, schema=StructType((*layout.schema, *self.hidden)))
        plan = layout.plan(
            self.log.store,
            self.log.table,
            **self.options.file_options(),
        )
        self._make_root(plan)
        way = self._way(plan)
        if way == "native" and (features := _arrow_only(plan)):
            raise UnsupportedFeatureError(
                f"{self.log.table} uses {', '.join(features)}, which Spark's own Parquet writer "
                f"does not support: set {_PATH_CONF} to auto or arrow",
                table=self.log.table,
                features=features,
                access="write",
            )
        if way != "native":
            # PySpark can convert neither a null variant to Arrow nor an interval of months.
            if has_variants(plan.schema):
                way = self._native_alone(plan, "variants", "struct<metadata, value>")
            elif holds_months(layout.schema):
                way = self._native_alone(plan, "intervals of months", "int")
        if way == "auto":
            fetched = self._fetched(frame, source, few)
            if fetched is not None:
                return self._write_here(fetched, plan)
            way = self._way_of_jobs(plan)
        if way == "driver":
            return self._write_here(arrow_of(frame if few is None else few), plan)
        write = self._write_on_executors if way == "arrow" else self._native_or_arrow
        if not self.shuffles:
            rows = together(frame, layout.partition_columns) if self.repartitions else frame
            return write(rows, plan)
        with bin_size(frame, self.log.conf):
            return write(balanced(frame, layout.partition_columns), plan)

    def _fetched(
        self, frame: DataFrame, source: DataFrame | None, few: DataFrame | None
    ) -> pa.Table | None:
        if self.fetch == "cheap":
            return fetched_if_small(frame, source, few)
        return fetched_if_held(frame if few is None else few) if self.fetch == "all" else None

    def _native_alone(self, plan: WritePlan, values: str, as_arrow: str) -> str:
        features = _arrow_only(plan)
        if features or plan.filesystem is None or plan.filesystem.type_name.endswith("memory"):
            raise UnsupportedFeatureError(
                f"{self.log.table} has {values}, which only Spark's own Parquet writer can write, "
                f"and {', '.join(features) or 'its storage'}, which that writer does not support. "
                f"Write the rows with lakelog.core.write_arrow, as {as_arrow}.",
                table=self.log.table,
                features=[*(["variantType"] if values == "variants" else []), *features],
                access="write",
            )
        return "native"

    def _make_root(self, plan: WritePlan) -> None:
        """Create the table's folder, so that a failure to do so is reported here and clearly.

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
                    "written by pyarrow, which is missing from the executors' Python. Set "
                    "PYSPARK_PYTHON to a Python with pyarrow, or install it there.",
                    table=self.log.table,
                    features=features,
                    access="write",
                ) from exc
            logger.warning(
                "The executors' Python has no pyarrow that Spark can use, so the write to %s "
                "uses Spark's own writer. Set PYSPARK_PYTHON to a Python with pyarrow, or "
                "install it there.",
                self.log.table,
            )
            return self._write_instead(frame, plan)

    def _native_or_arrow(
        self, frame: DataFrame, plan: WritePlan, *, may_be_arrow: bool = True
    ) -> list[AddFile]:
        """By Spark's own writer, whose folders hold partition values, if they are short enough."""
        try:
            return self._write_natively(frame, plan)
        except Exception as exc:
            if not plan.partition_columns or not names_too_long(exc):
                raise
            may_be_arrow &= self._way(plan) != "native" and not has_variants(plan.schema)
            if not may_be_arrow:
                raise DeltaAnalysisError(
                    f"a row has a value in a partition column of {self.log.table} that is too long "
                    "for the name of a folder, which Spark's own Parquet writer keeps it in: set "
                    f"{_PATH_CONF} to auto or arrow, shorten the value, or partition by another "
                    "column",
                    table=self.log.table,
                ) from exc
            logger.info("%s: a partition value is too long for Spark's own writer", self.log.table)
            return self._write_on_executors(frame, plan)

    def _write_instead(self, frame: DataFrame, plan: WritePlan) -> list[AddFile]:
        """Write without pyarrow on the executors, which Spark can only where its Hadoop can."""
        try:
            return self._native_or_arrow(frame, plan, may_be_arrow=False)
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
        filesystem = plan.filesystem or self.log.store.filesystem

        def actions_of(files: list[tuple[str, dict[str, str | None]]]) -> list[AddFile]:
            return self.layout.add_files_at(
                filesystem,
                plan.root,
                files,
                data_change=self.options.data_change,
                on_footer=self._on_footer,
            )

        plain = columns_without_dictionary(self.log, filesystem, plan.root)
        return write_natively(frame, plan, self.log.table, actions_of, plain)

    def _reported(self, results: list[tuple[Any, ...]]) -> list[AddFile]:
        return self.layout.add_files(
            results, data_change=self.options.data_change, on_footer=self._on_footer
        )

    @property
    def _on_footer(self) -> Callable[[Any], None] | None:
        return None if self.bounds is None else self.bounds.see

    def _way(self, plan: WritePlan) -> str:
        way = self.log.conf.read(store_keys.WRITE_PATH).strip().lower()
        if way not in _PATHS:
            raise DeltaAnalysisError(
                f"the conf {_PATH_CONF} must be one of {', '.join(_PATHS)}, not {way!r}",
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
    """Features that the files use and Spark's own Parquet writer does not support."""
    found = []
    if plan.stored is not None:
        found.append("columnMapping")
    if plan.materialize_partitions:
        found.append("materializePartitionColumns")
    return found
