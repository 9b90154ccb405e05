"""What a catalog wants of a table that is made in its hands, or replaced there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.catalogs.refusals import governed
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata
    from lakelog.logstores import LogStore

_FEATURE: Final = "delta.feature."
_OF_THE_CATALOG: Final = "io.unitycatalog."
_ASKED_FOR: Final = frozenset(
    (
        "delta.enableInCommitTimestamps",
        "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.checkpointPolicy",
        "delta.enableDeletionVectors",
        "delta.checkpoint.writeStatsAsJson",
        "delta.checkpoint.writeStatsAsStruct",
    )
)
"""What catalogs ask of their tables."""


def with_required(store: LogStore, metadata: Metadata, replaced: Metadata | None) -> Metadata:
    """The metadata of a new table, with what its catalog asks for; of a path, as it is.

    Args:
        store: of the table's log.
        metadata: as the creator wants it.
        replaced: that of the table in whose place it comes; None where there is none.

    Raises:
        DeltaAnalysisError: the creator wants something else.
    """
    found = governed(store)
    if found is None:
        return metadata
    given = metadata.configuration
    if found.unmade is None:
        before = {} if replaced is None else replaced.configuration
        kept = {k: v for k, v in before.items() if k in _ASKED_FOR or _is_its_own(k)}
        return replace(metadata, configuration={**kept, **given})
    asked = dict(found.unmade.properties)
    other = sorted(k for k in asked if k in given and given[k] != asked[k])
    if other:
        raise DeltaAnalysisError(
            f"the catalog {found.catalog.name} makes no table with {other[0]} = "
            f"{given[other[0]]!r}: it has to be {asked[other[0]]!r}. Leave the property out.",
            table=str(found.unmade.name),
            key=other[0],
        )
    features = {f"{_FEATURE}{each}": "supported" for each in sorted(found.unmade.features)}
    return replace(metadata, configuration={**asked, **features, **given})


def _is_its_own(key: str) -> bool:
    return key.startswith(_OF_THE_CATALOG)
