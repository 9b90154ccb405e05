"""Which changes of a table's metadata a writer that does not know of them may ignore.

Delta lets a transaction go on where another one only switched a feature on that does not change
what a data file means: the changed properties must all be in the list below, with a value that
switches on, and the protocol must have the feature. Everything else may invalidate files that
were written for the old metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import Metadata

__all__ = ["harmless_change"]

_Rule = Callable[["str | None", str, frozenset[str]], bool]


def _on(feature: str) -> _Rule:
    return lambda _old, new, features: new.lower() == "true" and feature in features


def _added(_old: str | None, _new: str, _features: frozenset[str]) -> bool:
    return _old is None


def _v2_checkpoints(_old: str | None, new: str, features: frozenset[str]) -> bool:
    return new == "v2" and "v2Checkpoint" in features


_HARMLESS: Mapping[str, _Rule] = {
    "delta.enableDeletionVectors": _on("deletionVectors"),
    "delta.enableRowTracking": _on("rowTracking"),
    "delta.enableInCommitTimestamps": _on("inCommitTimestamp"),
    "delta.inCommitTimestampEnablementVersion": _added,
    "delta.inCommitTimestampEnablementTimestamp": _added,
    "delta.checkpointPolicy": _v2_checkpoints,
}


def harmless_change(ours: Metadata, theirs: Metadata, features: frozenset[str]) -> bool:
    """Whether files written under `ours` are as good under `theirs`.

    Args:
        ours: the metadata that the transaction read.
        theirs: the metadata that another writer committed since.
        features: what the table's protocol has, the winner's changes included.
    """
    if replace(theirs, configuration=ours.configuration) != ours:
        return False
    old, new = ours.configuration, theirs.configuration
    if old.keys() - new.keys():
        return False
    return all(
        key in _HARMLESS and _HARMLESS[key](old.get(key), value, features)
        for key, value in new.items()
        if old.get(key) != value
    )
