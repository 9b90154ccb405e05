"""What the session may change about the conflict checks, by Delta's confs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.conf import DeltaConf

__all__ = ["USUAL_RULES", "ConflictRules", "unsafe_upgrades"]

_UNSAFE = frozenset(
    {
        "adaptiveMetadata-preview",
        "allowColumnDefaults",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "coordinatedCommits-preview",
        "generatedColumns",
        "geospatial",
        "geospatial-dev",
        "identityColumns",
        "invariants",
        "materializePartitionColumns",
        "redirectReaderWriter-preview",
        "redirectWriterOnly-preview",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Features of which a writer must have known when it wrote (delta:
`failConcurrentTransactionsAtUpgrade`)."""


@dataclass(frozen=True, slots=True)
class ConflictRules:
    """How strict the checks are."""

    strict_upgrades: bool = False
    """Whether a winner that adds a feature which writers must have known of is a conflict
    (`spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled`)."""
    goes_by_enablement: bool = True
    """Whether a winner that only switches features on may be gone by
    (`spark.databricks.delta.featureEnablement.conflictResolution.enabled`). Without it that holds
    for row tracking alone, where the winner says that it did nothing else."""

    @classmethod
    def of(cls, conf: DeltaConf) -> ConflictRules:
        """What the session says."""
        return cls(
            conf.get_bool("conflictChecker.enforceConcurrentFeatureEnablement.enabled", False),
            conf.get_bool("featureEnablement.conflictResolution.enabled", True),
        )


USUAL_RULES: Final = ConflictRules()
"""Those of a session that says nothing."""


def unsafe_upgrades(added: Iterable[str]) -> list[str]:
    """Those of some features of which a writer must have known when it wrote."""
    return sorted(_UNSAFE.intersection(added))
