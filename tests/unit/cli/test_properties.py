"""`lakelog properties`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, write_arrow
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2]})
    create_table(made, rows.schema, properties={"delta.checkpointInterval": "100", "owner": "me"})
    write_arrow(made, rows, mode="append")
    return made


def _now(uri: str) -> dict[str, str]:
    return dict(DeltaLog.for_table(uri).snapshot.metadata.configuration)


def test_they_are_shown_with_the_defaults_that_they_replace(uri: str) -> None:
    found = lakelog_json("properties", uri)
    assert found["properties"] == {
        "delta.checkpointInterval": {"value": "100", "default": "10"},
        "owner": {"value": "me", "default": None},
    }
    assert (found["version_before"], found["version"], found["changed"]) == (1, None, {})
    assert [each.split() for each in lakelog("properties", uri).lines[2:]] == [
        ["delta.checkpointInterval", "100", "10"],
        ["owner", "me"],
    ]


def test_set_and_unset(uri: str) -> None:
    options = ("--set", "owner=you=all ", "--set", "delta.checkpointinterval=7")
    planned = lakelog_json("properties", uri, *options, "--dry-run")
    assert (planned["version"], planned["dry_run"]) == (None, True)
    assert _now(uri)["owner"] == "me"
    done = lakelog_json("properties", uri, *options)
    assert done["changed"] == planned["changed"]
    assert done["changed"]["delta.checkpointInterval"] == {"before": "100", "after": "7"}
    assert (done["version"], done["protocol"]) == (2, None)
    assert _now(uri) == {"owner": "you=all", "delta.checkpointInterval": "7"}
    outcome = lakelog("properties", uri, "--unset", "owner")
    assert (outcome.code, outcome.lines[-1]) == (0, "Changed by version 3.")
    assert _now(uri) == {"delta.checkpointInterval": "7"}


def test_what_is_so_already_commits_nothing(uri: str) -> None:
    outcome = lakelog("properties", uri, "--set", "owner=me")
    assert outcome.lines[-1] == "That is so already: nothing was committed."
    assert DeltaLog.for_table(uri).snapshot.version == 1


@pytest.mark.parametrize("name", ["delta.enableDeletionVectors", "delta.enableRowTracking"])
def test_a_raised_protocol_needs_a_yes_and_a_dry_run_foresees_it(uri: str, name: str) -> None:
    before = DeltaLog.for_table(uri).snapshot
    planned = lakelog_json("properties", uri, "--set", f"{name}=true", "--dry-run")
    outcome = lakelog("properties", uri, "--set", f"{name}=true")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"Raise the protocol of {uri}" in outcome.err
    assert DeltaLog.for_table(uri).snapshot.version == before.version
    done = lakelog_json("properties", uri, "--set", f"{name}=true", "--yes")
    assert done["protocol"] == planned["protocol"]
    after = DeltaLog.for_table(uri).snapshot
    assert done["version"] == after.version
    assert done["protocol"]["after"] == {
        "min_reader_version": after.protocol.min_reader_version,
        "min_writer_version": after.protocol.min_writer_version,
    }
    assert set(done["protocol"]["features_added"]) <= set(after.protocol.writer_features or ())
    assert after.metadata.configuration[name] == "true"
    assert lakelog("properties", uri, "--set", f"{name}=true").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "owner"), "is not NAME=VALUE"),
        (("--set", "=x"), "is not NAME=VALUE"),
        (("--set", "owner=a", "--set", "owner=b"), "two values"),
        (("--set", "owner=a", "--unset", "owner"), "not both"),
        (("--set", "checkpointInterval=5"), "Did you mean delta.checkpointInterval"),
        (("--set", "delta.checkpointIntervall=5"), "delta.checkpointInterval"),
        (("--set", "delta.checkpointInterval=x"), "delta.checkpointInterval"),
        (("--set", "delta.constraints.c=id > 0"), "DELTA_ADD_CONSTRAINTS"),
        (("--unset", "nope"), "DELTA_UNSET_NON_EXISTENT_PROPERTY"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_is_refused_changes_nothing(
    uri: str, options: tuple[str, ...], message: str, dry: tuple[str, ...]
) -> None:
    outcome = lakelog("properties", uri, *options, *dry)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert DeltaLog.for_table(uri).snapshot.version == 1
