"""The refusal of layouts that a Delta table written by lakelog can't have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence


def no_layout_error(methods: Sequence[str]) -> DeltaAnalysisError:
    """What to say to `bucketBy` and `sortBy`."""
    return DeltaAnalysisError(
        f"a Delta table does not support {', '.join(methods)}: partition it with partitionBy, "
        "cluster it with clusterBy, and sort rows within files with df.sortWithinPartitions",
        methods=list(methods),
    )
