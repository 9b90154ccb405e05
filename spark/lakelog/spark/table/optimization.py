"""OPTIMIZE, as methods of `DeltaTable`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    LongType,
    StringType,
    StructType,
)

from lakelog.core import optimize
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.session.answers import answer
from lakelog.spark.session.argument_checks import check_text, checked_names
from lakelog.spark.types.spark_types import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import DeltaLog, Optimized
    from lakelog.core.engine.maintenance import GivenOptimizeProgress


def _longs(names: str) -> StructType:
    return struct_of(**dict.fromkeys(names.split(), LongType()))


_SIZES = struct_of(
    min=LongType(), max=LongType(), avg=DoubleType(), totalFiles=LongType(), totalSize=LongType()
)
_CUBE_FILES = _longs("num size")
_CLUSTER_FILES = _longs("numFiles size")
_METRICS = struct_of(
    numFilesAdded=LongType(),
    numFilesRemoved=LongType(),
    filesAdded=_SIZES,
    filesRemoved=_SIZES,
    partitionsOptimized=LongType(),
    zOrderStats=struct_of(
        strategyName=StringType(),
        inputCubeFiles=_CUBE_FILES,
        inputOtherFiles=_CUBE_FILES,
        inputNumCubes=LongType(),
        mergedFiles=_CUBE_FILES,
        numOutputCubes=LongType(),
        mergedNumCubes=LongType(),
    ),
    clusteringStats=struct_of(
        inputZCubeFiles=_CLUSTER_FILES,
        inputOtherFiles=_CLUSTER_FILES,
        inputNumZCubes=LongType(),
        mergedFiles=_CLUSTER_FILES,
        numOutputZCubes=LongType(),
    ),
    numBins=LongType(),
    numBatches=LongType(),
    totalConsideredFiles=LongType(),
    totalFilesSkipped=LongType(),
    preserveInsertionOrder=BooleanType(),
    numFilesSkippedToReduceWriteAmplification=LongType(),
    numBytesSkippedToReduceWriteAmplification=LongType(),
    startTimeMs=LongType(),
    endTimeMs=LongType(),
    totalClusterParallelism=LongType(),
    totalScheduledTasks=LongType(),
    autoCompactParallelismStats=_longs(
        "maxClusterActiveParallelism minClusterActiveParallelism "
        "maxSessionActiveParallelism minSessionActiveParallelism"
    ),
    deletionVectorStats=_longs("numDeletionVectorsRemoved numDeletionVectorRowsRemoved"),
    numTableColumns=LongType(),
    numTableColumnsWithStats=LongType(),
)
_ANSWER = struct_of(path=StringType(), metrics=_METRICS)
"""The columns of delta-spark's answer."""


class DeltaOptimizeBuilder:
    """An OPTIMIZE to come; `DeltaTable.optimize` gives one."""

    def __init__(
        self,
        spark: SparkSession,
        log: DeltaLog,
        progress: GivenOptimizeProgress = None,
    ) -> None:
        """Build it from its parts; use `DeltaTable.optimize` to get one."""
        self._spark = spark
        self._log = log
        self._progress: GivenOptimizeProgress = progress
        self._conditions: list[str] = []

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:  # noqa: N803  # delta-spark's
        """Take the partitions alone for which a condition is true.

        Args:
            partitionFilter: SQL over partition columns; with several calls all must be true.
        """
        check_text(partitionFilter, "partitionFilter")
        self._conditions.append(partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:  # noqa: N802  # delta-spark's name
        """Put the rows of small files into large ones; of a clustered table, also in order.

        The work is Arrow's. Up to 1 GiB of files is rewritten by threads of the driver, without a
        Spark job; of more each new file is the work of a task on the executors.
        `lakelog.core.optimize` says which files are rewritten.

        Returns:
            One row: the table's path, and the metrics by delta-spark's names.

        Raises:
            InvalidPredicateError: the condition can't be parsed, or needs other columns than
                those of the partitioning.
            DeltaConcurrentModificationException: another writer changed a file that was being
                rewritten; nothing of that batch was committed.
            DeltaError: as `lakelog.core.optimize`.
        """
        return self._execute(None)

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:  # noqa: N802
        """Put all rows of the partitions in Z-order.

        Args:
            cols: columns, or one list of them.

        Returns:
            As `executeCompaction`.

        Raises:
            DeltaAnalysisError: a column that rows can't be ordered by, or a clustered table.
            DeltaError: as `executeCompaction`.
        """
        names = checked_names(cols, "Z-order column")
        if not names:
            raise DeltaAnalysisError("executeZOrderBy needs the name of a column, or several")
        return self._execute(names)

    def _execute(self, z_order_by: list[str] | None) -> DataFrame:
        conditions = self._conditions
        where = " AND ".join(f"({each})" for each in conditions) if conditions else None
        if len(conditions) == 1:
            where = conditions[0]
        done = optimize(self._log, where, z_order_by=z_order_by, progress=self._progress)
        return optimized_row(self._spark, self._log, done)


def optimized_row(spark: SparkSession, log: DeltaLog, done: Optimized) -> DataFrame:
    """The answer of OPTIMIZE: the table's path, and the metrics by delta-spark's names."""
    row = (log.table, _values(done.metrics.as_delta(), _METRICS))
    return answer(spark, _ANSWER, [row], done._repr_html_)


def _values(found: dict[str, Any] | None, kind: StructType) -> tuple[Any, ...] | None:
    """A struct's values in its order."""
    if found is None:
        return None
    return tuple(
        _values(found[each.name], each.dataType)
        if isinstance(each.dataType, StructType)
        else found[each.name]
        for each in kind
    )


class Optimization:
    """OPTIMIZE, as a method of `DeltaTable`."""

    _spark: SparkSession
    _log: DeltaLog

    def optimize(self, *, progress: GivenOptimizeProgress = None) -> DeltaOptimizeBuilder:
        """Begin an OPTIMIZE: `table.optimize().where("day = '2024-01-01'").executeCompaction()`.

        Args:
            progress: called with how far it is before the first file, after each that is written,
                or where executors write them after the last, and after each commit.
        """
        return DeltaOptimizeBuilder(self._spark, self._log, progress)
