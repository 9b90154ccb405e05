"""Clustering: the columns that a table's files are sorted by, in its domain `delta.clustering`.

Writers keep the domain and the statistics of those columns; ordering files is the business of
OPTIMIZE (PROTOCOL.md, "Clustered Table").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from lakelog.core.actions import DomainMetadata
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.column_mapping import physical_path
from lakelog.core.schema.column_paths import dotted, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.schema import StructType

CLUSTERING_DOMAIN = "delta.clustering"


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> list[tuple[str, ...]]:
    """The paths of the clustering columns, by the names that files have.

    Args:
        domains: the table's, removed ones left out.

    Raises:
        DeltaAnalysisError: the domain can't be read.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed:
        return []
    try:
        paths = orjson.loads(domain.configuration)["clusteringColumns"]
        # Delta writes each column as the list of its names; a plain name was allowed once.
        return [(path,) if isinstance(path, str) else tuple(map(str, path)) for path in paths]
    except (ValueError, KeyError, TypeError) as exc:
        raise DeltaAnalysisError(
            f"the table's domain {CLUSTERING_DOMAIN} can't be read: {domain.configuration!r} "
            f"({exc}). Cluster the table again with the client that wrote it.",
            domain=CLUSTERING_DOMAIN,
        ) from exc


def clustering_action(columns: Sequence[Sequence[str]]) -> DomainMetadata:
    """The action that clusters a table by some columns, or by none.

    Args:
        columns: their paths, by the names that files have.
    """
    said = {"clusteringColumns": [list(path) for path in columns], "domainName": CLUSTERING_DOMAIN}
    return DomainMetadata(
        domain=CLUSTERING_DOMAIN, configuration=orjson.dumps(said).decode(), removed=False
    )


def check_clustered(
    schema: StructType, partition_columns: list[str], domains: Mapping[str, DomainMetadata]
) -> None:
    """Refuse metadata that a clustered table can't have.

    Args:
        schema: the new one, with the metadata of column mapping only where it counts.
        partition_columns: the new ones.
        domains: the table's.

    Raises:
        DeltaAnalysisError: partition columns, or a clustering column that is gone.
    """
    columns = clustering_columns(domains)
    if not columns:
        return
    if partition_columns:
        raise DeltaAnalysisError(
            "[DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE] Replacing a clustered Delta "
            "table with a partitioned table is not allowed: it is clustered by "
            f"{', '.join(map(dotted, columns))}. Leave partitioning out, or write to a new table.",
            columns=[dotted(path) for path in columns],
        )
    there = {
        tuple(name.lower() for name in physical_path(schema, path))
        for path, _ in walk(schema, containers=False)
    }
    gone = [path for path in columns if tuple(name.lower() for name in path) not in there]
    if gone:
        raise DeltaAnalysisError(
            "[DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN] Dropping clustering columns "
            f"({', '.join(map(dotted, gone))}) is not allowed. Keep them, or cluster the table by "
            "others first, with a client that supports it.",
            columns=[dotted(path) for path in gone],
        )
