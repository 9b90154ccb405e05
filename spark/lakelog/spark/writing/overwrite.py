"""Which files a write removes, and which of their rows it has to keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from lakelog.core.engine.conditions import EvalContext, is_partition_only, normalize_filter
from lakelog.core.engine.log import to_add_files
from lakelog.core.engine.scan import readable_partitions
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.spark.reading.read_files import files_df
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.spark_types import without_void
from lakelog.spark.writing.projection import projection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakelog.core import OptimisticTransaction, Snapshot
    from lakelog.core.actions import AddFile
    from lakelog.core.engine.write import TableWrite
    from lakelog.core.schema import StructType
    from lakelog.spark.writing.options import WriteOptions


@dataclass(frozen=True, slots=True)
class Replaced:
    """What an overwrite removes from the table."""

    files: Sequence[AddFile] = field(default_factory=list)
    kept_rows: DataFrame | None = None
    """Rows of those files that must be written again, with the table's columns."""
    deleted_rows: DataFrame | None = None
    """Those that are not, where some are."""


def replaced_before(
    write: TableWrite, spark: SparkSession, target: StructType, options: WriteOptions
) -> Replaced:
    """What the write replaces, as far as that is known before the new files are written.

    Args:
        write: its transaction records the reads.
        spark: reads the rows to keep.
        target: the columns of the table after the write.
        options: the caller's.

    Raises:
        InvalidPredicateError: `replaceWhere` can't be parsed or names an unknown column.
        CorruptLogError: a file that it may match has a partition value that can't be read.
    """
    if options.mode == "overwrite" and not options.dynamic_overwrite:
        if options.replace_column is not None:
            return _matching_column(write.txn, spark, target, options.replace_column)
        if options.replace_where is not None:
            return _matching(write, spark, target, options)
    return Replaced(write.replaced_before())


def _matching(
    write: TableWrite, spark: SparkSession, target: StructType, options: WriteOptions
) -> Replaced:
    """The files that `replaceWhere` may match; rows of theirs that it does not match are kept."""
    txn, snapshot = write.txn, write.txn.snapshot
    if snapshot is None or options.replace_where is None:
        return Replaced()
    context = EvalContext.of(snapshot.conf)
    predicate = normalize_filter(options.replace_where, snapshot.schema, context)
    if predicate is None:
        return Replaced()
    if is_partition_only(predicate, snapshot.partition_columns):
        try:
            return Replaced(write.replaced_before(predicate))
        except InvalidPredicateError:  # Spark knows the zone's rules, or the function
            condition = sf.expr(str(options.replace_where))
            return _matching_column(txn, spark, target, condition)
    files = txn.reads.filter_file_table(predicate)
    if not options.data_change:
        raise DeltaAnalysisError(
            "[DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET] replaceWhere on columns that the "
            f"table {snapshot.table} is not partitioned by can't go with dataChange=false",
            table=snapshot.table,
            predicate=options.replace_where,
        )
    if not files.num_rows:
        return Replaced()
    schema = without_void(snapshot.schema)
    rows = files_df(spark, snapshot, files, schema=schema)
    columns = projection(schema, target)

    def those(condition: str) -> DataFrame:
        found = rows.where(condition)
        return found if columns is None else found.selectExpr(*columns)

    # Null is no match, as in Delta: such a row stays.
    matches = f"(({options.replace_where}) <=> true)"
    return Replaced(to_add_files(files), those(f"NOT {matches}"), those(matches))


def _matching_column(
    txn: OptimisticTransaction, spark: SparkSession, target: StructType, condition: Column
) -> Replaced:
    """As `_matching`, for a condition that can't be read here, so that every file may match."""
    snapshot = txn.snapshot
    files = txn.reads.filter_file_table()
    if snapshot is None or not files.num_rows:
        return Replaced()
    matching = _of_partitions(snapshot, spark, files, condition)
    if matching is not None:
        return Replaced(to_add_files(files.filter(matching)))
    schema = without_void(snapshot.schema)
    rows = files_df(spark, snapshot, files, schema=schema)
    columns = projection(schema, target)
    matches = sf.coalesce(condition, sf.lit(False))

    def those(wanted: Column) -> DataFrame:
        found = rows.where(wanted)
        return found if columns is None else found.selectExpr(*columns)

    return Replaced(to_add_files(files), those(~matches), those(matches))


_ROW = "__lakelog_file"


def _of_partitions(
    snapshot: Snapshot, spark: SparkSession, files: pa.Table, condition: Column
) -> pa.Array[Any] | None:
    """For each file whether its partition matches; `None` for a condition on other columns too."""
    if not snapshot.partition_columns:
        return None
    values = readable_partitions(snapshot, files)
    numbered = values.append_column(_ROW, [range(files.num_rows)])
    # By its metadata Spark knows a CHAR, with which it compares otherwise.
    own = [
        sf.col(quoted(f.name)).alias(f.name, metadata=dict(f.metadata))
        for f in snapshot.partition_schema
    ]
    try:
        frame = spark.createDataFrame(numbered).select(*own, _ROW)
        found = frame.where(condition).select(_ROW).collect()
    except AnalysisException:
        return None
    matching = {row[0] for row in found}
    return pa.array((at in matching for at in range(files.num_rows)), pa.bool_())
