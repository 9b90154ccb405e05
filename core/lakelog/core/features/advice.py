"""What to do about a table feature: how a table gets it, and what helps where we refuse it.

Error messages and the table of features (docs/features.md) use the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core.features.registry import FEATURES, Feature, Support

if TYPE_CHECKING:
    from collections.abc import Iterable

_PERMANENT: Final = frozenset(
    {
        "adaptiveMetadata-preview",
        "allowColumnDefaults",
        "appendOnly",
        "catalogManaged",
        "changeDataFeed",
        "clustering",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "invariants",
        "timestampNtz",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""The features that delta-spark's `ALTER TABLE … DROP FEATURE` refuses."""


def activation(feature: Feature) -> str:
    """How a table gets a feature, other than by its name.

    Args:
        feature: one of `FEATURES`.

    Returns:
        What enables it, in words; empty for a feature that only its name enables.
    """
    if not feature.switch:
        return ""
    return feature.switch if feature.auto else f"{feature.switch}, in a new table"


def remedy(names: Iterable[str]) -> str:
    """What to do with a table that is refused because of these features, as one sentence's end."""
    ways: dict[str, None] = {}
    for name in sorted(names):
        ways[how_to_remove(name)] = None
    return "; ".join(ways)


def how_to_remove(name: str) -> str:
    """How a client that has the feature removes it from a table, so that we can go on.

    Args:
        name: as the protocol has it; an unknown one may be removable as well.
    """
    feature = FEATURES.get(name)
    if feature is not None and feature.write is Support.INACTIVE:
        flag, sign, on = feature.switch.partition("=")
        if sign and on == "true":
            return f"ALTER TABLE … SET TBLPROPERTIES ('{flag}' = 'false')"
    if name in _PERMANENT:
        return f"copy the rows to a new table without {name}, which can't be dropped"
    return f"ALTER TABLE … DROP FEATURE {_identifier(name)}"


def _identifier(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"
