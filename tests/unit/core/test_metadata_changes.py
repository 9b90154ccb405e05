from __future__ import annotations

from dataclasses import replace

import pytest

from lakelog.core.actions import Metadata
from lakelog.core.metadata_changes import harmless_change

OURS = Metadata(id="t", schema_string="{}", configuration={"owner": "me"})
ALL = frozenset({"deletionVectors", "v2Checkpoint", "inCommitTimestamp", "rowTracking"})


@pytest.mark.parametrize(
    ("added", "features", "harmless"),
    [
        ({}, ALL, True),
        ({"delta.enableDeletionVectors": "true"}, ALL, True),
        ({"delta.enableDeletionVectors": "false"}, ALL, False),
        ({"delta.enableDeletionVectors": "true"}, frozenset(), False),
        ({"delta.checkpointPolicy": "v2"}, ALL, True),
        ({"delta.checkpointPolicy": "classic"}, ALL, False),
        ({"delta.checkpointPolicy": "v2"}, frozenset(), False),
        ({"delta.inCommitTimestampEnablementVersion": "5"}, ALL, True),
        ({"delta.enableInCommitTimestamps": "true", "delta.appendOnly": "true"}, ALL, False),
        ({"owner": "you"}, ALL, False),
    ],
)
def test_only_a_feature_that_is_switched_on_is_harmless(
    added: dict[str, str], features: frozenset[str], harmless: bool
) -> None:
    theirs = replace(OURS, configuration={**OURS.configuration, **added})
    assert harmless_change(OURS, theirs, features) is harmless


def test_a_version_of_enablement_that_changes_is_not_harmless() -> None:
    key = "delta.inCommitTimestampEnablementVersion"
    ours = replace(OURS, configuration={key: "5"})
    assert not harmless_change(ours, replace(ours, configuration={key: "6"}), ALL)


def test_a_property_that_goes_away_is_not_harmless() -> None:
    assert not harmless_change(OURS, replace(OURS, configuration={}), ALL)


@pytest.mark.parametrize(
    "changed",
    [
        replace(OURS, schema_string="[]"),
        replace(OURS, partition_columns=["p"]),
        replace(OURS, name="n"),
        replace(OURS, created_time=1),
    ],
)
def test_anything_beside_properties_is_not_harmless(changed: Metadata) -> None:
    assert not harmless_change(OURS, changed, ALL)
