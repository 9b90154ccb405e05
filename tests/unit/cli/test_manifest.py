"""`lakelog manifest`: the lists of files of the newest version."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelog.core import DeltaLog, Operation
from support.tables import add_file, new_table, schema_json
from support.terminal import lakelog, lakelog_json


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    schema = schema_json(id="long", day="string")
    made = new_table(str(tmp_path / "t"), schema=schema, partition_by=["day"])
    files = [add_file("a", day="1"), add_file("b", day="2")]
    made.start_transaction().commit(files, Operation.write("Append"))
    return made


def test_the_manifests_are_written_and_named(log: DeltaLog) -> None:
    found = lakelog_json("manifest", log.table)
    names = [f"_symlink_format_manifest/day={day}/manifest" for day in (1, 2)]
    assert found == {
        "table": log.table,
        "version": 1,
        "live_files": 2,
        "manifests": names,
        "kept_by_commits": False,
    }
    assert Path(log.table, names[0]).read_text() == f"file:{log.table}/a\n"


def test_the_text_says_how_many_and_whether_they_stay_true(log: DeltaLog) -> None:
    outcome = lakelog("manifest", log.table)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[-2:] == [
        "Wrote 2 manifests of 2 files below _symlink_format_manifest.",
        "Commits do not keep them up to date: "
        "delta.compatibility.symlinkFormatManifest.enabled is not set.",
    ]


def test_no_table_is_one_line(tmp_path: Path) -> None:
    outcome = lakelog("manifest", str(tmp_path / "nothing"))
    assert outcome.code == 2
    assert outcome.out == ""
