"""What new metadata must leave true of the files and the domains that a table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import check_clustered
from lakelog.core.features.iceberg_compat import check_compat_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import DomainMetadata
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.state.snapshot import Snapshot


def check_promises(
    snapshot: Snapshot | None,
    new: TableTerms,
    *,
    replaces: bool = False,
    domains: Mapping[str, DomainMetadata] | None = None,
) -> None:
    """Refuse metadata under which a promise of the table would be broken.

    Args:
        snapshot: the table as it is; None for a new one.
        new: what it will be, with ids and physical names.
        replaces: whether no earlier file stays.
        domains: as they will be; `None` where they stay.

    Raises:
        DeltaAnalysisError: of a table that is read as Iceberg, or that is clustered.
    """
    partitions = list(new.metadata.partition_columns)
    if snapshot is None:
        check_compat_metadata(None, new.metadata, lambda: False)
        if partitions and "clustering" in new.features:
            raise DeltaAnalysisError(
                "[DELTA_CLUSTER_BY_WITH_PARTITIONED_BY] Clustering and partitioning cannot both "
                f"be specified, but the table would be partitioned by {', '.join(partitions)}. "
                "Leave out either the feature clustering or the partitioning."
            )
        return
    check_compat_metadata(
        snapshot.metadata, new.metadata, lambda: not replaces and snapshot.num_files > 0
    )
    domains = snapshot.domain_metadata if domains is None else domains
    check_clustered(new.read_schema, partitions, domains)


def refuse_deletion_vectors(snapshot: Snapshot | None, new: TableTerms, table: str) -> None:
    """Refuse to enable the manifests while files of the table have deletion vectors.

    Raises:
        DeltaAnalysisError: they have.
    """
    if snapshot is None or not new.keeps_symlink_manifest or snapshot.terms.keeps_symlink_manifest:
        return
    if snapshot.has_deletion_vectors:
        raise DeltaAnalysisError(
            "[DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED."
            "EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION] The validation of "
            f"the properties of table {table} has been violated: Symlink manifest generation is "
            "unsupported while deletion vectors are present in the table. In order to produce a "
            f"version of the table without deletion vectors, run lakelog.core.purge, or "
            f"'REORG TABLE delta.`{table}` APPLY (PURGE)' in Spark.",
            table=table,
        )
