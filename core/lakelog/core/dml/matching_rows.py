"""What a DELETE or UPDATE would touch, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.row_metrics import live_rows
from lakelog.core.compute import pc
from lakelog.core.dml.touched_files import touched_files
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import is_partition_only
from lakelog.core.features.protocol import check_writable
from lakelog.core.transaction.matching_files import matching_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.expressions.filter import Filter


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """The rows for which a condition is true, counted."""

    version: int
    """The version that was looked at."""
    rows: int
    files: int
    """The files that hold them."""


def matching_rows(
    log: DeltaLog, where: Filter | None, values: Mapping[str, Any] | None = None
) -> MatchingRows:
    """Count the rows that `delete_rows` or `update_rows` would touch in the newest version.

    The same code chooses the files and the rows. A condition on partition columns alone is answered
    by the log's statistics, where files have them; any other reads the columns that it names.

    Args:
        log: the table.
        where: as `delete_rows` takes it.
        values: the `set` of an UPDATE, which is checked but not evaluated on rows; `None` for a
            DELETE.

    Raises:
        DeltaError: what the command would refuse before it reads the rows.
    """
    txn = log.start_transaction()
    snapshot = txn.snapshot or log.snapshot  # raises, and says what is there instead
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    txn.changes.assert_removable()
    context = EvalContext.of(log.conf, log.clock.now_ms())
    condition = normalize_filter(where, snapshot.schema, context)
    if values is not None:
        from lakelog.core.dml.merge.updated_columns import UpdatedRows, updated_columns

        UpdatedRows(updated_columns(values, snapshot), snapshot, context)
    if condition is None or is_partition_only(condition, snapshot.partition_columns):
        files = matching_files(txn, condition)
        counts = [live_rows(file) for file in to_add_files(files)]
        unknown = files.filter(pc.equal([count is None for count in counts], True))
        known = [count for count in counts if count]
        read = list(touched_files(snapshot, unknown, None)) if unknown.num_rows else []
    else:
        known = []
        read = list(touched_files(snapshot, txn.reads.filter_file_table(condition), condition))
    return MatchingRows(
        version=snapshot.version,
        rows=sum(known) + sum(each.hit.true_count for each in read),
        files=len(known) + len(read),
    )
