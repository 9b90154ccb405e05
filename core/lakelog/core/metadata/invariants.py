"""What new metadata must leave true of the files and the domains that a table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import check_clustered
from lakelog.core.features.iceberg_compat import check_compat_metadata
from lakelog.core.features.properties import TableProperties, is_kept
from lakelog.core.features.protocol import supported_features
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import read_schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import DomainMetadata, Metadata, Protocol
    from lakelog.core.state.snapshot import Snapshot

__all__ = ["check_promises", "refuse_deletion_vectors"]


def check_promises(
    snapshot: Snapshot | None,
    new: Metadata,
    protocol: Protocol,
    *,
    replaces: bool = False,
    domains: Mapping[str, DomainMetadata] | None = None,
) -> None:
    """Refuse metadata under which a promise of the table would be broken.

    Args:
        snapshot: the table as it is; None for a new one.
        new: as it will be, with ids and physical names.
        protocol: as it will be.
        replaces: whether no earlier file stays.
        domains: as they will be; `None` where they stay.

    Raises:
        DeltaAnalysisError: of a table that is read as Iceberg, or that is clustered.
    """
    partitions = list(new.partition_columns)
    if snapshot is None:
        check_compat_metadata(None, new, lambda: False)
        if partitions and "clustering" in supported_features(protocol):
            raise DeltaAnalysisError(
                "[DELTA_CLUSTER_BY_WITH_PARTITIONED_BY] Clustering and partitioning cannot both "
                f"be specified, but the table would be partitioned by {', '.join(partitions)}. "
                "Leave out either the feature clustering or the partitioning."
            )
        return
    check_compat_metadata(snapshot.metadata, new, lambda: not replaces and snapshot.num_files > 0)
    mode = TableProperties(new.configuration).column_mapping_mode
    schema = read_schema_of(StructType.from_json(new.schema_string), mode)
    check_clustered(schema, partitions, snapshot.domain_metadata if domains is None else domains)


def refuse_deletion_vectors(snapshot: Snapshot | None, metadata: Metadata, table: str) -> None:
    """Refuse to enable the manifests while files of the table have deletion vectors.

    Raises:
        DeltaAnalysisError: they have.
    """
    if snapshot is None or not is_kept(metadata) or is_kept(snapshot.metadata):
        return
    if snapshot.has_deletion_vectors:
        raise DeltaAnalysisError(
            "[DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED."
            "EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION] The validation of "
            f"the properties of table {table} has been violated: Symlink manifest generation is "
            "unsupported while deletion vectors are present in the table. In order to produce a "
            f"version of the table without deletion vectors, run 'REORG TABLE delta.`{table}` "
            "APPLY (PURGE)' in delta-spark.",
            table=table,
        )
