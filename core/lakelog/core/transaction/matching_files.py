"""The files that a condition removes from a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.data.readable_partitions import readable_partitions
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.tree import is_computed

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.transaction.optimistic import OptimisticTransaction


def matching_files(txn: OptimisticTransaction, condition: Expression | None) -> pa.Table:
    """The files that a condition on partition columns matches, to be removed from the table.

    Pruning keeps a file whose partition value it doesn't understand, because a reader must not miss
    it; a writer must not remove it.

    Args:
        txn: the transaction, which records the read.
        condition: bound to the schema; `None` matches every file, whatever its values are.

    Raises:
        CorruptLogError: one of them has a partition value that can't be read.
        DeltaAnalysisError: the condition has no result for the values of some file.
    """
    files = txn.reads.filter_file_table(condition)
    if condition is None or txn.snapshot is None:
        return files
    values = readable_partitions(txn.snapshot, files)
    if not is_computed(condition) or not files.num_rows:
        return files
    # Pruning kept what it could not compute.
    return files.filter(evaluate_mask(condition, values, txn.snapshot.partition_schema))
