"""Publishing what a catalog ratified, once no caller waits for it.

A commit by name is in the table when its catalog has ratified it. Its file gets its published name
in the background, in order, and so do the reports: of the publishing, and of what the commit did.
What fails, or is left out, the next commit does, whoever makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.catalogs.refusals import governed
from lakelog.core.hooks.background import do_later

if TYPE_CHECKING:
    from lakelog.core.catalogs.contract import CommitMetrics
    from lakelog.core.hooks.post_commit import CommittedTransaction
    from lakelog.core.table_log import TableLog


def publish_hook(committed: CommittedTransaction) -> None:
    """Let the commit be published, where a catalog governs the table."""
    if governed(committed.delta_log.store) is not None:
        publish_later(committed.delta_log, commit_metrics(committed))


def publish_later(log: TableLog, metrics: CommitMetrics | None = None) -> None:
    """Let what is ratified be published, where a catalog governs the table.

    Args:
        log: the table's.
        metrics: of the commit that was made; None where they are not known.
    """
    store = governed(log.store)
    if store is not None:
        do_later(log.table, "publishing commits", lambda: store.end_commit(metrics))


def commit_metrics(committed: CommittedTransaction) -> CommitMetrics:
    """What a commit did, as far as its actions and its history say."""
    from lakelog.core.catalogs.contract import CommitMetrics

    adds = [each for each in committed.actions if isinstance(each, AddFile)]
    removed = [each.size for each in committed.actions if isinstance(each, RemoveFile)]
    sizes = [each for each in removed if each is not None]
    said, info = committed.commit_info.operation_metrics or {}, committed.commit_info

    def rows(*names: str) -> int | None:
        found = next((said[each] for each in names if each in said), None)
        return None if found is None else int(found)

    # Of a MERGE these are all rows that were written, the copied ones among them.
    written = () if info.operation == "MERGE" else ("numOutputRows",)
    return CommitMetrics(
        files_added=len(adds),
        bytes_added=sum(each.size for each in adds),
        files_removed=len(removed),
        bytes_removed=sum(sizes) if len(sizes) == len(removed) else None,
        rows_inserted=rows("numTargetRowsInserted", *written),
        rows_removed=rows("numTargetRowsDeleted", "numDeletedRows"),
        rows_updated=rows("numTargetRowsUpdated", "numUpdatedRows"),
    )
