"""How the session may configure the conflict checks, by Delta's confs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

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
"""Features that a writer must have known about when it wrote its files.

Delta marks them `failConcurrentTransactionsAtUpgrade`. Many govern what a file must hold (check
constraints, generated columns, clustering, materialized partition columns), and files written
without them may not."""


@dataclass(frozen=True, slots=True)
class ConflictRules:
    """How strict the checks are."""

    strict_upgrades: bool = False
    """Whether a winner that adds a feature which writers must have known about is a conflict
    (`spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled`).
    Off by default, as in Delta."""
    goes_by_enablement: bool = True
    """Whether a winner that only enables features may be ignored
    (`spark.databricks.delta.featureEnablement.conflictResolution.enabled`). If not, only one that
    enables row tracking may, and only if its tag says that it did nothing else: Delta's legacy
    rule."""


USUAL_RULES: Final = ConflictRules()
"""Those of a session that sets none of the confs."""


def unsafe_upgrades(added: Iterable[str]) -> list[str]:
    """The features among `added` that a writer must have known about when it wrote."""
    return sorted(_UNSAFE.intersection(added))
