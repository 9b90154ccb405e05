"""How every command that writes files ends: with one commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakelog.core.actions import SetTransaction
from lakelog.core.features.numbered_rows import preservation_tags
from lakelog.core.shown.notebook import ShownFields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.transaction.optimistic import OptimisticTransaction


@dataclass(frozen=True, slots=True)
class RowsChanged(ShownFields):
    """What a command that changes rows did."""

    version: int | None
    """The version of the commit; `None` where there was nothing to do and nothing was committed."""
    metrics: Mapping[str, int] = field(default_factory=dict)
    """The operation's metrics, as the history shows them."""


def is_recorded(txn: OptimisticTransaction, batch: tuple[str, int] | None) -> bool:
    """Whether the table has a batch already: what it would do is done.

    A commit that records the same application meanwhile conflicts.

    Args:
        txn: what was read counts as read of it.
        batch: the application, and the version that it gives the batch; `None` is not recorded.
    """
    return batch is not None and txn.txn_version(batch[0]) >= batch[1]


def commit_command(
    txn: OptimisticTransaction,
    actions: Sequence[Action],
    operation: Operation,
    *,
    batch: tuple[str, int] | None = None,
    keeps_row_ids: bool | None = None,
    skips_empty: bool = True,
) -> RowsChanged:
    """Commit what a command has written.

    Args:
        txn: recorded what was read. Its metadata is what the files were written for.
        actions: the command's, in the order of the log.
        operation: what history shows.
        batch: what the table records as done by it; see `is_recorded`.
        keeps_row_ids: whether every row that the command moved has the id that it had; `None`
            where it moved none.
        skips_empty: whether nothing is committed where there is nothing to do.

    Raises:
        DeltaError: what `OptimisticTransaction.commit` raises.
    """
    # From here on the metadata stays as it is: the files were written for it.
    txn.changes.mark_written()
    if batch is not None:
        now = txn.delta_log.clock.now_ms()
        mark = SetTransaction(app_id=batch[0], version=batch[1], last_updated=now)
        actions = [mark, *actions]
    if keeps_row_ids is not None:
        tags = preservation_tags(txn.changes.terms, preserved=keeps_row_ids)
        operation = replace(operation, tags={**operation.tags, **tags})
    commit = txn.commit_if_needed if skips_empty else txn.commit
    version = commit(actions, operation)
    counts = {name: each for name, each in operation.metrics.items() if isinstance(each, int)}
    return RowsChanged(version, counts)
