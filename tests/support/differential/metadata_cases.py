"""Winners that change metadata or protocol: what a job may ignore, and what it must not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from support.differential.lines import MOMENT, add, protocol, remove, schema
from support.differential.scenario import (
    Scenario,
    Step,
    Table,
    commits,
    reads,
    sets_metadata,
    wins,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.differential.lines import Line

_FILES: Final = (add("a", p="1"), add("b", p="2"))
_ID: Final = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
_P: Final = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "p"}


def _table(*features: str, **properties: str) -> Table:
    """By p; a property `x` is `delta.x`, with underscores for the dots after that."""
    named = {f"delta.{key.replace('_', '.')}": value for key, value in properties.items()}
    return Table(by=("p",), files=_FILES, features=features, properties=named)


def _fields(*metadata: dict[str, Any], more: tuple[dict[str, Any], ...] = ()) -> str:
    """The schema `id long, p string`, with metadata for each, and more fields."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": given}
        for (name, kind), given in zip(
            (("id", "long"), ("p", "string")), metadata or ({}, {}), strict=True
        )
    ]
    return json.dumps({"type": "struct", "fields": [*fields, *more]})


_DV: Final = _table("deletionVectors")
_V2: Final = _table("v2Checkpoint")
_ICT: Final = _table("inCommitTimestamp")
_ROWS: Final = _table("rowTracking", "domainMetadata")
_MAPPED: Final = _table("columnMapping")
_NAME: Final = _table("columnMapping", columnMapping_mode="name", columnMapping_maxColumnId="2")
_PLAIN: Final = Table(by=("p",), files=_FILES, features=("appendOnly",), properties={"a": "1"})

_NAMES: Final = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
_MATERIALIZED: Final = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
_SINCE: Final = {
    "delta.inCommitTimestampEnablementVersion": "1",
    "delta.inCommitTimestampEnablementTimestamp": str(MOMENT + 5),
}


def _change(
    name: str,
    table: Table,
    properties: Mapping[str, str | None] | None = None,
    /,
    *,
    beside: tuple[Line, ...] = (),
    in_commit: int | None = None,
    **fields: Any,
) -> Scenario:
    """A winner that changes the metadata, and a job that appends."""
    extra = {} if in_commit is None else {"inCommitTimestamp": in_commit}
    return Scenario(
        f"{name} meanwhile",
        table,
        wins(
            table.changed(properties, **fields),
            *beside,
            operation="SET TBLPROPERTIES",
            blind=True,
            **extra,
        ),
        commits("WRITE", add("new", p="1")),
    )


_CHANGES: Final = [
    # Allow-listed.
    _change("deletion vectors are switched on", _DV, {"delta.enableDeletionVectors": "true"}),
    _change(
        "deletion vectors are switched on in capitals", _DV, {"delta.enableDeletionVectors": "TRUE"}
    ),
    _change(
        "deletion vectors come with their feature",
        _table("appendOnly"),
        {"delta.enableDeletionVectors": "true"},
        beside=(protocol("appendOnly", "deletionVectors"),),
    ),
    _change("V2 checkpoints are switched on", _V2, {"delta.checkpointPolicy": "v2"}),
    _change(
        "V2 checkpoints come with their feature",
        _table("appendOnly"),
        {"delta.checkpointPolicy": "v2"},
        beside=(protocol("appendOnly", "v2Checkpoint"),),
    ),
    _change(
        "in-commit timestamps are switched on",
        _ICT,
        {"delta.enableInCommitTimestamps": "true", **_SINCE},
        in_commit=MOMENT + 5,
    ),
    _change(
        "row tracking is switched on", _ROWS, {"delta.enableRowTracking": "true", **_MATERIALIZED}
    ),
    _change(
        "two features are switched on",
        _table("deletionVectors", "v2Checkpoint"),
        {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"},
    ),
    _change("names are mapped", _MAPPED, _NAMES, schemaString=_fields(_ID, _P)),
    # Not allow-listed, or with a value that is not.
    _change("deletion vectors are set to false", _DV, {"delta.enableDeletionVectors": "false"}),
    _change(
        "deletion vectors are switched off",
        _table("deletionVectors", enableDeletionVectors="true"),
        {"delta.enableDeletionVectors": "false"},
    ),
    _change(
        "the property of deletion vectors is taken away",
        _table("deletionVectors", enableDeletionVectors="true"),
        {"delta.enableDeletionVectors": None},
    ),
    _change(
        "deletion vectors and another property are set",
        _DV,
        {"delta.enableDeletionVectors": "true", "delta.logRetentionDuration": "interval 9 days"},
    ),
    _change("classic checkpoints are chosen", _V2, {"delta.checkpointPolicy": "classic"}),
    _change(
        "V2 checkpoints are switched off",
        _table("v2Checkpoint", checkpointPolicy="v2"),
        {"delta.checkpointPolicy": "classic"},
    ),
    _change(
        "in-commit timestamps are switched off",
        _table("inCommitTimestamp", enableInCommitTimestamps="true"),
        {"delta.enableInCommitTimestamps": "false"},
        in_commit=MOMENT + 5,
    ),
    _change(
        "row tracking is switched off",
        Table(
            by=("p",),
            features=("rowTracking", "domainMetadata"),
            properties={"delta.enableRowTracking": "true", **_MATERIALIZED},
        ),
        {"delta.enableRowTracking": "false"},
    ),
    _change(
        "columns for row ids are named, without row tracking",
        _ROWS,
        _MATERIALIZED,
    ),
    _change(
        "columns are mapped by id",
        _MAPPED,
        {**_NAMES, "delta.columnMapping.mode": "id"},
        schemaString=_fields(_ID, _P),
    ),
    _change(
        "names are mapped, and a column comes",
        _MAPPED,
        {**_NAMES, "delta.columnMapping.maxColumnId": "3"},
        schemaString=_fields(
            _ID,
            _P,
            more=(
                {
                    "name": "more",
                    "type": "long",
                    "nullable": True,
                    "metadata": {
                        "delta.columnMapping.id": 3,
                        "delta.columnMapping.physicalName": "more",
                    },
                },
            ),
        ),
    ),
    _change(
        "names are mapped, and a column gets a comment",
        _MAPPED,
        _NAMES,
        schemaString=_fields({**_ID, "comment": "of the row"}, _P),
    ),
    _change(
        "the highest column id rises",
        Table(
            by=("p",),
            features=("columnMapping",),
            properties=_NAME.properties,
            own_schema=_fields(_ID, _P),
        ),
        {"delta.columnMapping.maxColumnId": "7"},
    ),
    _change("a property is set", _PLAIN, {"delta.logRetentionDuration": "interval 9 days"}),
    _change("a property of the user is set", _PLAIN, {"mine": "1"}),
    _change("a property is changed", _PLAIN, {"a": "9"}),
    _change("a property is taken away", _PLAIN, {"a": None}),
    _change("the table becomes append-only", _PLAIN, {"delta.appendOnly": "true"}),
    _change("the isolation level is set", _PLAIN, {"delta.isolationLevel": "Serializable"}),
    _change("the table gets a name", _PLAIN, name="flights"),
    _change("the table gets a description", _PLAIN, description="of flights"),
    _change("the table gets another id", _PLAIN, id="another-table"),
    _change("the table gets another time of creation", _PLAIN, createdTime=MOMENT + 1),
    _change("the partitioning goes", _PLAIN, partitionColumns=[]),
    _change("a column comes", _PLAIN, schemaString=schema(id="long", p="string", more="long")),
    _change("a column goes", _PLAIN, schemaString=schema(p="string")),
    _change("a column changes its type", _PLAIN, schemaString=schema(id="string", p="string")),
    _change("a column gets a comment", _PLAIN, schemaString=_fields({"comment": "x"}, {})),
    _change("the metadata is written again", _PLAIN),
    _change(
        "the schema is spelled with other spaces",
        _PLAIN,
        schemaString=json.dumps(json.loads(_PLAIN.metadata["metaData"]["schemaString"]), indent=1),
    ),
]

_IDENTITY: Final = {
    "delta.identity.start": 1,
    "delta.identity.step": 1,
    "delta.identity.allowExplicitInsert": False,
}
_GENERATED_IDS: Final = Table(
    by=("p",),
    features=("identityColumns",),
    own_schema=_fields(_IDENTITY, {}),
)


def _identity_winner(*lines: Line) -> Step:
    marked = _fields({**_IDENTITY, "delta.identity.highWaterMark": 10}, {})
    return wins(
        _GENERATED_IDS.changed(schemaString=marked),
        *lines,
        blind=True,
        tags={"delta.identity.schemaUpdate": "true"},
    )


_JOBS: Final[list[tuple[str, list[Step]]]] = [
    ("deletes", [*reads("p = '1'"), commits("DELETE", remove("a", p="1"))]),
    ("commits nothing", [commits("TRUNCATE")]),
    (
        "switches the same on",
        [
            sets_metadata(_V2.changed({"delta.checkpointPolicy": "v2"})),
            commits("SET TBLPROPERTIES"),
        ],
    ),
    (
        "sets another property",
        [sets_metadata(_V2.changed({"job": "1"})), commits("SET TBLPROPERTIES")],
    ),
    ("adds a feature", [commits("Manual Update", protocol("appendOnly", "v2Checkpoint"))]),
]

_LOSERS: Final = [
    *(
        Scenario(
            f"V2 checkpoints are switched on while the job {name}",
            _V2,
            wins(_V2.changed({"delta.checkpointPolicy": "v2"}), blind=True),
            steps,
        )
        for name, steps in _JOBS
    ),
    Scenario(
        "an allow-listed change with an append to what the job read",
        _V2,
        reads("p = '1'"),
        wins(_V2.changed({"delta.checkpointPolicy": "v2"}), add("w", p="1"), blind=True),
        commits("DELETE", remove("a", p="1")),
    ),
    Scenario(
        "two allow-listed changes, one after the other",
        _table("deletionVectors", "v2Checkpoint"),
        wins(
            _table("deletionVectors", "v2Checkpoint").changed({"delta.checkpointPolicy": "v2"}),
            blind=True,
        ),
        wins(
            _table("deletionVectors", "v2Checkpoint").changed(
                {"delta.checkpointPolicy": "v2", "delta.enableDeletionVectors": "true"}
            ),
            blind=True,
        ),
        commits("WRITE", add("new", p="1")),
    ),
    Scenario(
        "an allow-listed change is taken back",
        _V2,
        wins(_V2.changed({"delta.checkpointPolicy": "v2"}), blind=True),
        wins(_V2.changed({"delta.checkpointPolicy": "classic"}), blind=True),
        commits("WRITE", add("new", p="1")),
    ),
    Scenario(
        "identity columns move on while the job appends by hand",
        _GENERATED_IDS,
        _identity_winner(add("w", p="1")),
        commits("WRITE", add("new", p="1")),
    ),
    Scenario(
        "identity columns move on while the job sets a property",
        _GENERATED_IDS,
        _identity_winner(),
        sets_metadata(_GENERATED_IDS.changed({"job": "1"})),
        commits("SET TBLPROPERTIES"),
    ),
]

METADATA_CASES: Final = [*_CHANGES, *_LOSERS]
