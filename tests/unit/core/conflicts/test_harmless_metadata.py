from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakelog.core.actions import Metadata
from lakelog.core.conflicts.harmless_metadata import harmless_change
from support.tables import schema_json

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


NAMES = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
MAPPED = frozenset({"columnMapping"})
BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
TABLE_ID = "io.unitycatalog.tableId"


@pytest.mark.parametrize(
    ("added", "features", "harmless"),
    [
        ({**NAMES, "delta.enableRowTracking": "true"}, ALL, True),
        ({**NAMES, "delta.enableRowTracking": "true"}, frozenset(), False),
        ({**NAMES, "delta.enableRowTracking": "false"}, ALL, False),
        (NAMES, ALL, False),
        (BY_NAME, MAPPED, True),
        (BY_NAME, ALL, False),
        ({**BY_NAME, "delta.columnMapping.mode": "id"}, MAPPED, False),
        ({"delta.columnMapping.maxColumnId": "9"}, frozenset(), True),
        ({TABLE_ID: "x"}, frozenset({"catalogManaged"}), True),
        ({TABLE_ID: "x", "owner": "you"}, frozenset({"catalogManaged"}), False),
    ],
)
def test_what_goes_along_with_a_feature_is_harmless_beside_it(
    added: dict[str, str], features: frozenset[str], harmless: bool
) -> None:
    theirs = replace(OURS, configuration={**OURS.configuration, **added})
    assert harmless_change(OURS, theirs, features) is harmless


def test_the_id_of_a_table_in_a_catalog_may_not_change() -> None:
    ours = replace(OURS, configuration={TABLE_ID: "x"})
    theirs = replace(OURS, configuration={TABLE_ID: "y"})
    assert not harmless_change(ours, theirs, frozenset({"catalogManaged"}))
    assert harmless_change(ours, theirs, frozenset())


def mapped(kind: str = "long", nullable: bool = True, **extra: object) -> str:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id", **extra}
    field = {"name": "id", "type": kind, "nullable": nullable, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


@pytest.mark.parametrize(
    ("schema", "mode", "harmless"),
    [
        (mapped(), "name", True),
        (mapped(), None, False),
        (mapped("integer"), "name", False),
        (mapped(nullable=False), "name", False),
        (mapped(comment="x"), "name", False),
        (schema_json(id="long", other="long"), "name", False),
        (schema_json(ID="long"), "name", False),
    ],
)
def test_column_mapping_may_give_the_columns_ids_and_nothing_else(
    schema: str, mode: str | None, harmless: bool
) -> None:
    ours = replace(OURS, schema_string=schema_json(id="long"))
    added = {} if mode is None else BY_NAME
    theirs = replace(ours, schema_string=schema, configuration={**OURS.configuration, **added})
    assert harmless_change(ours, theirs, MAPPED) is harmless
