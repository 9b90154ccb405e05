"""What a run of OPTIMIZE did, by Delta's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelog.core.shown.notebook import ShownFields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakelog.core.actions import AddFile


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Sizes of some files, in bytes."""

    min: int | None = None
    max: int | None = None
    avg: float = 0.0
    total_files: int = 0
    total_size: int = 0

    @classmethod
    def measured(cls, files: Iterable[AddFile]) -> FileSizes:
        """The sizes of some files; `min` and `max` are `None` where there are none."""
        sizes = [file.size for file in files]
        if not sizes:
            return cls()
        total = sum(sizes)
        return cls(min(sizes), max(sizes), total / len(sizes), len(sizes), total)

    def as_delta(self) -> dict[str, Any]:
        """By Delta's names."""
        return {
            "min": self.min,
            "max": self.max,
            "avg": self.avg,
            "totalFiles": self.total_files,
            "totalSize": self.total_size,
        }


@dataclass(frozen=True, slots=True)
class OptimizeMetrics(ShownFields):
    """The metrics that OPTIMIZE returns, over all of its commits."""

    files_added: FileSizes = field(default_factory=FileSizes)
    files_removed: FileSizes = field(default_factory=FileSizes)
    partitions_optimized: int = 0
    num_bins: int = 0
    num_batches: int = 0
    """Commits; 1 for a run without a batch size, even where there was nothing to commit."""
    total_considered_files: int = 0
    """The table's, or those of the partitions that the condition chose."""
    total_files_skipped: int = 0
    num_deletion_vectors_removed: int = 0
    num_deletion_vector_rows_removed: int = 0
    num_table_columns: int = 0
    num_table_columns_with_stats: int = 0
    start_time_ms: int = 0
    end_time_ms: int = 0
    parallelism: int = 1
    """Bins that were rewritten at once, at most."""
    z_order_stats: Mapping[str, Any] | None = None
    """By Delta's names; `None` unless rows were ordered by `z_order_by`."""
    clustering_stats: Mapping[str, Any] | None = None
    """By Delta's names; `None` unless the table is clustered."""

    @property
    def num_files_added(self) -> int:
        """Files written."""
        return self.files_added.total_files

    @property
    def num_files_removed(self) -> int:
        """Files that they replaced."""
        return self.files_removed.total_files

    def as_delta(self) -> dict[str, Any]:
        """The struct that delta-spark returns, by its names and in its order."""
        vectors = None
        if self.num_deletion_vectors_removed:
            vectors = {
                "numDeletionVectorsRemoved": self.num_deletion_vectors_removed,
                "numDeletionVectorRowsRemoved": self.num_deletion_vector_rows_removed,
            }
        return {
            "numFilesAdded": self.num_files_added,
            "numFilesRemoved": self.num_files_removed,
            "filesAdded": self.files_added.as_delta(),
            "filesRemoved": self.files_removed.as_delta(),
            "partitionsOptimized": self.partitions_optimized,
            "zOrderStats": None if self.z_order_stats is None else dict(self.z_order_stats),
            "clusteringStats": (
                None if self.clustering_stats is None else dict(self.clustering_stats)
            ),
            "numBins": self.num_bins,
            "numBatches": self.num_batches,
            "totalConsideredFiles": self.total_considered_files,
            "totalFilesSkipped": self.total_files_skipped,
            "preserveInsertionOrder": False,
            "numFilesSkippedToReduceWriteAmplification": 0,
            "numBytesSkippedToReduceWriteAmplification": 0,
            "startTimeMs": self.start_time_ms,
            "endTimeMs": self.end_time_ms,
            "totalClusterParallelism": self.parallelism,
            "totalScheduledTasks": 0,
            "autoCompactParallelismStats": None,
            "deletionVectorStats": vectors,
            "numTableColumns": self.num_table_columns,
            "numTableColumnsWithStats": self.num_table_columns_with_stats,
        }


def operation_metrics(added: Sequence[AddFile], removed: Sequence[AddFile]) -> dict[str, int]:
    """What the history shows of one commit.

    Args:
        added: none where every row of the others was deleted.
        removed: those that they replace.
    """
    sizes = sorted(file.size for file in added) or [0]
    count = len(sizes)
    return {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": sum(file.size for file in removed),
        "minFileSize": sizes[0],
        "p25FileSize": sizes[count // 4],
        "p50FileSize": sizes[count // 2],
        "p75FileSize": sizes[count * 3 // 4],
        "maxFileSize": sizes[-1],
        "numDeletionVectorsRemoved": sum(file.deletion_vector is not None for file in removed),
    }
