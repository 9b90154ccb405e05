"""Which files a write removes, and which rows of theirs it has to keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions import is_partition_only, normalize_filter
from lakelog.core.file_table import to_add_files
from lakelog.core.replaced_files import matching_files
from lakelog.spark._conform import projection
from lakelog.spark._files_read import files_df
from lakelog.spark._session import session_timezone
from lakelog.spark._types import without_void

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core.actions import AddFile
    from lakelog.core.schema import StructType
    from lakelog.core.transaction import OptimisticTransaction
    from lakelog.spark._options import WriteOptions

__all__ = ["Replaced", "replaced_before", "replaced_by"]


@dataclass(frozen=True, slots=True)
class Replaced:
    """What an overwrite takes out of the table."""

    files: Sequence[AddFile] = field(default_factory=list)
    kept_rows: DataFrame | None = None
    """Rows of those files that are to be written again, with the table's columns."""
    deleted_rows: DataFrame | None = None
    """Those that are not, where some are."""


def replaced_before(
    txn: OptimisticTransaction, spark: SparkSession, target: StructType, options: WriteOptions
) -> Replaced:
    """What the write replaces, as far as that is known before the new files are.

    Args:
        txn: the transaction, which records the reads.
        spark: reads the rows to keep.
        target: the columns of the table after the write.
        options: the caller's.

    Raises:
        InvalidPredicateError: `replaceWhere` can't be parsed or names an unknown column.
        CorruptLogError: a file that it may match has a partition value that can't be read.
    """
    if options.mode != "overwrite" or options.dynamic_overwrite or txn.snapshot is None:
        return Replaced()
    if options.replace_where is None:
        return Replaced(txn.filter_files())
    return _matching(txn, spark, target, options)


def replaced_by(
    txn: OptimisticTransaction, adds: Sequence[AddFile], options: WriteOptions
) -> Replaced:
    """What a dynamic overwrite replaces: the files of the partitions that new files lie in."""
    if not options.dynamic_overwrite or txn.snapshot is None:
        return Replaced()
    if not txn.metadata.partition_columns:
        return Replaced(txn.filter_files())
    return Replaced(txn.files_in_same_partitions(adds))


def _matching(
    txn: OptimisticTransaction, spark: SparkSession, target: StructType, options: WriteOptions
) -> Replaced:
    """The files that `replaceWhere` may match; rows of theirs that it does not match are kept."""
    snapshot = txn.snapshot
    if snapshot is None or options.replace_where is None:
        return Replaced()
    predicate = normalize_filter(
        options.replace_where, snapshot.schema, session_tz=session_timezone(spark)
    )
    if predicate is None:
        return Replaced()
    if is_partition_only(predicate, snapshot.partition_columns):
        return Replaced(to_add_files(matching_files(txn, predicate)))
    files = txn.filter_file_table(predicate)
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

    matches = f"(({options.replace_where}) <=> true)"
    return Replaced(to_add_files(files), those(f"NOT {matches}"), those(matches))
