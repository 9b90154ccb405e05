"""Numbers of many live files at once, by columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core.engine.log import read_stats
from lakelog.core.engine.values import pc

if TYPE_CHECKING:
    import pyarrow as pa


def row_counts(files: pa.Table) -> Any:
    """The live rows of each file, null where its statistics do not say.

    Args:
        files: rows of `FILE_SCHEMA`.
    """
    counts = read_stats(files["stats"], {}).num_records
    # Statistics also count the rows that a deletion vector takes out of a file.
    deleted = pc.struct_field(files["deletion_vector"], "cardinality")
    return pc.subtract(counts, pc.fill_null(deleted, 0).combine_chunks())


def total(counts: Any) -> tuple[int | None, int]:
    """The sum, and how many are unknown; no sum where all are."""
    unknown = int(counts.null_count)
    if unknown == len(counts) and unknown:
        return None, unknown
    return int(pc.sum(counts).as_py() or 0), unknown
