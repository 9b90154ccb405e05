"""What new metadata must leave true of the files and the domains that a table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.clustering import check_clustered
from lakelog.core.column_mapping import read_schema_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.iceberg_compat import check_compat_metadata
from lakelog.core.properties import TableProperties
from lakelog.core.protocol import supported_features
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata, Protocol
    from lakelog.core.snapshot import Snapshot

__all__ = ["check_promises"]


def check_promises(
    snapshot: Snapshot | None, new: Metadata, protocol: Protocol, *, replaces: bool = False
) -> None:
    """Refuse metadata under which a promise of the table would be broken.

    Args:
        snapshot: the table as it is; None for a new one.
        new: as it shall be, ids and physical names given.
        protocol: as it shall be.
        replaces: whether no file of before stays.

    Raises:
        DeltaAnalysisError: of a table that is read as Iceberg, or that is clustered.
    """
    partitions = list(new.partition_columns)
    if snapshot is None:
        check_compat_metadata(None, new, lambda: False)
        if partitions and "clustering" in supported_features(protocol):
            raise DeltaAnalysisError(
                "[DELTA_CLUSTER_BY_WITH_PARTITIONED_BY] Clustering and partitioning cannot both "
                f"be specified, and the table is to be partitioned by {', '.join(partitions)}. "
                "Leave the feature clustering or the partitioning out."
            )
        return
    check_compat_metadata(snapshot.metadata, new, lambda: not replaces and snapshot.num_files > 0)
    mode = TableProperties(new.configuration).column_mapping_mode
    schema = read_schema_of(StructType.from_json(new.schema_string), mode)
    check_clustered(schema, partitions, snapshot.domain_metadata)
