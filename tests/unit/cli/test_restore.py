"""`lakelog restore`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from support.terminal import lakelog, lakelog_json


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = str(tmp_path / "t")
    write_arrow(made, pa.table({"id": [1]}), mode="append")
    write_arrow(made, pa.table({"id": [2]}), mode="overwrite")
    return made


def _ids(uri: str) -> list[int]:
    return [row["id"] for row in DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist()]


def test_the_version_comes_back(uri: str) -> None:
    found = lakelog_json("restore", uri, "--version", "0")
    assert (found["version_before"], found["restored_version"], found["version"]) == (1, 0, 2)
    assert found["metrics"]["numRestoredFiles"] == 1
    assert _ids(uri) == [1]


def test_the_text(uri: str) -> None:
    outcome = lakelog("restore", uri, "--version", "0", "--dry-run")
    assert outcome.code == 0
    assert outcome.lines[-1] == "Nothing was committed (--dry-run)."
    assert _ids(uri) == [2]
    outcome = lakelog("restore", uri, "--version", "0")
    assert outcome.lines[-1] == "Restored by version 2."
    assert "files coming back" in outcome.out
    outcome = lakelog("restore", uri, "--version", "2")
    assert outcome.lines[-1] == "Version 2 is the newest: there is nothing to restore."
    assert outcome.code == 0


def test_by_time(uri: str) -> None:
    time = DeltaLog.for_table(uri).snapshot_at(1).timestamp
    outcome = lakelog("restore", uri, "--timestamp", "2001-01-01")
    assert (outcome.code, "TIMESTAMP_EARLIER" in outcome.err) == (2, True)
    assert time


def test_missing_files_are_listed(uri: str) -> None:
    (file,) = DeltaLog.for_table(uri).snapshot_at(0).files()
    Path(uri, file.path).unlink()
    for options in ((), ("--dry-run",)):
        outcome = lakelog("restore", uri, "--version", "0", *options)
        assert outcome.code == 1
        assert f"missing: {uri}/{file.path}" in outcome.err
        assert _ids(uri) == [2]
    ignored = ("--conf", "spark.sql.files.ignoreMissingFiles=true")
    found = lakelog_json("restore", uri, "--version", "0", *ignored)
    assert (found["version"], found["missing"]) == (2, [f"{uri}/{file.path}"])
    assert _ids(uri) == []


def test_a_version_must_be_named(uri: str) -> None:
    assert lakelog("restore", uri).code == 2
    assert lakelog("restore", uri, "--version", "0", "--timestamp", "2001-01-01").code == 2
