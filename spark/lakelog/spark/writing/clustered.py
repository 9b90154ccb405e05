"""`clusterBy` of writers: a new table is clustered, an existing one must already be clustered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine.tables import shown_columns
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.writing.options import TableDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core import DeltaLog


def check_clustering(log: DeltaLog, cluster_by: Sequence[str]) -> bool:
    """Whether there is a table, which then has to be clustered by some columns.

    Args:
        log: of the table.
        cluster_by: the columns; empty: those that it has.

    Raises:
        DeltaAnalysisError: it is clustered by others, or by none.
    """
    if not log.table_exists():
        return False
    there = shown_columns(log.update()) if cluster_by else []
    if [each.lower() for each in there] != [each.lower() for each in cluster_by]:
        raise DeltaAnalysisError(
            "[DELTA_CLUSTERING_COLUMNS_MISMATCH] The provided clustering columns do not match the "
            f"existing table's: provided {', '.join(cluster_by)}; existing "
            f"{', '.join(there) or 'none'}. Leave clusterBy out, or change the table with "
            "ALTER TABLE … CLUSTER BY (…)",
            table=log.table,
            provided=list(cluster_by),
            existing=there,
        )
    return True


def clustered_table(
    log: DeltaLog, cluster_by: Sequence[str], options: Mapping[str, str]
) -> TableDefinition | None:
    """What a write makes of a table that is not there, if it is to be clustered.

    Args:
        log: of the table.
        cluster_by: the columns.
        options: of the write, which may have properties.

    Raises:
        DeltaAnalysisError: see `check_clustering`.
    """
    if not cluster_by or check_clustering(log, cluster_by):
        return None
    return TableDefinition(
        operation="CREATE TABLE AS SELECT",
        properties={k: v for k, v in options.items() if k.lower().startswith("delta.")},
        cluster_by=cluster_by,
    )
