"""The metrics of MERGE, as Delta counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.actions.row_metrics import FileMetrics

if TYPE_CHECKING:
    from lakelog.core.dml.merge.clauses import MergeClause


@dataclass
class MergeMetrics(FileMetrics):
    """The counts of MERGE."""

    source_rows: int = 0
    inserted: int = 0
    matched_updated: int = 0
    matched_deleted: int = 0
    by_source_updated: int = 0
    by_source_deleted: int = 0
    source_ms: int = 0

    def count_rows(self, clause: MergeClause, rows: int) -> None:
        """Count rows that a clause applied to."""
        if clause.action == "insert":
            self.inserted += rows
        elif clause.when == "matched":
            if clause.action == "update":
                self.matched_updated += rows
            else:
                self.matched_deleted += rows
        elif clause.action == "update":
            self.by_source_updated += rows
        else:
            self.by_source_deleted += rows

    def operation_metrics(self) -> dict[str, int]:
        """The operation metrics under the names that Delta gives them."""
        updated = self.matched_updated + self.by_source_updated
        return {
            "numSourceRows": self.source_rows,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsMatchedUpdated": self.matched_updated,
            "numTargetRowsNotMatchedBySourceUpdated": self.by_source_updated,
            "numTargetRowsDeleted": self.matched_deleted + self.by_source_deleted,
            "numTargetRowsMatchedDeleted": self.matched_deleted,
            "numTargetRowsNotMatchedBySourceDeleted": self.by_source_deleted,
            "numTargetRowsCopied": self.copied,
            "numOutputRows": self.inserted + updated + self.copied,
            "numTargetFilesAdded": self.added_files,
            "numTargetFilesRemoved": self.removed_files,
            "numTargetBytesAdded": self.added_bytes,
            "numTargetBytesRemoved": self.removed_bytes,
            "numTargetChangeFilesAdded": self.change_files,
            "numTargetDeletionVectorsAdded": self.vectors_added,
            "numTargetDeletionVectorsRemoved": self.vectors_removed,
            "numTargetDeletionVectorsUpdated": self.vectors_updated,
            "materializeSourceTimeMs": self.source_ms,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": self.rewrite_ms,
            "executionTimeMs": self.execution_ms,
        }
