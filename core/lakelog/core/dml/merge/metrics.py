"""The metrics of MERGE, as Delta counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions.objects import AddCDCFile, AddFile
    from lakelog.core.dml.merge.clauses import MergeClause


@dataclass
class MergeMetrics:
    """Counts, made while the work is done."""

    source_rows: int = 0
    inserted: int = 0
    matched_updated: int = 0
    matched_deleted: int = 0
    by_source_updated: int = 0
    by_source_deleted: int = 0
    copied: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    added_files: int = 0
    added_bytes: int = 0
    change_files: int = 0
    vectors_added: int = 0
    vectors_removed: int = 0
    vectors_updated: int = 0
    source_ms: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0
    execution_ms: int = 0

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

    def count_removed(self, file: AddFile) -> None:
        """A file left the table."""
        self.removed_files += 1
        self.removed_bytes += file.size
        self.vectors_removed += file.deletion_vector is not None

    def count_masked(self, file: AddFile) -> None:
        """Count a new or replaced deletion vector; a replaced one is both removed and added."""
        had_one = file.deletion_vector is not None
        self.vectors_added += 1
        self.vectors_removed += had_one
        self.vectors_updated += had_one

    def count_added(self, adds: Sequence[AddFile], changes: Sequence[AddCDCFile]) -> None:
        """Count the files that were written."""
        self.added_files = len(adds)
        self.added_bytes = sum(add.size for add in adds)
        self.change_files = len(changes)

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
