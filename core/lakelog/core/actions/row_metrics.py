"""The metrics of DELETE and UPDATE, as Delta counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.actions.objects import AddCDCFile, AddFile


@dataclass
class FileMetrics:
    """What DELETE, UPDATE and MERGE count of files, while the work is done."""

    copied: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    added_files: int = 0
    added_bytes: int = 0
    change_files: int = 0
    vectors_added: int = 0
    vectors_removed: int = 0
    vectors_updated: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0
    execution_ms: int = 0

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


@dataclass
class RowMetrics(FileMetrics):
    """The counts of DELETE and UPDATE."""

    touched: int | None = 0
    """Rows deleted or updated; `None` where whole files went whose statistics do not say."""

    def count_touched(self, rows: int | None) -> None:
        """Count rows that were deleted or updated; `None` where the number is unknown."""
        self.touched = None if rows is None or self.touched is None else self.touched + rows

    def count_whole(self, file: AddFile) -> None:
        """Every row of a file that was not read is gone."""
        self.count_touched(live_rows(file))

    def operation_metrics(self, rows: str) -> dict[str, int]:
        """The operation metrics under the names that Delta gives them.

        Args:
            rows: what touched rows are called, `numDeletedRows` or `numUpdatedRows`.
        """
        found = {
            "numRemovedFiles": self.removed_files,
            "numRemovedBytes": self.removed_bytes,
            "numAddedFiles": self.added_files,
            "numAddedBytes": self.added_bytes,
            "numAddedChangeFiles": self.change_files,
            "numDeletionVectorsAdded": self.vectors_added,
            "numDeletionVectorsRemoved": self.vectors_removed,
            "numDeletionVectorsUpdated": self.vectors_updated,
            rows: self.touched,
            "numCopiedRows": self.copied,
            "executionTimeMs": self.execution_ms,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": self.rewrite_ms,
        }
        if self.touched is None:
            # Delta says nothing of rows then, rather than that there were none.
            del found["numCopiedRows"], found["numAddedFiles"]
        return {name: value for name, value in found.items() if value is not None}


def live_rows(file: AddFile) -> int | None:
    """The rows of a file without those of its deletion vector; `None` where not recorded."""
    rows = file.num_records
    if rows is None or file.deletion_vector is None:
        return rows
    return rows - file.deletion_vector.cardinality
