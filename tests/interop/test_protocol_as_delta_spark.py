"""What a property does to a table's protocol, by us and by delta-spark on the same log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lakelog.core.actions import Metadata, Protocol
from lakelog.core.alter.property_changes import set_properties
from lakelog.core.errors import DeltaError
from support.delta_spark_peer import DeltaSparkError
from support.tables import schema_json

SCHEMA = schema_json(id="long", day="date")


def legacy(reader, writer):
    return Protocol(min_reader_version=reader, min_writer_version=writer)


def listed(*names, readers=None):
    return Protocol(
        min_reader_version=1 if readers is None else 3,
        min_writer_version=7,
        reader_features=readers,
        writer_features=list(names),
    )


STARTS = {
    "1,1": legacy(1, 1),
    "1,2": legacy(1, 2),
    "1,4": legacy(1, 4),
    "2,5": legacy(2, 5),
    "lists of old ones": listed("appendOnly", "invariants"),
    "lists of one old one": listed("invariants"),
    "empty lists": listed(readers=[]),
    "lists with a new one": listed("appendOnly", "invariants", "domainMetadata"),
}
CHANGES = [
    {"appendOnly": "true"},
    {"constraints.c": "id > 0"},
    {"feature.checkConstraints": "supported"},
    {"feature.domainMetadata": "enabled"},
    {"feature.vacuumProtocolCheck": "supported"},
    {"feature.appendOnly": "supported"},
    {"checkpointPolicy": "v2"},
    {"minWriterVersion": "3"},
    {"minWriterVersion": "7"},
    {"minReaderVersion": "1", "minWriterVersion": "1"},
    {"minReaderVersion": "2"},
    {"minReaderVersion": "2", "minWriterVersion": "5"},
    {"minReaderVersion": "3", "minWriterVersion": "7"},
    {"minWriterVersion": "7", "feature.domainMetadata": "supported"},
    {"minWriterVersion": "8"},
    {"feature.nothingLikeIt": "supported"},
    {"feature.domainMetadata": "perhaps"},
    {"appendOnly": "perhaps"},
    {"apendOnly": "true"},
]
# delta-spark makes a protocol of reader 3 and writer 3 of the one left out, and fails on that.
CASES = [
    (start, change)
    for start in STARTS
    for change in CHANGES
    if (start, change) != ("empty lists", {"minWriterVersion": "3"})
]


@pytest.fixture
def paths(tmp_path):
    """Of our table and of theirs, from one log."""

    def make(protocol, properties=None):
        mine, theirs = tmp_path / "ours", tmp_path / "theirs"
        metadata = Metadata(
            id="11111111-2222-3333-4444-555555555555",
            schema_string=SCHEMA,
            configuration=properties or {},
            created_time=1,
        )
        log = mine / "_delta_log"
        log.mkdir(parents=True)
        lines = [protocol.to_json(), metadata.to_json()]
        (log / "00000000000000000000.json").write_text("\n".join(lines) + "\n")
        shutil.copytree(mine, theirs)
        return str(mine), str(theirs)

    return make


def state(path):
    """Protocol and properties, as the newest commit that has them says."""
    found: dict[str, Any] = {}
    for file in sorted((Path(path) / "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            found |= json.loads(line)
    protocol = {k: sorted(v) if isinstance(v, list) else v for k, v in found["protocol"].items()}
    return protocol, found["metaData"]["configuration"], found.get("commitInfo", {})


@pytest.mark.parametrize(("start", "change"), CASES, ids=str)
def test_a_property_changes_the_protocol_as_delta_spark_does(delta_spark, paths, start, change):
    mine, theirs = paths(STARTS[start])
    properties = {f"delta.{key}": value for key, value in change.items()}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    refused = None
    try:
        delta_spark.sql(f"ALTER TABLE delta.`{theirs}` SET TBLPROPERTIES ({listed})")
    except DeltaSparkError as exc:
        refused = exc
    if refused is not None:
        with pytest.raises(DeltaError):
            set_properties(mine, properties)
        return
    set_properties(mine, properties)
    assert state(mine)[:2] == state(theirs)[:2]
