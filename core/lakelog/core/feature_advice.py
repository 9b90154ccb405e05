"""What to do about a table feature: how a table gets it, and what helps where we refuse it.

The same words stand in error messages and in the table of features (docs/features.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core.features import FEATURES, Feature, Support

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["activation", "remedy", "way_out"]

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
    """How a table comes to have a feature, but for asking for it by name.

    Args:
        feature: one of `FEATURES`.

    Returns:
        What switches it on, in words; empty for a feature that only its name brings.
    """
    if not feature.switch:
        return ""
    return feature.switch if feature.auto else f"{feature.switch}, in a new table"


def remedy(names: Iterable[str]) -> str:
    """What to do with a table that is refused because of these features, as one sentence's end."""
    ways: dict[str, None] = {}
    for name in sorted(names):
        ways[way_out(name)] = None
    return "; ".join(ways)


def way_out(name: str) -> str:
    """How a client that has the feature takes it out of a table, so that we can go on.

    Args:
        name: as the protocol spells it; one that nobody knows yet may be dropped as well.
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
