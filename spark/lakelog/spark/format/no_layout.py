"""The refusal of layouts that a Delta table written by lakelog can't have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["no_layout_error"]


def no_layout_error(methods: Sequence[str]) -> DeltaAnalysisError:
    """What to say to `bucketBy`, `sortBy` and `clusterBy`."""
    buckets = [each for each in methods if each != "clusterBy"]
    if buckets:
        problem = (
            f"a Delta table does not support {', '.join(buckets)}: partition it with partitionBy, "
            "and sort rows within files with df.sortWithinPartitions"
        )
    else:
        problem = (
            "this method writes to clustered tables but can't create one: leave clusterBy out "
            "for a table that is already clustered, or create it with CREATE TABLE … CLUSTER BY, "
            "DeltaTable.create(spark).clusterBy(…) or df.writeTo(name).clusterBy(…)"
        )
    return DeltaAnalysisError(problem, methods=list(methods))
